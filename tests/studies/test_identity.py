import multiprocessing
import os
import signal
import socket
from typing import Any

from studies.identity import is_alive, process_identity

FORK = multiprocessing.get_context("fork")


def test_own_process_is_alive() -> None:
    host, boot, namespace, pid, start = process_identity().split("/")
    assert (host, pid) == (socket.gethostname(), str(os.getpid()))
    assert boot
    assert int(namespace) > 0
    assert start
    assert is_alive(process_identity()) is True


def test_killed_process_is_dead_even_before_its_parent_asked_for_it() -> None:
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=_tell_identity_and_wait, args=(theirs,))
    child.start()
    owner = ours.recv()
    assert child.pid is not None
    assert is_alive(owner) is True
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still a zombie
    assert is_alive(owner) is False
    child.join()
    assert is_alive(owner) is False


def test_number_given_out_again_is_another_process() -> None:
    host, boot, namespace, pid, start = process_identity().split("/")
    assert is_alive(f"{host}/{boot}/{namespace}/{pid}/{int(start) - 1}") is False


def test_owner_in_another_place_cannot_be_told() -> None:
    host, boot, namespace, pid, start = process_identity().split("/")
    other_container = f"{host}/{boot}/{int(namespace) + 1}/{pid}/{start}"
    other_boot = f"{host}/00000000-0000-0000-0000-000000000000/{namespace}/{pid}/{start}"
    for owner in (other_container, other_boot, "somebody", "", "a/b/c/d/e/f", f"{host}/{boot}/{namespace}/x/{start}"):
        assert is_alive(owner) is None


def _tell_identity_and_wait(pipe: Any) -> None:
    pipe.send(process_identity())
    signal.pause()
