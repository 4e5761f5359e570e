"""Work that waits for the database or for files, in threads: in order for each trial, side by side for different ones.

What takes its time, such as a row that somebody else has locked, holds up the later work of its own trial; that of
other trials only when it keeps every thread busy. So each kind of work has threads of its own.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["BackgroundWork"]

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """A piece of work, and what follows when it has ended."""

    work: Callable[[], Any]
    then: Callable[[Future[Any]], None]
    ended: Future[Any] = field(default_factory=Future)


class BackgroundWork:
    """A few threads that work off one line of work for each key; used by one thread.

    What follows a piece of work runs in the user's thread, within `settle`.

    Args:
        threads: how many pieces of work may be under way at a time, at least 1.
        wake: is called by a thread when `settle` has something to do; safe for threads.
    """

    def __init__(self, threads: int, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._lines: dict[int, deque[_Item]] = {}  # the first of each line is under way or next
        self._ended: deque[_Item] = deque()
        self._next: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        # Daemons: work that hangs on a server that is away must not hold up the end of the process.
        self._threads = [
            threading.Thread(target=self._run, name=f"background-work-{number}", daemon=True)
            for number in range(threads)
        ]
        self._has_begun = False

    def put(self, key: int, work: Callable[[], _Result], then: Callable[[Future[_Result]], None] | None = None) -> None:
        """Do some work after all that was put in before with the same key.

        Args:
            key: names the line, such as a trial's key.
            work: is called in a thread.
            then: is called by `settle` with what the work gave; None: only its error is raised there.
        """
        self._begin()
        item = _Item(work=work, then=then or _raise_error)
        with self._changed:
            line = self._lines.setdefault(key, deque())
            line.append(item)
            is_first = len(line) == 1
        if is_first:
            self._next.put(key)

    def settle(self) -> None:
        """Let follow what follows the work that has ended; an error of that is raised, and the rest waits."""
        while (item := self._pop_ended()) is not None:
            item.then(item.ended)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all work has ended, without what follows it; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines, timeout_s)

    @property
    def is_idle(self) -> bool:
        """Whether all work has ended, and what follows it, too."""
        with self._changed:
            return not self._lines and not self._ended

    def close(self) -> None:
        """Let the threads end when they have done what was put in."""
        for _ in self._threads:
            self._next.put(None)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for thread in self._threads:
                thread.start()

    def _pop_ended(self) -> _Item | None:
        with self._changed:
            return self._ended.popleft() if self._ended else None

    def _run(self) -> None:
        while (key := self._next.get()) is not None:
            with self._changed:
                item = self._lines[key][0]
            try:
                item.ended.set_result(item.work())
            except BaseException as error:
                item.ended.set_exception(error)
            with self._changed:
                line = self._lines[key]
                line.popleft()
                self._ended.append(item)
                if line:
                    self._next.put(key)
                else:
                    del self._lines[key]
                self._changed.notify_all()
            self._wake()


def _raise_error(ended: Future[Any]) -> None:
    ended.result()
