"""A person's own space as a file by the command line: lists keep their labels, faults have lines, notes are told."""

from tests.automl.cli.conftest import Shell
from tests.trainers.custom.own import write

SPACE = """
    parameters:
      kernel: {choices: [[3, 3], [5, 5]]}
      rate: {low: 0, high: 1, step: 0.3}
    """
FIT = """
    METRICS = {"gain": "maximize"}

    def fit(context):
        height, width = context.configuration["kernel"]
        for epoch in range(context.start_epoch, context.epochs):
            context.report({"gain": height * width + epoch}, {"epoch": epoch})
    """
SEARCH = ("--trainer", "fit.py", "--executor", "inline", "--sampler", "random", "--pruner", "none", "--epochs", "2")


def test_lists_of_a_yaml_space_have_labels_that_last(shell: Shell) -> None:
    write(shell.folder, "fit.py", FIT)
    write(shell.folder, "own.yaml", SPACE)
    ended = shell("search", "--space", "own.yaml", *SEARCH, "--trials", 4)
    assert ended.code == 0, ended
    assert ended.err.count("rate: high=1.0 is not on the grid; the values are 0, 0.3, 0.6, 0.9") == 1
    assert "kernel  5x5" in ended.out and "gain 26" in ended.out
    assert shell("resume", "own-digits", "--trials", 6).code == 0
    assert "kernel  5x5" in shell("best", "own-digits").out
    rows = shell("export", "own-digits").out.splitlines()
    assert len(rows) == 1 + 6 and all(",3x3," in row or ",5x5," in row for row in rows[1:])
    assert {"0.0", "0.3", "0.6", "0.9"} >= {row.split(",")[rows[0].split(",").index("param_rate")] for row in rows[1:]}
    assert shell("report", "own-digits").code == 0


def test_yaml_space_that_cannot_be_is_refused_before_there_is_a_study(shell: Shell) -> None:
    write(shell.folder, "fit.py", FIT)
    write(shell.folder, "own.yaml", SPACE.replace("[5, 5]]", "{height: 5}]").replace("low: 0", "low: 2"))
    refused = shell("search", "--space", "own.yaml", *SEARCH)
    assert refused.code == 2
    assert "line 3: kernel: a choice is a scalar or a list of them, not a mapping" in refused.err
    assert "line 4: rate: low=2 is not below high=1" in refused.err
    assert "own-digits" not in shell("status").out


def test_yaml_space_without_anybody_who_trains_says_what_to_do(shell: Shell) -> None:
    write(shell.folder, "own.yaml", SPACE)
    refused = shell("search", "--space", "own.yaml", "--executor", "inline")
    assert refused.code == 2
    assert "own.yaml builds no network, as no YAML file does; say who trains its parameters" in refused.err


def test_file_with_only_suggest_is_searched_under_its_name(shell: Shell) -> None:
    write(shell.folder, "fit.py", FIT)
    write(
        shell.folder,
        "asks.py",
        """
        def suggest(trial):
            if trial.suggest_categorical("kernel", [[3, 3], [5, 5]]) == [5, 5]:
                trial.suggest_float("rate", 0, 1)
        """,
    )
    ended = shell("search", "--space", "asks.py", *SEARCH, "--trials", 3)
    assert ended.code == 0, ended
    assert "study 'asks-digits': all 3 trials ended" in ended.out
