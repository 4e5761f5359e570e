"""Ctrl-C and SIGTERM: the first one asks for an orderly end, the second one for an immediate end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from automl.errors import SearchCutOffError

__all__ = ["Interrupt", "interruptible"]

_HANDLED = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Counts the signals while it is entered; in another thread than the main one it counts nothing.

    Args:
        notify: is called at each signal; does no more than to set something.

    Attributes:
        count: how many came so far.
        signal: the first one, or None.
    """

    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self._notify = notify
        self.count = 0
        self.signal: signal.Signals | None = None
        self._is_starting = True
        self._previous: dict[signal.Signals, signal.Handlers] = {}

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number, as a shell reports it: 130 for SIGINT, 143 for SIGTERM."""
        assert self.signal is not None
        return 128 + self.signal

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in _HANDLED:
            self._previous[number] = signal.getsignal(number)  # type: ignore[assignment]  # Handlers or a callable
        self._install()
        return self

    def take_over(self) -> None:
        """Take the signals again from a library that has put its own handlers in place: all is started.

        Until then a second signal ends what is done at that moment by an exception, as nobody else looks.
        """
        self._is_starting = False
        self._install()

    def _install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python delivers signals to the main thread, whose program decides about them
        for number in _HANDLED:
            signal.signal(number, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """End what waits where nobody else looks.

        Raises:
            SearchCutOffError: a signal has come.
        """
        if self.signal is not None:
            raise SearchCutOffError(f"interrupted by {self.signal.name} before the search began", self.exit_code)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.count == 0:
            self.signal = signal.Signals(number)
        self.count += 1
        self._notify()
        if self._is_starting and self.count > 1:
            self.check()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end what is done here by a KeyboardInterrupt, also where it meets code that swallows the exception.

    Python does so when the signal comes within a destructor or a callback, as while libraries are imported. A program
    with a handler of its own keeps it.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        came.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came.is_set():
        raise KeyboardInterrupt
