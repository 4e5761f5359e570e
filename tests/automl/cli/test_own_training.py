"""A person's own training by the command line: a file, a script, constants and data, and how mistakes are told."""

import signal
import sys
from pathlib import Path

import pytest

from tests.automl.cli.conftest import Shell
from tests.helpers.commands import Command, environment_of, until
from tests.trainers.custom.own import write

FIT = """
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.5})
    METRICS = {"gain": "maximize"}

    def load(source):
        if source == "broken":
            raise LookupError("no such rows")
        return source

    def fit(context):
        for epoch in range(context.start_epoch, context.epochs):
            gain = context.configuration["x"] + context.configuration.get("bonus", 0)
            context.report({"gain": gain}, {"epoch": epoch})
    """
SCRIPT = """
    import json, os, sys
    x = json.loads(os.environ["AUTOML_CONFIGURATION"])["x"]
    for epoch in range(1, 3):
        print(json.dumps({"epoch": epoch, "loss": x / epoch}))
    """
SEARCH = ("--executor", "inline", "--sampler", "random", "--pruner", "none", "--epochs", "2", "--trials", "2")


def test_file_is_searched_and_goes_on_with_what_it_was_told(shell: Shell) -> None:
    write(shell.folder, "own.py", FIT)
    ended = shell("search", "--space", "own.py", "--set", "bonus=10", *SEARCH)
    assert ended.code == 0, ended
    assert "best trial: " in ended.out and "gain 10." in ended.out
    again = shell("resume", "own-digits", "--trials", 3)
    assert again.code == 0, again
    assert "all 3 trials ended" in again.out
    write(shell.folder, "own.py", FIT.replace("+ context", "- context"))
    changed = shell("resume", "own-digits", "--trials", 4)
    assert changed.code == 0, changed
    assert "the code of its training has changed" in changed.err


def test_script_is_searched_from_the_folder_where_it_was_given(shell: Shell) -> None:
    write(shell.folder, "own.py", FIT)
    write(shell.folder, "train.py", SCRIPT)
    command = f"{sys.executable} train.py"
    ended = shell("search", "--space", "own.py", "--script", command, "--metric", "loss", "--study", "s", *SEARCH)
    assert ended.code == 0, ended
    assert "2 complete" in ended.out
    assert shell("resume", "s", "--trials", 3).code == 0


def test_failing_script_is_told_with_its_last_words(shell: Shell) -> None:
    write(shell.folder, "own.py", FIT)
    write(shell.folder, "train.py", "raise ValueError('no such layer')")
    command = f"{sys.executable} train.py"
    ended = shell("search", "--space", "own.py", "--script", command, "--metric", "loss", "--study", "s", *SEARCH)
    assert ended.code == 3, ended
    assert "exit code 1: ValueError: no such layer" in ended.err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--data", "broken"), "own.py, line 8: LookupError: no such rows"),
        (("--set", "bonus"), "'bonus' is not NAME=VALUE"),
        (("--set", "a=1", "--set", "a=2"), "a is given twice"),
        (("--trainer", "none.py"), "there is no such file"),
        (("--metric", "gian"), "did you mean 'gain'?"),
        (("--image-size", "0"), "data.image-size: '0' is not allowed"),
    ],
    ids=["data", "set", "twice", "trainer", "metric", "image size"],
)
def test_mistake_is_refused_before_anything_is_made(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    write(shell.folder, "own.py", FIT)
    ended = shell("search", "--space", "own.py", *SEARCH, *arguments)
    assert ended.code == 2, ended
    assert words in ended.err
    assert sorted(path.name for path in shell.folder.rglob("*.db")) == []


def test_data_and_constants_of_a_file_and_of_flags_are_joined(shell: Shell) -> None:
    write(shell.folder, "own.py", FIT)
    write(
        shell.folder, "search.yaml", "space: own.py\ndata: {source: rows, split_seed: 3}\nset: {bonus: 1, depth: 2}\n"
    )
    flags = ("--config", "search.yaml", "--test-fraction", "0.1", "--ignore", "a", "--ignore", "b", "--set", "bonus=5")
    ended = shell("search", *flags, *SEARCH)
    assert ended.code == 0, ended
    from studies.storage import Storage

    study = Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").open_study("own-rows")
    data = study.specification["data"]
    assert (data["source"], data["split_seed"], data["test_fraction"], data["ignore"]) == ("rows", 3, 0.1, ["a", "b"])
    assert study.specification["set"] == {"bonus": 5, "depth": 2}


WAITS = """
    import json, os, pathlib, time
    pathlib.Path("pid").write_text(str(os.getpid()))
    print(json.dumps({"loss": 1}), flush=True)
    time.sleep(600)
    """


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.ray
def test_killed_search_on_ray_leaves_no_script_behind(tmp_path: Path) -> None:
    import psutil

    write(tmp_path, "own.py", FIT)
    write(tmp_path, "train.py", WAITS)
    arguments = (
        "search", "--space", "own.py", "--script", f"{sys.executable} train.py", "--metric", "loss", "--study", "s",
        "--trials", "1", "--pruner", "none",
    )  # fmt: skip
    with Command(*arguments, folder=tmp_path, environment=environment_of(tmp_path)) as command:
        file = tmp_path / "pid"
        until(lambda: file.exists() and file.read_text(), 90.0, "the script")
        script = psutil.Process(int(file.read_text()))
        command.send(signal.SIGKILL)
        until(lambda: not script.is_running() or script.status() == psutil.STATUS_ZOMBIE, 60.0, "the script's end")
