"""Whether a search is to end, why, and how long its running trials may still take."""

import time

from automl.interrupt import Interrupt
from automl.stopping import Stop, StoppingRule
from studies.study import View

__all__ = ["GRACE_S", "StopSign"]

GRACE_S = 5.0
"""How long running trials may take to reach the end of their epoch after the first signal."""


class StopSign:
    """Remembers the first reason to end; a person's signal is more urgent than every other one.

    Args:
        rule: the limits of the study.
        interrupt: a person's signals.

    Attributes:
        stop: the reason; None: the search goes on.
        has_failed: whether the search ends because nothing good would come of going on.
    """

    def __init__(self, rule: StoppingRule, interrupt: Interrupt) -> None:
        self._rule = rule
        self._interrupt = interrupt
        self._raised_at = 0.0
        self.stop: Stop | None = None
        self.has_failed = False

    @property
    def began_at(self) -> float:
        """When this run began, by the database's clock."""
        return self._rule.began_at

    def heed(self, view: View) -> None:
        """Look whether a signal came, or the study has had enough."""
        if self._interrupt.signal is not None:
            self._raise(Stop(reason=f"interrupted by {self._interrupt.signal.name}", grace_s=GRACE_S))
        elif (stop := self._rule.stop(view.trials, view.standing)) is not None:
            self._raise(stop)

    def fail(self, reason: str) -> None:
        """End the search as failed; what runs is paused at its next report."""
        self.has_failed = True
        self._raise(Stop(reason=reason))

    @property
    def is_grace_over(self) -> bool:
        """Whether running trials have had their time to reach the end of an epoch, or a second signal came."""
        if self.stop is None or self._interrupt.count > 1:
            return self._interrupt.count > 1
        return self.stop.grace_s is not None and time.monotonic() - self._raised_at > self.stop.grace_s

    def _raise(self, stop: Stop) -> None:
        if self.stop is None or (self._interrupt.count and self.stop.grace_s is None):
            self.stop, self._raised_at = stop, time.monotonic()
