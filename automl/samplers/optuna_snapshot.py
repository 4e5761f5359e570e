"""What Optuna's samplers are shown of a study, so that their cost does not grow without end.

Of a long study that is what they would look at most: the best trials, what runs, the newest ones, and an even spread of
the rest. Each trial is turned into one of Optuna's once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from automl.objective import is_infeasible, to_loss
from automl.standings import Standings
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["HISTORY", "BoundedHistory", "FrozenTrials"]

HISTORY = 400
"""Trials up to which a study is shown whole."""
BEST = 25
"""As many as Optuna's estimator takes for good ones at most."""


class BoundedHistory:
    """Chooses the trials of a long study that samplers are shown; a pure function with a memory.

    Args:
        direction: whether larger or smaller objectives are better.
    """

    def __init__(self, direction: Direction) -> None:
        self._direction: Direction = direction
        self._standings = Standings(self._contests)

    def __call__(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """All trials of a short study, or about `HISTORY` of a long one, in the order of their numbers."""
        if len(trials) <= HISTORY:
            return trials
        self._standings.look(trials)
        newest, older = trials[-HISTORY // 2 :], trials[: -HISTORY // 2]
        spread = older[:: -(-len(older) // (HISTORY // 4))]
        chosen = {trial.id: trial for trial in (*spread, *newest, *self._best(), *self._under_way())}
        return sorted(chosen.values(), key=lambda trial: trial.number)

    def _best(self) -> list[Trial]:
        """The best of those that ended by themselves, and of the others those that came farthest."""
        epochs = sorted((at for at in self._standings.contests if isinstance(at, int)), reverse=True)
        stopped = [entry for epoch in epochs for entry in self._standings.at(epoch)[:BEST]][:BEST]
        return [self._standings.trial(entry) for entry in (*self._standings.at("complete")[:BEST], *stopped)]

    def _under_way(self) -> list[Trial]:
        """What runs, and the newest of what cannot be trained."""
        entries = (*self._standings.at("running")[-HISTORY // 4 :], *self._standings.at("infeasible")[-HISTORY // 4 :])
        return [self._standings.trial(entry) for entry in entries]

    def _contests(self, trial: Trial) -> Mapping[Any, float] | None:
        if trial.state is TrialState.COMPLETE and trial.value is not None:
            return {"complete": to_loss(trial.value, self._direction)}
        if trial.state in (TrialState.PRUNED, TrialState.PAUSED) and trial.reports:
            return {trial.last_epoch: to_loss(trial.reports[trial.last_epoch], self._direction)}
        if trial.state is TrialState.RUNNING:
            return {"running": 0.0}
        return {"infeasible": 0.0} if is_infeasible(trial) else None


class FrozenTrials:
    """Turns trials into Optuna's, each once as long as it is asked for.

    Args:
        freeze: makes one; None: Optuna cannot learn from it.
    """

    def __init__(self, freeze: "Callable[[Trial, Mapping[str, BaseDistribution]], FrozenTrial | None]") -> None:
        self._freeze = freeze
        self._known: dict[int, tuple[Trial, FrozenTrial | None]] = {}
        self._distributions: Mapping[str, BaseDistribution] = {}

    def __call__(self, trials: Sequence[Trial], distributions: Mapping[str, BaseDistribution]) -> list[FrozenTrial]:
        """Those that Optuna can learn from."""
        if distributions != self._distributions:
            self._known, self._distributions = {}, distributions
        known = {}
        for trial in trials:
            of, frozen = self._known.get(trial.id, (None, None))
            known[trial.id] = (trial, frozen if of is trial else self._freeze(trial, distributions))
        self._known = known
        return [frozen for _, frozen in known.values() if frozen is not None]
