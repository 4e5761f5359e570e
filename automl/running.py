"""The trials that this process trains at the moment, and what each of them waits for."""

from collections.abc import Iterator
from dataclasses import dataclass

from automl.executors.base import Failed, Finished, Job, Reported
from automl.outbox import KeptResult
from search_spaces.configuration import Configuration
from studies.leases import LeaseKeeper
from studies.trial import Lease

__all__ = ["LiveTrial", "LiveTrials"]


@dataclass(slots=True, kw_only=True, eq=False)
class LiveTrial:
    """A trial of ours that is being trained, or about to be.

    Attributes:
        lease: our right to write to it.
        configuration: what is trained.
        parent: number of the trial whose weights it begins with; None: they are drawn.
        job: what the executor knows it by; None while the checkpoint to go on from is looked for.
        storing: what the database is being given; the trial's next event waits for that. None: nothing.
        waiting: the event that waits; there is one at most, since a training waits for the answer to its report.
        is_cancelled: whether the executor was told to end it.
    """

    lease: Lease
    configuration: Configuration
    parent: int | None = None
    job: Job | None = None
    storing: KeptResult | None = None
    waiting: Reported | Finished | Failed | None = None
    is_cancelled: bool = False

    @property
    def number(self) -> int:
        """The trial's number in its study."""
        return self.lease.number


class LiveTrials:
    """All trials of ours that are being trained, with their leases kept alive.

    Args:
        keeper: keeps the leases.
    """

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper
        self._trials: dict[int, LiveTrial] = {}

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[LiveTrial]:
        return iter(list(self._trials.values()))

    def __contains__(self, live: LiveTrial) -> bool:
        return self._trials.get(live.lease.trial_id) is live

    def of(self, job: Job) -> LiveTrial | None:
        """The trial that a job trains; None when it was given up."""
        return next((live for live in self._trials.values() if live.job is not None and live.job.id == job.id), None)

    def holding(self, lease: Lease) -> LiveTrial | None:
        """The trial with this lease; None when there is none."""
        live = self._trials.get(lease.trial_id)
        return live if live is not None and live.lease == lease else None

    def add(self, live: LiveTrial) -> None:
        """Take up a trial; its lease is kept already."""
        self._trials[live.lease.trial_id] = live

    def forget(self, live: LiveTrial) -> None:
        """Leave a trial alone that has ended, rests, or is another process's now."""
        self._keeper.discard(live.lease)
        del self._trials[live.lease.trial_id]
