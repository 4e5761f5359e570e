"""No early stopping: every trial is trained to its last epoch."""

from collections.abc import Sequence

from automl.pruners.base import Pruner
from studies.trial import Trial
from trainers.reporting import Decision

__all__ = ["NoPruner"]


class NoPruner(Pruner):
    """Never stops a trial."""

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Let it train on."""
        return Decision.CONTINUE
