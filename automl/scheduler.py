"""What to do next: the sampler's and the pruner's answers as values, without a database, a clock or a process."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from automl.inheritance import parents_of_unfinished
from automl.pruners.base import Pruner
from automl.randomness import suggestion_generator
from automl.samplers.base import NothingLeftError, Sampler
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError, SpaceRuleError
from search_spaces.space import Refusal, SearchSpace
from search_spaces.versions import SpaceHistory
from studies.trial import Trial, TrialState
from trainers.reporting import Decision

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "Action",
    "Done",
    "Prune",
    "Refuse",
    "RejectQueued",
    "Resume",
    "Scheduler",
    "Start",
    "StartQueued",
    "Step",
    "Wait",
]

_UNDER_WAY = (TrialState.RUNNING, TrialState.PAUSED)

MAX_REPEATS = 50
"""Draws for one trial that may be known already before another way to something new is taken."""
MAX_REFUSALS_IN_A_ROW = 500
"""Infeasible configurations without a feasible one after which a search gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Create trial `number` with this configuration and train it; `parent`: the trial whose weights it begins with."""

    number: int
    configuration: Configuration
    parent: int | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """End a trial that rests, PRUNED at the epoch where it stands: it will not be promoted any more."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to start now; running trials may change that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing to start ever again; `lacks`: though not all that was planned has a value."""

    reason: str
    lacks: bool = False


