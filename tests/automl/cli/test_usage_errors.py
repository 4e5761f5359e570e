"""What is typed wrongly is told at once, in words, with exit code 2, and nothing comes into being."""

from pathlib import Path

import pytest

from tests.automl.cli.conftest import Shell
from tests.helpers.commands import Command, Ended, environment_of

SEARCH = ("search", "--space", "nas_small")
NO_SERVER = "postgresql://me:hunter2@127.0.0.1:1/studies"


def check_refused(shell: Shell, ended: Ended, *hints: str) -> None:
    """Exit code 2, all hints, no traceback, nothing on standard output, nothing left anywhere."""
    assert ended.code == 2, ended
    for hint in hints:
        assert hint in ended.err, ended
    assert any(line.startswith("automl: ") for line in ended.err.splitlines()), ended
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert not any(shell.folder.iterdir())
    assert not Path(shell.environment["XDG_STATE_HOME"]).exists()


@pytest.mark.parametrize(
    "arguments, hints",
    [
        pytest.param(("serch",), ("serch", "'search'"), id="verb"),
        pytest.param((*SEARCH, "--trails", "3"), ("--trails", "--trials"), id="flag"),
        pytest.param((*SEARCH, "--trials"), ("--trials", "requires an argument"), id="flag without a value"),
        pytest.param((*SEARCH, "surplus"), ("surplus",), id="surplus word"),
        pytest.param(("search",), ("space: must be given",), id="no space"),
        pytest.param(("search", "--space", "nas_smal"), ("'nas_smal'", "'nas_small'"), id="space"),
        pytest.param(("search", "--space", "no.such.module"), ("no.such.module",), id="module"),
        pytest.param((*SEARCH, "--data", "digit"), ("'digit'", "'digits'", ".npz"), id="data"),
        pytest.param((*SEARCH, "--sampler", "tpee"), ("'tpee'", "'tpe'", "evolution"), id="sampler"),
        pytest.param((*SEARCH, "--pruner", "ahsa"), ("'ahsa'", "'asha'", "median"), id="pruner"),
        pytest.param((*SEARCH, "--metric", "acuracy"), ("'acuracy'", "'accuracy'"), id="metric"),
        pytest.param((*SEARCH, "--trials", "many"), ("trials", "'many'"), id="number"),
        pytest.param((*SEARCH, "--study", "a\nb"), ("study",), id="study name"),
        pytest.param((*SEARCH, "--study", ""), ("study: '' is not allowed", "at least 1"), id="empty study name"),
        pytest.param((*SEARCH, "--study", "é" * 513), ("study: ", "at most 512"), id="long study name"),
        pytest.param((*SEARCH, "--storage", "here"), ("sqlite:///",), id="storage"),
        pytest.param(("storage",), ("command",), id="storage without a verb"),
        pytest.param(("storage", "upgrade", "--storage", "here"), ("sqlite:///",), id="storage to upgrade"),
        pytest.param(
            (*SEARCH, "--storage", "oracle://me:hunter2@host/x"), ("oracle", "sqlite:///"), id="kind of storage"
        ),
        pytest.param((*SEARCH, "--storage", "postgresql://me:p@ss@host/x"), ("%40",), id="sign in a password"),
        pytest.param((*SEARCH, "--storage", NO_SERVER), ("127.0.0.1:1", "refused"), id="no server"),
        pytest.param((*SEARCH, "--config", "none.yaml"), ("none.yaml", "No such file"), id="no configuration file"),
        pytest.param((*SEARCH, "--ray-address", "127.0.0.1"), ("HOST:PORT",), id="address without a port"),
        pytest.param(("resume", "nobody"), ("'nobody'", "studies.db"), id="study to resume"),
        pytest.param(("resume",), ("STUDY",), id="nothing to resume"),
        pytest.param(("resume", "x", "--seed", "1"), ("--seed",), id="fixed field of resume"),
        pytest.param(("status", "nobody"), ("'nobody'",), id="status of an unknown study"),
        pytest.param(("show", "nobody"), ("'nobody'",), id="show of an unknown study"),
        pytest.param(("show", "nobody", "first"), ("TRIAL", "integer"), id="trial that is no number"),
        pytest.param(("best", "nobody"), ("'nobody'",), id="best of an unknown study"),
        pytest.param(("best", "nobody", "-k", "0"), ("-k",), id="best none"),
        pytest.param(("report", "nobody"), ("'nobody'",), id="report of an unknown study"),
        pytest.param(("export", "nobody"), ("'nobody'",), id="export of an unknown study"),
        pytest.param(("export", "nobody", "--format", "xml"), ("'xml'", "'parquet'"), id="format of an export"),
        pytest.param(("export", "nobody", "-o", "trials.xls"), ("'.xls'", ".csv"), id="suffix of an export"),
        pytest.param(("export", "nobody", "--format", "parquet"), ("--output",), id="parquet without a file"),
        pytest.param(("enqueue", "nobody", "x=1"), ("'nobody'",), id="wish for an unknown study"),
        pytest.param(("enqueue", "nobody", "x"), ("'x' is not NAME=VALUE",), id="wish that is none"),
        pytest.param(("retry", "nobody", "--failed"), ("'nobody'",), id="retry of an unknown study"),
        pytest.param(("retry", "nobody"), ("--failed", "--trial"), id="retry of nothing"),
        pytest.param(("import", "nobody", "--from", "x"), ("'nobody'",), id="import into an unknown study"),
        pytest.param(("import", "nobody"), ("--from-file",), id="import of nothing"),
        pytest.param(("stop", "nobody"), ("'nobody'",), id="stop of an unknown study"),
        pytest.param((*SEARCH, "--warm-start", "none.csv"), ("there is no file none.csv",), id="no file to learn from"),
        pytest.param((*SEARCH, "--warm-start", "nobody"), ("'nobody'",), id="no study to learn from"),
        pytest.param(("spaces", "nas_smal"), ("'nas_smal'", "'nas_small'"), id="space to look at"),
        pytest.param(("status", "--storage", NO_SERVER), ("127.0.0.1:1", "refused"), id="status without a server"),
    ],
)
def test_wrong_command_is_refused_in_words_and_leaves_nothing(
    shell: Shell, arguments: tuple[str, ...], hints: tuple[str, ...]
) -> None:
    ended = shell(*arguments)
    check_refused(shell, ended, *hints)
    assert "hunter2" not in ended.err
    assert "p@ss" not in ended.err


