"""Whether a cluster is there, by its processes and its port."""

import socket
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from automl.executors.ray.lifeline import MISSES, Lifeline
from automl.processes import is_at_work


@pytest.fixture
def server() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_lifeline_breaks_with_a_process_that_has_ended(server: "subprocess.Popen[bytes]") -> None:
    process = psutil.Process(server.pid)
    line = Lifeline([process, psutil.Process()])
    assert line.is_whole()
    server.kill()
    process.wait(10.0)
    assert not line.is_whole()


def test_dead_process_that_nobody_has_asked_after_is_not_at_work(server: "subprocess.Popen[bytes]") -> None:
    process = psutil.Process(server.pid)
    server.kill()
    while process.status() != psutil.STATUS_ZOMBIE:
        pass
    assert not is_at_work(process)


def test_lifeline_breaks_at_once_when_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as head:
        line = Lifeline([], head.getsockname())
        assert line.is_whole()
    assert not line.is_whole()


def test_head_that_does_not_answer_is_missed_only_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([TimeoutError] * (MISSES - 1) + [None] + [TimeoutError] * MISSES)

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        error = next(answers)
        if error is not None:
            raise error
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connect)
    line = Lifeline([], ("head", 6379))
    assert [line.is_whole() for _ in range(2 * MISSES)] == [True] * (2 * MISSES - 1) + [False]