Step: TypeAlias = Start | StartQueued | RejectQueued | Refuse | Resume | Prune
"""What changes the study."""
Action: TypeAlias = Step | Wait | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Joins a sampler and a pruner to one study; a pure function of the trials it is shown.

    The space may have changed since a trial was made. The sampler sees a trial's configuration as the present space
    would write it, and does not see a trial that cannot be written so. The pruner judges by values and sees them all. A
    trial that was interrupted goes on with the configuration it was started with, since its checkpoint belongs to it.

    Attributes:
        space: what is searched.
        sampler: proposes configurations.
        pruner: judges running trials.
        seed: the study's seed.
        earlier: the versions of the space that the study had before, oldest first.
        refuse: says why a configuration that the space allows is not trained, or None; None: it is asked nothing more.
        inherits: whether a proposal begins with the weights of the trial that it descends from.
    """

    space: SearchSpace
    sampler: Sampler
    pruner: Pruner
    seed: int
    earlier: Sequence[SearchSpace] = ()
    refuse: Refusal | None = None
    inherits: bool = False
    _history: SpaceHistory = field(init=False, repr=False, compare=False)
    _read: dict[int, "_Read"] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compare the versions of the space once."""
        object.__setattr__(self, "_history", SpaceHistory(self.earlier, self.space))

    def next_action(self, trials: Sequence[Trial], claimable: Sequence[Trial], budget: int | None = None) -> Action:
        """Choose the next thing to do for one free slot.

        Interrupted trials go first: they hold places in the budget. Then those that the pruner promotes, then a
        person's own trials, then the sampler's. The first proposal is not the sampler's, but the space's defaults,
        which are known to be sensible. When nothing new is left and nothing runs, who still rests is pruned.

        Args:
            trials: the whole study in order of the numbers.
            claimable: those among them that may be taken over now.
            budget: trials that may be started in all; None: any number.
        """
        if (resumed := self.resumed(trials, claimable)) is not None:
            return Resume(trial=resumed)
        action = self._new_trial(trials, budget)
        return self._last_promotion(trials, claimable, action) if isinstance(action, Done) else action

    def resumed(self, trials: Sequence[Trial], claimable: Sequence[Trial]) -> Trial | None:
        """The trial that was begun and is to go on now: an interrupted one, else one that the pruner promotes.

        Args:
            trials: the whole study in order of the numbers.
            claimable: those among them that may be taken over now.
        """
        interrupted = next((trial for trial in claimable if not self.pruner.rests(trial)), None)
        if interrupted is not None or not claimable:
            return interrupted
        return self.pruner.promoted(trials, claimable)

    def _last_promotion(self, trials: Sequence[Trial], resting: Sequence[Trial], done: Done) -> Action:
        """What becomes of trials that rest when nothing new is left; those under way may still change who goes on."""
        known = {trial.id for trial in resting}
        under_way = (trial for trial in trials if trial.state in _UNDER_WAY and trial.id not in known)
        if any(not trial.is_foreign for trial in under_way):
            return Wait()
        if not resting:
            return done
        promoted = self.pruner.promoted(trials, resting, is_last=True)
        return Prune(trial=resting[0]) if promoted is None else Resume(trial=promoted)

    def _new_trial(self, trials: Sequence[Trial], budget: int | None) -> Action:
        if budget is not None and sum(trial.is_counted for trial in trials) >= budget:
            return _spent(trials, budget)
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

    def weights_needed(self, trials: Sequence[Trial]) -> frozenset[int]:
        """The keys of the ended trials whose weights others may begin with, now or later.

        Args:
            trials: the whole study in order of the numbers.
        """
        if not self.inherits:
            return frozenset()
        parents = self.sampler.parents(self.space, [read.trial for read in self._fitting(trials)])
        return frozenset(trial.id for trial in parents) | parents_of_unfinished(trials)

    def _start_queued(self, queued: Trial, trials: Sequence[Trial]) -> StartQueued | RejectQueued:
        try:
            configuration = self._completed(queued, trials)
        except InvalidConfigurationError as error:
            return RejectQueued(trial=queued, reason=str(error))
        reason = self._refusal(configuration)
        if reason is not None:
            return RejectQueued(trial=queued, reason=reason)
        return StartQueued(trial=queued, configuration=configuration)

    def _completed(self, queued: Trial, trials: Sequence[Trial]) -> Configuration:
        """What a person fixed, with what was left open from the sampler, so that it can be trained if possible."""
        fixed = self._history.without_removed(queued.configuration)
        if not self.space.lacks(fixed):
            return self.space.validate(fixed)
        seen = [read.trial for read in self._fitting(trials)]
        rng = suggestion_generator(self.seed, queued.number)
        for _ in range(MAX_REPEATS):
            configuration = self.space.complete({**self._proposed(seen, rng), **fixed}, rng)
            if fixed.items() <= configuration.items() and self._refusal(configuration) is None:
                break
        return self.space.validate({**configuration, **fixed})  # tells what is fixed and cannot be there

    def _proposed(self, seen: Sequence[Trial], rng: "Generator") -> Configuration:
        """What the sampler would try, to fill in what a person left open; it may want nothing any more."""
        try:
            return self.sampler.suggest(self.space, seen, rng)
        except NothingLeftError:
            return self.space.sample(rng)

    def _propose(self, trials: Sequence[Trial]) -> Action:
        fitting = self._fitting(trials)
        known = {read.key for read in fitting if not read.trial.is_imported}  # what was tried here
        size = self.space.size()
        seen = [read.trial for read in fitting]
        if size is not None and len(known) >= size and not self.sampler.may_repeat(seen):
            return Done(reason=f"search space exhausted: {len(known)} of {size} tried")
        number = max((trial.number for trial in trials), default=-1) + 1
        if number == 0 and self.space.defaults is not None and not self.sampler.has_plan:
            return _start_unless(number, self.space.defaults, self._refusal(self.space.defaults))
        rng = suggestion_generator(self.seed, number)
        try:
            configuration = self._new_configuration(seen, known, rng)
        except InvalidConfigurationError as error:
            return Done(reason=f"no configuration was found: {error}")
        except NothingLeftError as error:
            return Done(reason=str(error), lacks=error.lacks)
        if configuration is None:
            return Done(reason=f"search space exhausted: all that is different was tried ({len(known)})")
        parent = self.sampler.parent(self.space, configuration, seen) if self.inherits else None
        return _start_unless(number, configuration, self._refusal(configuration), parent)

    def _new_configuration(
        self, seen: Sequence[Trial], known: Collection[str], rng: "Generator"
    ) -> Configuration | None:
        """The sampler's proposal that was not tried yet; where it has none, a random one; None: there is none left."""
        for _ in range(MAX_REPEATS):
            configuration = self.sampler.suggest(self.space, seen, rng)
            if self._key(configuration) not in known or self.sampler.may_repeat(seen):
                return configuration
        for _ in range(MAX_REPEATS):
            configuration = self.space.sample(rng)
            if self._key(configuration) not in known:
                return configuration
        return next((other for other in self.space.every() if self._key(other) not in known), None)

    def _refusal(self, configuration: Configuration) -> str | None:
        """Why a configuration cannot be trained: the space's reason, a fault of its rules, or the search's own."""
        try:
            reason = self.space.refusal(configuration)
            self.space.canonical(configuration)
        except SpaceRuleError as error:
            return str(error)
        return reason if reason is not None or self.refuse is None else self.refuse(configuration)

    def _fitting(self, trials: Sequence[Trial]) -> Sequence["_Fitting"]:
        """The trials that the present space can write, as it would write them."""
        return [fitting for trial in trials if (fitting := self._read_once(trial)) is not None]

    def _read_once(self, trial: Trial) -> "_Fitting | None":
        """A study gives the same object for a trial that has not changed: it is translated once for all proposals."""
        read = self._read.get(trial.id)
        if read is None or read.of is not trial:
            read = _Read(of=trial, fitting=self._fitted(trial))
            self._read[trial.id] = read
        return read.fitting

    def _fitted(self, trial: Trial) -> "_Fitting | None":
        is_whole = trial.state is not TrialState.QUEUED or not self.space.lacks(trial.configuration)
        configuration = self._history.adopt(trial.configuration) if is_whole else None
        if configuration is None:
            return None
        fitting = trial if configuration == trial.configuration else replace(trial, configuration=configuration)
        return None if (key := self._key(configuration)) is None else _Fitting(trial=fitting, key=key)

    def _key(self, configuration: Configuration) -> str | None:
        """The space's key; None: its own rule, which tells what is equal, fails, and so nothing is learned from it."""
        try:
            return self.space.key(configuration)
        except SpaceRuleError:
            return None  # `_refusal` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting:
    """A trial with its configuration as the present space writes it, and the key of that."""

    trial: Trial
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What was found out about a trial; None: its configuration does not fit the present space."""

    of: Trial
    fitting: _Fitting | None


def _spent(trials: Sequence[Trial], budget: int) -> Done:
    """All places of the budget are taken."""
    foreign = [trial for trial in trials if trial.is_foreign and trial.is_counted]
    ended = "the only trial ended" if budget == 1 else f"all {budget} trials ended"
    return Done(reason=f"{ended}{_but_for(foreign)}")


def _start_unless(
    number: int, configuration: Configuration, refusal: str | None, parent: Trial | None = None
) -> Start | Refuse:
    if refusal is not None:
        return Refuse(number=number, configuration=configuration, reason=refusal)
    return Start(number=number, configuration=configuration, parent=None if parent is None else parent.number)


def _but_for(foreign: Sequence[Trial]) -> str:
    """The end of a sentence about trials that other programs run; empty when there are none."""
    if not foreign:
        return ""
    return f", but for {', '.join(str(trial.number) for trial in foreign)}, which another program runs"


def _refusals_at_the_end(trials: Sequence[Trial]) -> int:
    return sum(1 for _ in takewhile(lambda trial: trial.state is TrialState.INFEASIBLE, reversed(trials)))