def test_all_mistakes_are_listed_at_once(shell: Shell) -> None:
    ended = shell(
        "search", "--space", "nas_smal", "--data", "digitz", "--trials", "abc", "--sampler", "tpee",
        "--pruner", "ahsa", "--metric", "acuracy", "--precision", "fp8", "--study", "a\tb", "--storage", "here",
    )  # fmt: skip
    hints = ("'nas_small'", "'digits'", "'abc'", "'tpe'", "'asha'", "'accuracy'", "fp16", "control", "sqlite:///")
    check_refused(shell, ended, "9 mistakes in the command line", *hints)


def test_mistakes_of_a_resumed_study_are_listed_at_once(toy_shell: Shell) -> None:
    ended = toy_shell("resume", "toy-digits", "--trials", "0", "--pruner", "ahsa", "--executor", "slurm")
    assert ended.code == 2, ended
    assert "3 mistakes" in ended.err
    assert toy_shell("status", "toy-digits").out.startswith("study 'toy-digits': 4 of 4 trials ended")


@pytest.mark.parametrize(
    "content, hints",
    [
        (b"space: nas_small\n  trials: 3\n", ("line 2",)),
        (b"- space\n", ("a list", "field: value")),
        (b"\xff\xfe\x00", ("UTF-8",)),
        (b"space: nas_smal\ntrails: 3\n", ("2 mistakes", "'nas_small'", "'trials'")),
    ],
    ids=["indentation", "list", "binary", "fields"],
)
def test_broken_configuration_file_is_refused_with_its_name(
    shell: Shell, tmp_path: Path, content: bytes, hints: tuple[str, ...]
) -> None:
    file = tmp_path / "search.yaml"
    file.write_bytes(content)
    check_refused(shell, shell("search", "--config", file), str(file), *hints)


def test_study_of_other_settings_is_refused_and_stays_as_it_is(toy_shell: Shell) -> None:
    ended = toy_shell.search_toy("--trials", 9, "--seed", 5, "--direction", "maximize")
    assert ended.code == 2, ended
    assert "2 mistakes" in ended.err and "'minimize'" in ended.err
    assert len(toy_shell("show", "toy-digits").out.splitlines()) == 5


def test_trial_that_does_not_exist_is_refused_with_the_range(toy_shell: Shell) -> None:
    ended = toy_shell("show", "toy-digits", 4)
    assert ended.code == 2
    assert "it has 0 to 3" in ended.err


@pytest.mark.parametrize("debug_first", [True, False])
def test_debug_adds_the_traceback_wherever_it_stands(shell: Shell, debug_first: bool) -> None:
    arguments = ("--debug", "resume", "nobody") if debug_first else ("resume", "nobody", "--debug")
    ended = shell(*arguments)
    assert ended.code == 2
    assert "Traceback (most recent call last)" in ended.err
    assert "StudyNotFoundError" in ended.err
    assert ended.err.splitlines()[-1].startswith("automl: no study 'nobody'")


def test_debug_prints_no_password(shell: Shell) -> None:
    for storage in (NO_SERVER, "postgresql://me:hunter2/x@127.0.0.1:1/studies"):
        ended = shell(*SEARCH, "--storage", storage, "--debug")
        assert ended.code == 2, ended
        assert "Traceback" in ended.err
        assert "hunter2" not in ended.err + ended.out


def test_folder_that_cannot_be_made_is_refused(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 1, "--storage", "sqlite:////proc/automl/studies.db")
    check_refused(shell, ended, "cannot make the folder /proc/automl")


def test_file_in_the_place_of_the_folder_is_refused(shell: Shell) -> None:
    (shell.folder / "automl-runs").write_text("mine")
    ended = shell.search_toy("--trials", 1)
    assert ended.code == 2, ended
    assert "cannot make the folder" in ended.err
    assert [path.name for path in shell.folder.iterdir()] == ["automl-runs"]


def test_file_that_is_no_database_is_refused_and_stays_as_it_is(shell: Shell) -> None:
    file = shell.folder / "notes.db"
    file.write_text("my notes, which are no database at all" * 99)
    before = file.read_bytes()
    ended = shell.search_toy("--trials", 1, "--storage", f"sqlite:///{file}")
    assert ended.code == 2, ended
    assert "not a SQLite database" in ended.err
    assert file.read_bytes() == before
    assert [path.name for path in shell.folder.iterdir()] == ["notes.db"]


def test_own_process_ends_with_the_code_and_words(tmp_path: Path) -> None:
    with Command("search", "--space", "nas_smal", folder=tmp_path, environment=environment_of(tmp_path)) as command:
        ended = command.ended()
    assert ended.code == 2
    assert "did you mean 'nas_small'?" in ended.err
    assert not (tmp_path / "automl-runs").exists()


def test_no_arguments_show_the_help_and_are_wrong_usage(shell: Shell) -> None:
    ended = shell()
    assert ended.code == 2
    assert ended.out.startswith("Usage: ")
    assert ended.err == ""
