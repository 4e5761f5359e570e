"""A search against a virtual clock: the scheduler of a real one, and a table or a function in place of trainings.

It is no `Executor`: nothing is started, stored or waited for, so that hundreds of searches take the time of their
proposals. What happens in which order is what the search loop would make of trainings that take as long.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from automl.objective import is_finite
from automl.scheduler import Done, Prune, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Step, Wait
from search_spaces.configuration import Configuration
from studies.checkpoints import best_epoch
from studies.trial import Trial, TrialState
from trainers.reporting import Decision

__all__ = ["Happening", "Measure", "Measured", "Simulation", "simulate"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an epoch of a training brings.

    Attributes:
        value: the objective; one that is not finite lets the trial fail.
        seconds: how long the epoch takes.
        is_last: whether the training is complete with it, before the epochs of a full one, unless the pruner ends it.
    """

    value: float
    seconds: float = 1.0
    is_last: bool = False


Measure: TypeAlias = Callable[[Configuration, int, int], Measured]
"""Configuration, number of the trial, and epoch from 1 -> what the epoch brings."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A change of a trial: a report, or its end.

    Attributes:
        time_s: since the search began.
        number: the trial.
        epoch: how far it was trained.
        value: its last report; None: it has none.
        state: what it is now.
    """

    time_s: float
    number: int
    epoch: int
    value: float | None
    state: TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A search that was simulated.

    Attributes:
        trials: how they ended, in order of their numbers.
        happenings: in the order of time.
        seconds: how long it took by its clock.
        reason: why it ended.
    """

    trials: tuple[Trial, ...]
    happenings: tuple[Happening, ...]
    seconds: float
    reason: str

    @property
    def epochs(self) -> int:
        """Epochs that were trained in all."""
        return sum(trial.last_epoch for trial in self.trials)


def simulate(
    scheduler: Scheduler,
    measure: Measure,
    *,
    workers: int = 1,
    trials: int | None = None,
    seconds: float = math.inf,
    queued: Sequence[Configuration] = (),
    resume_s: float = 0.0,
) -> Simulation:
    """Run a search without trainings.

    Args:
        scheduler: its sampler and pruner are those to be tried; its pruner knows the epochs of a full training.
        measure: stands for the trainings.
        workers: trials that train at the same time, at least 1.
        trials: the budget; None: no end but that of time, or of the space.
        seconds: when the clock stops; what runs then stays as it is.
        queued: configurations to be trained before the sampler's proposals.
        resume_s: what it takes to go on with a trial that rested, in seconds.

    Raises:
        ValueError: there are no workers, or there would be no end.
    """
    if workers < 1:
        raise ValueError(f"workers={workers} must be at least 1")
    has_end = scheduler.sampler.has_plan or scheduler.space.size() is not None
    if trials is None and math.isinf(seconds) and not has_end:
        raise ValueError("nothing ends this search: give trials or seconds")
    first = [_queued(number, configuration) for number, configuration in enumerate(queued)]
    run = _Run(scheduler, measure, first, resume_s)
    return run.to_the_end(workers, trials, seconds)


@dataclass(slots=True)
class _Run:
    scheduler: Scheduler
    measure: Measure
    trials: list[Trial]
    resume_s: float
    clock_s: float = 0.0
    coming: list[tuple[float, int, int, Measured]] = field(default_factory=list)  # when, order, number, what
    happenings: list[Happening] = field(default_factory=list)
    started: int = 0
    done: set[int] = field(default_factory=set)  # numbers of trials with nothing left to train

    def to_the_end(self, workers: int, budget: int | None, seconds: float) -> Simulation:
        while True:
            reason = self._start(workers, budget)
            if not self.coming:
                return self._ended(reason or "nothing is left to wait for")
            if self.coming[0][0] > seconds:
                self.clock_s = seconds
                return self._ended(f"{seconds:g} s are over")
            self.clock_s, _, number, measured = heapq.heappop(self.coming)
            self._report(self.trials[number], measured)

    def _start(self, workers: int, budget: int | None) -> str | None:
        """Start trials until all workers are busy; return why nothing will be started any more, or None."""
        while len(self.coming) < workers:
            seen = tuple(self.trials)
            resting = [trial for trial in seen if trial.state is TrialState.PAUSED]
            action = self.scheduler.next_action(seen, resting, budget)
            if isinstance(action, Done):
                return action.reason
            if isinstance(action, Wait):
                return None
            self._carry_out(action)
        return None

    def _carry_out(self, action: Step) -> None:
        match action:
            case Start():
                self._begin(_trial(action.number, action.configuration, TrialState.RUNNING))
            case StartQueued():
                self._begin(replace(action.trial, configuration=action.configuration, state=TrialState.RUNNING))
            case Resume():
                again = replace(action.trial, state=TrialState.RUNNING, attempt=action.trial.attempt + 1)
                self._begin(again, self.resume_s)
            case Refuse():
                self._change(_trial(action.number, action.configuration, TrialState.INFEASIBLE, cause=action.reason))
            case RejectQueued():
                self._change(replace(action.trial, state=TrialState.FAILED, cause="user_error"))
            case Prune():
                self._change(replace(action.trial, state=TrialState.PRUNED))

    def _begin(self, trial: Trial, delay_s: float = 0.0) -> None:
        self._set(trial)
        if trial.number in self.done:
            self._complete(trial)
        else:
            self._go_on(trial, delay_s)

    def _go_on(self, trial: Trial, delay_s: float = 0.0) -> None:
        measured = self.measure(Configuration(trial.configuration), trial.number, trial.last_epoch + 1)
        self.started += 1
        due_s = self.clock_s + delay_s + measured.seconds
        heapq.heappush(self.coming, (due_s, self.started, trial.number, measured))

    def _report(self, before: Trial, measured: Measured) -> None:
        if not is_finite(measured.value):
            self._change(replace(before, state=TrialState.FAILED, cause="non_finite"))
            return
        epoch = before.last_epoch + 1
        trial = replace(before, reports={**before.reports, epoch: measured.value})
        self._set(trial)
        if epoch >= self.scheduler.pruner.epochs:
            self._complete(trial)
            return
        if measured.is_last:
            self.done.add(trial.number)
        match self.scheduler.decide(trial, tuple(self.trials)):
            case Decision.CONTINUE if measured.is_last:
                self._complete(trial)
            case Decision.CONTINUE:
                self._change(trial)
                self._go_on(trial)
            case Decision.STOP:
                self._change(replace(trial, state=TrialState.PRUNED))
            case Decision.PAUSE:
                self._change(replace(trial, state=TrialState.PAUSED))

    def _complete(self, trial: Trial) -> None:
        best = best_epoch(trial, self.scheduler.pruner.direction)
        assert best is not None  # it has reported
        self._change(replace(trial, state=TrialState.COMPLETE, value=trial.reports[best]))

    def _change(self, trial: Trial) -> None:
        self._set(trial)
        value = trial.reports.get(trial.last_epoch)
        self.happenings.append(Happening(self.clock_s, trial.number, trial.last_epoch, value, trial.state))

    def _set(self, trial: Trial) -> None:
        if trial.number == len(self.trials):
            self.trials.append(trial)
        else:
            self.trials[trial.number] = trial

    def _ended(self, reason: str) -> Simulation:
        return Simulation(
            trials=tuple(self.trials), happenings=tuple(self.happenings), seconds=self.clock_s, reason=reason
        )


def _trial(number: int, configuration: Configuration, state: TrialState, cause: str | None = None) -> Trial:
    return Trial(
        id=number + 1,
        number=number,
        state=state,
        configuration=configuration,
        cause=cause,
        attempt=1,
        owner="simulation" if state is TrialState.RUNNING else None,
    )


def _queued(number: int, configuration: Configuration) -> Trial:
    return replace(_trial(number, configuration, TrialState.QUEUED), attempt=0)
