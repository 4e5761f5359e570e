import os
import signal
from contextlib import suppress

import pytest

from automl.interrupt import interruptible


def test_ctrl_c_that_is_swallowed_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_at_once_what_lets_it_through() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
    assert not reached


def test_handler_of_a_program_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen == [signal.SIGINT]
