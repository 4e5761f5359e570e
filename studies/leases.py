"""Signs of life of this process, given in a thread of its own, whatever the process is busy with.

They keep its leases, and count the time that the study is searched.
"""

import logging
import threading
import time
from collections.abc import Iterable
from types import TracebackType

from studies.errors import StorageAwayError, StorageError
from studies.study import Study
from studies.trial import Lease

__all__ = ["LeaseKeeper"]

_log = logging.getLogger(__name__)

_RENEWALS_PER_TTL = 6
"""A database that is away for four fifths of `ttl_s` costs no lease."""
_FAREWELL_S = 1.0
"""How long the last sign of life may take: nobody waits for more than that when a search has ended."""


class LeaseKeeper:
    """Renews leases while it is entered as a `with` statement, and counts the study's time; safe for threads.

    When the database cannot be reached it goes on trying, and says when it answers again. After `patience_s` without an
    answer every lease counts as lost: other machines may have taken the trials long ago.

    Args:
        study: the study of the leases.
        ttl_s: seconds that a renewed lease lasts.
        patience_s: how long the database may be away; None: ten times `ttl_s`.
    """

    def __init__(self, study: Study, *, ttl_s: float = 60.0, patience_s: float | None = None) -> None:
        if ttl_s <= 0.0:
            raise ValueError(f"ttl_s={ttl_s} is no time to keep a lease; give seconds above 0")
        self._study = study
        self._ttl_s = ttl_s
        self._interval_s = ttl_s / _RENEWALS_PER_TTL
        self._patience_s = 10.0 * ttl_s if patience_s is None else patience_s
        self._lock = threading.Lock()
        self._held: set[Lease] = set()
        self._lost: set[Lease] = set()
        self._stopped = threading.Event()
        self._answered_at = time.monotonic()
        self._is_away = False
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)

    def add(self, lease: Lease) -> None:
        """Keep this lease alive from now on."""
        with self._lock:
            self._held.add(lease)

    def discard(self, lease: Lease) -> None:
        """Leave this lease alone: its trial has ended, was given away or is lost; an unknown one is no error."""
        with self._lock:
            self._held.discard(lease)
            self._lost.discard(lease)

    def lost(self) -> frozenset[Lease]:
        """Leases that another process has taken, or whose trial was ended; stop their trials and discard them."""
        with self._lock:
            return frozenset(self._lost)

    def __enter__(self) -> "LeaseKeeper":
        self._answered_at = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        self._renew(self._interval_s)
        while not self._stopped.wait(self._interval_s):
            # A renewal that takes longer than until the next one is no use.
            self._renew(self._interval_s)
        self._renew(_FAREWELL_S, is_last=True)

    def _renew(self, patience_s: float, *, is_last: bool = False) -> None:
        with self._lock:
            held = tuple(self._held - self._lost)
        try:
            lost = self._study.renew(held, ttl_s=self._ttl_s, patience_s=patience_s, is_last=is_last)
        except StorageError as error:
            self._note_failure(error)
        else:
            self._note_answer(lost)

    def _note_answer(self, lost: Iterable[Lease]) -> None:
        if self._is_away:
            _log.warning("database answers again, leases are renewed")
        self._is_away, self._answered_at = False, time.monotonic()
        self._mark_lost(lost)

    def _note_failure(self, error: StorageError) -> None:
        # That it is away was said by whoever met it first.
        if not self._is_away and not isinstance(error, StorageAwayError):
            _log.warning("leases cannot be renewed, trying again: %s", error)
        self._is_away = True
        if time.monotonic() - self._answered_at > self._patience_s:
            with self._lock:
                held = tuple(self._held)
            self._mark_lost(held)

    def _mark_lost(self, leases: Iterable[Lease]) -> None:
        with self._lock:
            # A trial that ended while the renewal was on its way was discarded, and is not lost.
            self._lost |= self._held.intersection(leases)
