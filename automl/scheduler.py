"""What to do next: the sampler's and the pruner's answers as values, without a database, a clock or a process."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from automl.pruners.base import Pruner
from automl.randomness import suggestion_generator
from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from trainers.reporting import Decision

__all__ = ["Action", "Done", "Refuse", "RejectQueued", "Resume", "Scheduler", "Start", "StartQueued", "Wait"]

MAX_REPEATS = 50
"""Draws for one trial that may be known already before the last one is tried again, as in a nearly exhausted space."""
MAX_REFUSALS_IN_A_ROW = 500
"""Infeasible configurations without a feasible one after which a search gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Create trial `number` with this configuration and train it."""

    number: int
    configuration: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Record trial `number` as INFEASIBLE: its configuration cannot be trained."""

    number: int
    configuration: Configuration
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartQueued:
    """Train a trial that a person has enqueued; the sampler has completed what the person left open."""

    trial: Trial
    configuration: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectQueued:
    """End a trial that a person has enqueued: it is not of this space, or cannot be trained."""

    trial: Trial
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Go on with a trial that was paused, or whose owner is gone."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to start now; running trials may change that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing to start ever again."""

    reason: str


Action: TypeAlias = Start | StartQueued | RejectQueued | Refuse | Resume | Wait | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Joins a sampler and a pruner to one study; a pure function of the trials it is shown.

    Attributes:
        space: what is searched.
        sampler: proposes configurations.
        pruner: judges running trials.
        budget: trials that may be claimed in all.
        seed: the study's seed.
    """

    space: SearchSpace
    sampler: Sampler
    pruner: Pruner
    budget: int
    seed: int
    _keys: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def next_action(self, trials: Sequence[Trial], claimable: Sequence[Trial]) -> Action:
        """Choose the next thing to do for one free slot.

        Interrupted trials go first: they hold places in the budget. Then come a person's own trials, then the
        sampler's. The first proposal is not the sampler's, but the space's defaults, which are known to be sensible.

        Args:
            trials: the whole study in order of the numbers.
            claimable: those among them that may be taken over now.
        """
        if claimable:
            return Resume(trial=claimable[0])
        if sum(trial.state.is_counted for trial in trials) >= self.budget:
            running = any(not trial.state.is_ended and trial.state.is_counted for trial in trials)
            return Wait() if running else Done(reason=f"all {self.budget} trials ended")
        queued = next((trial for trial in trials if trial.state is TrialState.QUEUED), None)
        if queued is not None:
            return self._start_queued(queued, trials)
        if _refusals_at_the_end(trials) >= MAX_REFUSALS_IN_A_ROW:
            return Done(
                reason=f"the last {MAX_REFUSALS_IN_A_ROW} proposals were all infeasible; widen the search space"
            )
        return self._propose(trials)

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Judge a running trial after its newest report; a trial at its last epoch is left to complete."""
        if trial.last_epoch >= self.pruner.epochs:
            return Decision.CONTINUE
        return self.pruner.decide(trial, trials)

    def _start_queued(self, queued: Trial, trials: Sequence[Trial]) -> StartQueued | RejectQueued:
        chosen = dict(queued.configuration)
        if any(name not in chosen for name in self.space.parameters):
            suggested = self.sampler.suggest(self.space, trials, suggestion_generator(self.seed, queued.number))
            chosen = {**suggested, **chosen}
        try:
            configuration = self.space.validate(chosen)
        except InvalidConfigurationError as error:
            return RejectQueued(trial=queued, reason=str(error))
        reason = self.space.refusal(configuration)
        if reason is not None:
            return RejectQueued(trial=queued, reason=reason)
        return StartQueued(trial=queued, configuration=configuration)

    def _propose(self, trials: Sequence[Trial]) -> Action:
        known = {self._key_of(trial) for trial in trials if self._is_of_this_space(trial)}
        size = self.space.size()
        if size is not None and len(known) >= size:
            running = any(trial.state is TrialState.RUNNING for trial in trials)
            return Wait() if running else Done(reason=f"search space exhausted: {len(known)} of {size} tried")
        number = max((trial.number for trial in trials), default=-1) + 1
        if number == 0 and self.space.defaults is not None:
            return Start(number=number, configuration=self.space.defaults)
        rng = suggestion_generator(self.seed, number)
        for _ in range(MAX_REPEATS):
            configuration = self.sampler.suggest(self.space, trials, rng)
            if self.space.key(configuration) not in known:
                break
        reason = self.space.refusal(configuration)
        if reason is not None:
            return Refuse(number=number, configuration=configuration, reason=reason)
        return Start(number=number, configuration=configuration)

    def _key_of(self, trial: Trial) -> str:
        """The key of a trial's configuration, which never changes: it is worked out once for all proposals."""
        if trial.id not in self._keys:
            self._keys[trial.id] = self.space.key(trial.configuration)
        return self._keys[trial.id]

    def _is_of_this_space(self, trial: Trial) -> bool:
        return trial.configuration.keys() == self.space.parameters.keys()


def _refusals_at_the_end(trials: Sequence[Trial]) -> int:
    return sum(1 for _ in takewhile(lambda trial: trial.state is TrialState.INFEASIBLE, reversed(trials)))
