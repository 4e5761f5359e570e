"""Which of Tune's names belongs to which trial of the study.

A trial is held while this process has its lease. One that Tune may go on with, and that is not held meanwhile, is
"left": paused by the pruner, to be started again by Tune after an error, or restored from Tune's own checkpoint.
"""

import logging
from collections.abc import Iterator, Mapping

from studies.leases import LeaseKeeper
from studies.trial import Lease

__all__ = ["HeldTrials"]

_log = logging.getLogger(__name__)


class HeldTrials:
    """The trials of one Tune program by Tune's names; contains the held ones. Used by one thread.

    Args:
        keeper: keeps the leases.
    """

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper
        self._leases: dict[str, Lease] = {}
        self._left: dict[str, int] = {}

    def __contains__(self, tune_id: str) -> bool:
        return tune_id in self._leases

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._leases))

    def __getitem__(self, tune_id: str) -> Lease:
        """The lease of a held trial."""
        return self._leases[tune_id]

    def knows(self, tune_id: str) -> bool:
        """Whether the name is that of an unfinished trial of the study."""
        return tune_id in self._leases or tune_id in self._left

    @property
    def is_empty(self) -> bool:
        """Whether no trial of Tune's is held or left."""
        return not self._leases and not self._left

    def hold(self, tune_id: str, lease: Lease) -> None:
        """Have a trial under this name, whose lease is kept already."""
        self._leases[tune_id] = lease

    def leave(self, tune_id: str) -> None:
        """Let go of a trial that Tune is going to start again."""
        self._left[tune_id] = self._leases[tune_id].trial_id
        self.forget(tune_id)

    def pop_left(self, tune_id: str) -> int | None:
        """The key of a left trial, which is left no longer; None when it was not."""
        return self._left.pop(tune_id, None)

    def forget(self, tune_id: str) -> None:
        """Let go of a trial that has ended or rests."""
        self._keeper.discard(self._leases.pop(tune_id))

    def lose(self, tune_id: str, why: str) -> None:
        """Let go of a trial that belongs to another process now."""
        _log.warning("trial=%d %s; it goes on elsewhere", self._leases[tune_id].number, why)
        self.forget(tune_id)

    def lose_taken(self) -> frozenset[str]:
        """Let go of the trials that other processes have taken over; their names."""
        gone = self._keeper.lost()
        names = frozenset(name for name, lease in self._leases.items() if lease in gone)
        for name in names:
            self.lose(name, "lease lost")
        return names

    # Tune's own checkpoint of the experiment

    def names(self) -> Mapping[str, int]:
        """Tune's names of the trials that have not ended, with their keys in the study."""
        return {**{name: lease.trial_id for name, lease in self._leases.items()}, **self._left}

    def restore(self, names: Mapping[str, int]) -> None:
        """Leave the trials that had these names in an earlier run of the program."""
        self._left.update({name: key for name, key in names.items() if name not in self._leases})
