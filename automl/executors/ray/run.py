"""One job on the ranks of a worker group, as far as its driver knows."""

import time
from dataclasses import dataclass, field

from automl.executors.base import Job
from automl.executors.ray.watch import Watch
from automl.worker import Failure, Outcome

__all__ = ["Run"]

PEER_GRACE_S = 2.0
"""How long the ranks of a failed trial are given to tell their own side before the group is ended."""
KILLS_GRACE_S = 8.0
"""How long a machine may take to tell whether its kernel ended a process: a new process has to start there."""


@dataclass(slots=True, kw_only=True)
class Run:
    """A job that is under way.

    Attributes:
        job: the job.
        watch: judges whether it still moves.
        waiting: ranks that have not come to an end.
        outcomes: rank -> how it has ended.
        asked: ranks whose machines were asked what they know of the rank's end.
        pulsing: ranks that were asked how they fare, and have not answered.
        has_begun: whether rank 0 works on it.
        has_told: whether any rank was seen at work on it.
        failed_at: when the first failure was seen, by the monotonic clock.
    """

    job: Job
    watch: Watch
    waiting: set[int]
    outcomes: dict[int, Outcome | Failure] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    pulsing: set[int] = field(default_factory=set)
    has_begun: bool = False
    has_told: bool = False
    failed_at: float | None = None

    def begin(self) -> None:
        """Rank 0 works on it."""
        self.has_begun = True
        self.watch.begin(time.monotonic())

    @property
    def failures(self) -> list[Failure]:
        """How ranks have failed, in the order in which that was seen."""
        return [outcome for outcome in self.outcomes.values() if isinstance(outcome, Failure)]

    @property
    def first_cause(self) -> Failure:
        """The failure that is no consequence of another rank's."""
        return next((failure for failure in self.failures if not failure.is_follow_up), self.failures[0])

    @property
    def is_grace_over(self) -> bool:
        """Whether the other ranks, and the machines that were asked, have had time enough since the first failure."""
        grace_s = KILLS_GRACE_S if self.asked else PEER_GRACE_S
        return self.failed_at is not None and time.monotonic() > self.failed_at + grace_s
