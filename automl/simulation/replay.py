"""A finished study under other rules of early stopping: the same configurations, in their order, and their curves.

A curve that the study has cut short is unknown from there on: a rule that would go on with that training is credited
with nothing beyond, and how often that was so is counted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from automl.executors.simulated import Measured, simulate
from automl.objective import to_loss
from automl.pruners.base import Pruner
from automl.samplers.random import RandomSampler
from automl.scheduler import Scheduler
from automl.simulation.courses import Course, course_of
from automl.simulation.problems import Curve, by_curves
from search_spaces.configuration import Configuration
from search_spaces.parameters import Integer
from search_spaces.space import SearchSpace
from studies.ranking import best_of
from studies.study import Study
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["Record", "Replayed", "record_of", "replay"]

_CUT_SHORT = (TrialState.PRUNED, TrialState.PAUSED, TrialState.RUNNING)
_PLACE = "place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of a study's trainings.

    Attributes:
        trials: those that were trained here, in order of their numbers.
        curves: of these trials; empty: it failed before its first report.
        direction: whether larger or smaller objectives are better.
        epochs: of a full training.
        best: the best complete trial; None: none is complete.
        is_timed: whether it is known how long the trainings took; if not, each epoch counts as a second.
        counts_reports: whether trainings did not report each epoch, so that epochs are counts of reports here.
    """

    trials: tuple[Trial, ...]
    curves: tuple[Curve, ...]
    direction: Direction
    epochs: int
    best: Trial | None
    is_timed: bool
    counts_reports: bool

    @property
    def trained(self) -> int:
        """Epochs in all."""
        return sum(map(len, self.curves))

    @property
    def worked_s(self) -> float:
        """Seconds of all epochs together."""
        return sum(one.seconds for curve in self.curves for one in curve)

    def is_cut_short(self, place: int) -> bool:
        """Whether the training at a place would have gone on."""
        return self.trials[place].state in _CUT_SHORT and len(self.curves[place]) < self.epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A study under a rule.

    Attributes:
        course: how it would have gone.
        epochs: that would have been trained.
        worked_s: seconds of these epochs together.
        best: the study's own trial that would be the best one; None: none would be complete.
        lost: by how much it is worse than the study's best; None: one of both is not there.
        ended_best: the epoch at which the study's best trial would have ended; None: it would be complete.
        unknown: trainings that were cut short in the study, and that the rule would go on with.
    """

    course: Course
    epochs: int
    worked_s: float
    best: Trial | None
    lost: float | None
    ended_best: int | None
    unknown: int


def record_of(study: Study, epochs: int | None = None) -> Record:
    """Read what a study knows of its trainings; imported trials and those without a report were not trained in it.

    Args:
        study: ours, or one of plain Optuna.
        epochs: of a full training; None: as it is stored, else as many as the longest training has.
    """
    trials = tuple(trial for trial in study.trials() if not trial.is_imported and _was_trained(trial))
    counts_reports = any(list(trial.reports) != list(range(1, len(trial.reports) + 1)) for trial in trials)
    longest = max((len(trial.reports) for trial in trials), default=1)
    stored = None if counts_reports else study.specification.get("epochs")
    seconds = _epoch_seconds(trials, study.metrics())
    known = [taken for one in seconds for taken in one if taken is not None]
    usual = median(known) if known else 1.0
    return Record(
        trials=trials,
        curves=tuple(
            [
                Measured(value, usual if taken is None else taken)
                for value, taken in zip(trial.reports.values(), one, strict=True)
            ]
            for trial, one in zip(trials, seconds, strict=True)
        ),
        direction=study.direction,
        epochs=max(longest, 1, epochs or stored or 0),
        best=next(iter(best_of(trials, study.direction, 1)), None),
        is_timed=bool(known),
        counts_reports=counts_reports,
    )


def replay(record: Record, pruner: Pruner, *, workers: int = 1, resume_s: float = 0.0) -> Replayed:
    """Let a rule judge the trainings of a study.

    Args:
        record: the study; it has trials.
        pruner: the rule.
        workers: trainings at the same time.
        resume_s: what going on with a trial that rested takes, in seconds.
    """
    places = Integer(low=0, high=len(record.trials))  # one more than there are: a range has two ends
    scheduler = Scheduler(
        space=SearchSpace("replay", {_PLACE: places}),
        sampler=RandomSampler(record.direction),
        pruner=pruner,
        seed=0,
    )
    found = simulate(
        scheduler,
        by_curves(lambda configuration, number: _rest_of(record, number)),
        workers=workers,
        trials=len(record.trials),
        queued=[Configuration({_PLACE: place}) for place in range(len(record.trials))],
        resume_s=resume_s,
    )
    ends = found.trials
    complete = [place for place, end in enumerate(ends) if end.state is TrialState.COMPLETE]
    unknown = [place for place in complete if record.is_cut_short(place)]
    kept = [record.trials[place] for place in complete if place not in set(unknown)]
    best = next(iter(best_of(kept, record.direction, 1)), None)
    return Replayed(
        course=course_of(found, record.direction),
        epochs=found.epochs,
        worked_s=sum(
            one.seconds for end, curve in zip(ends, record.curves, strict=True) for one in curve[: end.last_epoch]
        ),
        best=best,
        lost=_lost(record, best),
        ended_best=_ended(record, ends),
        unknown=len(unknown),
    )


def _was_trained(trial: Trial) -> bool:
    return bool(trial.reports) or trial.state is TrialState.FAILED


def _rest_of(record: Record, place: int) -> Curve:
    """The curve with its end: complete, cut short, or the failure that came after it."""
    curve = list(record.curves[place])
    if record.trials[place].state is TrialState.FAILED or not curve:
        return [*curve, Measured(math.nan, 0.0)]
    return [*curve[:-1], Measured(curve[-1].value, curve[-1].seconds, is_last=True)]


def _lost(record: Record, best: Trial | None) -> float | None:
    values = [None if trial is None else trial.value for trial in (best, record.best)]
    losses = [to_loss(value, record.direction) for value in values if value is not None]
    return losses[0] - losses[1] if len(losses) == 2 else None


def _ended(record: Record, ends: Sequence[Trial]) -> int | None:
    """Where the study's best trial would have ended before its time."""
    if record.best is None:
        return None
    end = ends[record.trials.index(record.best)]
    return None if end.state is TrialState.COMPLETE else end.last_epoch


def _epoch_seconds(
    trials: Sequence[Trial], metrics: Mapping[int, Mapping[int, Mapping[str, float]]]
) -> list[list[float | None]]:
    """How long each report of each trial took: as its training says, else its share of the trial; None: not known."""
    found = []
    for trial in trials:
        told, share = metrics.get(trial.id, {}), _share_s(trial)
        found.append([_duration(told.get(epoch, {}).get("epoch_s"), share) for epoch in trial.reports])
    return found


def _duration(told: float | None, share: float | None) -> float | None:
    return told if told is not None and math.isfinite(told) and told >= 0.0 else share


def _share_s(trial: Trial) -> float | None:
    """Seconds of an epoch of a trial that was trained in one go."""
    if trial.started_at is None or trial.ended_at is None or trial.attempt > 1 or not trial.reports:
        return None
    return (trial.ended_at - trial.started_at).total_seconds() / len(trial.reports)
