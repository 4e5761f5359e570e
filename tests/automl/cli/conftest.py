import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.commands import REPOSITORY, Ended, environment_of

TOY = ("--metric", "loss", "--executor", "inline", "--sampler", "random", "--pruner", "none", "--epochs", "3")
"""A search in the command's own process that takes no time."""


class WarmCommands:
    """Runs commands one after the other in children of one process that has everything imported."""

    def __init__(self, server: "subprocess.Popen[str]", outputs: Path) -> None:
        self._server = server
        self._outputs = outputs

    def run(self, arguments: tuple[str, ...], folder: Path, environment: dict[str, str]) -> Ended:
        assert self._server.stdin is not None and self._server.stdout is not None
        out, err = self._outputs / "out", self._outputs / "err"
        request = {
            "arguments": arguments, "folder": str(folder), "environment": environment, "out": str(out), "err": str(err)
        }  # fmt: skip
        began = time.monotonic()
        print(json.dumps(request), file=self._server.stdin, flush=True)
        code = int(self._server.stdout.readline())
        return Ended(code=code, out=out.read_text(), err=err.read_text(), seconds=time.monotonic() - began)


@pytest.fixture(scope="session")
def warm_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.automl.cli.warm"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield WarmCommands(server, tmp_path_factory.mktemp("outputs"))
        assert server.stdin is not None
        server.stdin.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A person's working folder and environment, and the commands typed in it."""

    warm: WarmCommands
    folder: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str | int | Path, **environment: str) -> Ended:
        return self.warm.run(tuple(map(str, arguments)), self.folder, {**self.environment, **environment})

    def search_toy(self, *arguments: str | int | Path, space: str = "tests.helpers.toy") -> Ended:
        return self("search", "--space", space, *TOY, *arguments)


def shell_in(warm: WarmCommands, folder: Path) -> Shell:
    work = folder / "work"
    work.mkdir()
    return Shell(warm=warm, folder=work, environment=environment_of(folder))


@pytest.fixture
def shell(warm_commands: WarmCommands, tmp_path: Path) -> Shell:
    """An empty working folder."""
    return shell_in(warm_commands, tmp_path)


@pytest.fixture(scope="session")
def toy_shell(warm_commands: WarmCommands, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A working folder with a finished study of 4 trials, named toy-digits; for looking only."""
    shell = shell_in(warm_commands, tmp_path_factory.mktemp("looking"))
    ended = shell.search_toy("--trials", 4)
    assert ended.code == 0, ended
    return shell
