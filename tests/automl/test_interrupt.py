import os
import signal
from contextlib import suppress

import pytest

from automl.errors import SearchCutOffError
from automl.interrupt import Interrupt, interruptible


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


def test_second_signal_ends_what_is_being_started() -> None:
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(SearchCutOffError, match="interrupted by SIGTERM") as caught:
            signal.raise_signal(signal.SIGTERM)
        assert caught.value.exit_code == 143
        interrupt.take_over()
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.count == 3


def test_check_ends_a_wait_only_after_a_signal() -> None:
    with Interrupt() as interrupt:
        interrupt.check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(SearchCutOffError) as caught:
            interrupt.check()
        assert caught.value.exit_code == 130
