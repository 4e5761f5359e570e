"""Help answers at once, names every flag, and each flag of a search is a field of its specification."""

import os
import re
import statistics
import subprocess
import sys

import pytest

from automl.cli.application import VERBS
from automl.spec import SearchSpec
from tests.automl.cli.conftest import Shell
from tests.helpers.commands import REPOSITORY
from trainers.data.spec import DataSpec

SEARCH_FLAGS = (
    "--config", "--quiet",
    "--space", "--data", "--study", "--storage", "--artifacts", "--trials", "--timeout", "--target-value",
    "--warm-start", "--metric", "--direction", "--epochs", "--sampler", "--pruner", "--concurrency",
    "--sampler-option", "--pruner-option",
    "--inherit-weights",
    "--procs-per-trial", "--gpus-per-trial", "--cpus-per-trial", "--memory-per-trial", "--spread", "--precision",
    "--seed", "--executor", "--ray-address", "--wait-for-nodes", "--trial-timeout", "--stall-timeout", "--max-retries",
    "--max-failures", "--max-params", "--max-flops", "--max-latency-ms", "--max-memory-mib",
    "--trainer", "--script", "--set", "--parallel", "--tensorboard", "--profile",
    "--test-source", "--target", "--text", "--tokens", "--vocabulary", "--max-length", "--ignore",
    "--drop-missing-target", "--image-size", "--validation-fraction", "--test-fraction", "--split-seed",
)  # fmt: skip
RESUME_FLAGS = (
    "--quiet",
    "--data", "--storage", "--artifacts", "--trials", "--timeout", "--target-value", "--sampler", "--pruner",
    "--sampler-option", "--pruner-option",
    "--concurrency", "--procs-per-trial", "--gpus-per-trial", "--cpus-per-trial", "--memory-per-trial", "--spread",
    "--precision", "--executor", "--ray-address", "--wait-for-nodes", "--trial-timeout", "--stall-timeout",
    "--max-retries", "--max-failures", "--max-params", "--max-flops", "--max-latency-ms", "--max-memory-mib",
    "--space", "--trainer", "--script", "--parallel", "--inherit-weights",
    "--test-source", "--tensorboard", "--profile",
)  # fmt: skip
NOT_FIELDS = {"--config", "--quiet"}
HEAVY = {"torch", "ray", "optuna", "sqlalchemy", "pandas", "plotly", "sklearn", "scipy", "numpy"}


def flags_of(shell: Shell, verb: str) -> dict[str, str]:
    """Flag -> its text, as the help shows them."""
    ended = shell(verb, "--help")
    assert ended.code == 0, ended
    assert ended.err == ""
    _, *options = re.split(r"^  (?:-\w, )?(?=--)", ended.out, flags=re.MULTILINE)
    flags = {option.split()[0]: " ".join(option.split()[1:]) for option in options}
    del flags["--help"]
    return flags


def test_help_costs_less_than_half_a_second() -> None:
    """The median CPU time of five starts: unlike the time on the clock it does not grow with other processes' work."""

    def cpu_s() -> float:
        command = [sys.executable, "-m", "automl", "--help"]
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    assert statistics.median(cpu_s() for _ in range(5)) < 0.5


@pytest.mark.parametrize(
    "arguments, light",
    [
        pytest.param(["--help"], HEAVY | {"pydantic", "yaml", "rich"}, id="help"),
        pytest.param(["--version"], HEAVY | {"pydantic", "yaml", "rich"}, id="version"),
        pytest.param(["search", "--help"], HEAVY, id="help of search"),
        pytest.param(["status", "--help"], HEAVY, id="help of status"),
        pytest.param(["enqueue", "--help"], HEAVY, id="help of enqueue"),
        pytest.param(["stop", "--help"], HEAVY, id="help of stop"),
        pytest.param(["simulate", "--help"], HEAVY, id="help of simulate"),
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str], light: set[str]) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['automl', *{arguments}]\n"
        "from automl.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print(*sorted({light} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert ended.stderr.split() == []
    assert ended.stdout


def test_help_lists_every_verb_with_what_it_does(shell: Shell) -> None:
    ended = shell("--help")
    assert ended.code == 0
    for verb, (_, text) in VERBS.items():
        assert f" {verb} {text} " in f"{' '.join(ended.out.split())} "
    assert shell("-h").code == 0


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_own_help(shell: Shell, verb: str) -> None:
    for flag in ("--help", "-h"):
        ended = shell(verb, flag)
        assert ended.code == 0, ended
        assert re.match(rf"Usage: .*\b{verb}\b", ended.out)
        assert VERBS[verb][1] in " ".join(ended.out.split()), "the list of verbs and the verb's own help say the same"
    assert not any(shell.folder.iterdir())


def test_version_is_that_of_the_package(shell: Shell) -> None:
    from automl import __version__

    assert shell("--version").out == f"automl {__version__}\n"


@pytest.mark.parametrize("verb, flags", [("search", SEARCH_FLAGS), ("resume", RESUME_FLAGS)])
def test_flags_are_these_and_each_is_a_field_with_a_text(shell: Shell, verb: str, flags: tuple[str, ...]) -> None:
    found = flags_of(shell, verb)
    assert sorted(found) == sorted(flags)
    for flag in set(found) - NOT_FIELDS:
        assert flag.removeprefix("--").replace("-", "_") in {**SearchSpec.model_fields, **DataSpec.model_fields}
    without_text = [flag for flag, text in found.items() if not text.endswith(".") or len(text.split()) < 4]
    assert not without_text


def test_every_field_of_the_specification_is_a_flag_of_search() -> None:
    fields = {*SearchSpec.model_fields, *DataSpec.model_fields} - {"source"}  # which is --data
    assert {f"--{name.replace('_', '-')}" for name in fields} == set(SEARCH_FLAGS) - NOT_FIELDS
