"""What Optuna's samplers are shown of a study, so that their cost does not grow without end.

Of a long study that is what they would look at most: the best trials, what runs, the newest ones, and an even spread of
the rest. Each trial is turned into one of Optuna's once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from automl.objective import is_infeasible, observed_value, to_loss
from automl.standings import Standings
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["HISTORY", "BoundedHistory", "FrozenTrials", "ResultsAndPending", "frozen"]

HISTORY = 400
"""Trials up to which a study is shown whole."""
BEST = 25
"""As many as Optuna's estimator takes for good ones at most."""


class BoundedHistory:
    """Chooses the trials of a long study that samplers are shown; a pure function with a memory.

    Args:
        direction: whether larger or smaller objectives are better.
        most: trials up to which a study is shown whole.
    """

    def __init__(self, direction: Direction, most: int = HISTORY) -> None:
        self._direction: Direction = direction
        self._most = most
        self._standings = Standings(self._contests)

    def __call__(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """All trials of a short study, or about `most` of a long one, in the order of their numbers."""
        if len(trials) <= self._most:
            return trials
        self._standings.look(trials)
        newest, older = trials[-self._most // 2 :], trials[: -self._most // 2]
        spread = older[:: -(-len(older) // (self._most // 4))]
        chosen = {trial.id: trial for trial in (*spread, *newest, *self._best(), *self._under_way())}
        return sorted(chosen.values(), key=lambda trial: trial.number)

    def _best(self) -> list[Trial]:
        """The best of those that ended by themselves, and of the others those that came farthest."""
        epochs = sorted((at for at in self._standings.contests if isinstance(at, int)), reverse=True)
        stopped = [entry for epoch in epochs for entry in self._standings.at(epoch)[:BEST]][:BEST]
        return [self._standings.trial(entry) for entry in (*self._standings.at("complete")[:BEST], *stopped)]

    def _under_way(self) -> list[Trial]:
        """What runs, and the newest of what cannot be trained."""
        newest = slice(-self._most // 4, None)
        entries = (*self._standings.at("running")[newest], *self._standings.at("infeasible")[newest])
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


def frozen(
    trial: Trial, distributions: Mapping[str, BaseDistribution], state: OptunaState, **facts: Any
) -> FrozenTrial | None:
    """One of Optuna's trials with this configuration, or None: it has a value outside the present ranges.

    Args:
        trial: where the configuration is from.
        distributions: the present ranges.
        state: what it is shown as.
        facts: its value, reports or constraints.
    """
    if not _is_within(trial, distributions):
        return None
    return optuna.trial.create_trial(
        state=state,
        params=dict(trial.configuration),
        distributions={name: distributions[name] for name in trial.configuration},
        **facts,
    )


def _is_within(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> bool:
    return all(
        name in distributions and distributions[name]._contains(distributions[name].to_internal_repr(value))
        for name, value in trial.configuration.items()
    )


class ResultsAndPending:
    """A study for methods that know results and pending trials, and nothing else.

    What was stopped counts by its last report, and what cannot be trained is as bad as the worst result.

    Args:
        direction: whether larger or smaller objectives are better.
        most: trials up to which a study is shown whole.
    """

    def __init__(self, direction: Direction, most: int = HISTORY) -> None:
        self._direction: Direction = direction
        self._history = BoundedHistory(direction, most)
        self._results, self._bad = FrozenTrials(_result), FrozenTrials(_bad)
        self._pending = FrozenTrials(_pending)

    def __call__(
        self, trials: Sequence[Trial], distributions: Mapping[str, BaseDistribution]
    ) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
        """Trials with a value, in the order of their numbers, and those that have none yet."""
        shown = self._history(trials)
        results = self._results(shown, distributions)
        if not results:
            return [], self._pending(shown, distributions)
        worst = max((frozen.value or 0.0 for frozen in results), key=lambda value: to_loss(value, self._direction))
        bad = self._bad(shown, distributions)[-len(results) :]  # they crowd out no results
        for frozen in bad:
            frozen.value = worst
        return [*results, *bad], self._pending(shown, distributions)


def _result(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial | None:
    value = observed_value(trial)
    if value is None or not math.isfinite(value):
        return None
    return frozen(trial, distributions, OptunaState.COMPLETE, value=value)


def _bad(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial | None:
    return frozen(trial, distributions, OptunaState.COMPLETE, value=0.0) if is_infeasible(trial) else None


def _pending(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial | None:
    is_pending = trial.state in (TrialState.RUNNING, TrialState.PAUSED) and observed_value(trial) is None
    return frozen(trial, distributions, OptunaState.RUNNING) if is_pending else None
