"""A search at one moment as a value, how an event changes it, and how long it will still take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from automl.events import EpochReported, Event, NewBest, SlotsChanged, TrialEnded, TrialRefused, TrialStarted
from studies.trial import TrialState

__all__ = ["ProgressState", "RunningTrial", "time_left_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTrial:
    """A trial of this process that is being trained.

    Attributes:
        number: its number in the study.
        epochs: epochs of a full training.
        attempt: how many times it was started.
        started_s: when this attempt began, on the clock of the state.
        epoch: finished epochs.
        value: the last reported objective; None before the first report.
    """

    number: int
    epochs: int
    attempt: int
    started_s: float
    epoch: int = 0
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressState:
    """A search at one moment; times are seconds on one monotonic clock.

    Attributes:
        study: name of the study.
        metric: name of the objective.
        direction: whether a larger or a smaller objective is better.
        total: ended trials that the study shall have.
        slots: trials that train at the same time; 0 while there is no machine for any.
        started_s: when this run began.
        counts: state -> trials of the whole study.
        best: number, value and epoch of the best complete trial; None before the first.
        running: the trials of this process, by number.
        durations_s: how long each ended trial took.
    """

    study: str
    metric: str
    direction: str
    total: int
    slots: int
    started_s: float
    counts: Mapping[TrialState, int] = field(default_factory=dict)
    best: tuple[int, float, int] | None = None
    running: Mapping[int, RunningTrial] = field(default_factory=dict)
    durations_s: Sequence[float] = ()

    @property
    def ended(self) -> int:
        """Trials that have used up their place in the budget."""
        return sum(count for state, count in self.counts.items() if state.is_ended and state.is_counted)

    def time_left_s(self, now_s: float) -> float | None:
        """Seconds until the budget is spent; None while nothing is known about it."""
        elapsed = [now_s - trial.started_s for trial in self.running.values()]
        waiting = max(0, self.total - self.ended - len(elapsed))
        return time_left_s(self.durations_s, elapsed, waiting, max(1, self.slots))

    def after(self, event: Event, now_s: float) -> "ProgressState":
        """Return the state after an event."""
        match event:
            case TrialStarted():
                trial = RunningTrial(
                    number=event.number,
                    epochs=event.epochs,
                    attempt=event.attempt,
                    started_s=now_s,
                    epoch=event.epoch,
                )
                return replace(self, running={**self.running, event.number: trial})
            case EpochReported() if event.number in self.running:
                trial = replace(self.running[event.number], epoch=event.epoch, value=event.value)
                return replace(self, running={**self.running, event.number: trial})
            case TrialEnded():
                return self._without(event, now_s)
            case TrialRefused():
                return replace(self, counts=_one_more(self.counts, TrialState.INFEASIBLE))
            case NewBest():
                return replace(self, best=(event.number, event.value, event.epoch))
            case SlotsChanged():
                return replace(self, slots=event.slots)
        return self

    def _without(self, event: TrialEnded, now_s: float) -> "ProgressState":
        running = dict(self.running)
        trial = running.pop(event.number, None)
        durations = self.durations_s
        if trial is not None and event.state.is_ended:
            durations = (*durations, now_s - trial.started_s)
        return replace(self, running=running, durations_s=durations, counts=_one_more(self.counts, event.state))


def time_left_s(durations_s: Sequence[float], elapsed_s: Sequence[float], waiting: int, slots: int) -> float | None:
    """Return how long a search will still take, judged by the trials that have ended.

    A running trial will take as long as those ended trials that took longer than it has, so that pruned trials,
    which end early, do not make it look nearly done.

    Args:
        durations_s: how long each ended trial took.
        elapsed_s: how long each running trial has taken so far.
        waiting: trials of the budget that have not started.
        slots: trials that train at the same time, at least 1.

    Returns:
        seconds, 0.0 when nothing is left; None when something is left and no trial has ended yet.
    """
    if not elapsed_s and waiting == 0:
        return 0.0
    if not durations_s:
        return None
    rest = [_mean([d - elapsed for d in durations_s if d > elapsed]) for elapsed in elapsed_s]
    work = sum(rest) + waiting * _mean(durations_s)
    return max(work / min(slots, max(1, len(elapsed_s) + waiting)), max(rest, default=0.0))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _one_more(counts: Mapping[TrialState, int], state: TrialState) -> Mapping[TrialState, int]:
    return {**counts, state: counts.get(state, 0) + 1}
