"""What a study comes to, in numbers: the part of a report that a program can read."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from studies.checkpoints import best_epoch
from studies.figures.snapshot import StudySnapshot
from studies.trial import JsonScalar, Trial, TrialState

__all__ = ["Overview", "duration_s", "ending_of", "overview_of", "utc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The sums of a study.

    Attributes:
        study: its name.
        metric: name of the objective.
        direction: whether a larger or a smaller objective is better.
        best_number: number of the best COMPLETE trial; None when there is none, as for the next three.
        best_value: its objective.
        best_epoch: the epoch in which it reached its best reported value; None when it reported nothing.
        best_configuration: its configuration; empty when there is none.
        majority_share: accuracy of always answering the largest class of its validation data; None where it told none.
        balanced_accuracy: mean share of each class that it answered rightly, in its best epoch; None likewise.
        test: name -> score on the test data, as stored on the study; empty when it was not tested.
        counts: state -> number of trials that were trained here.
        imported: number of trials that were trained elsewhere.
        causes: cause -> number of FAILED trials, the most frequent first.
        started_at: first start, UTC.
        last_event_at: last start or end, UTC.
        trial_seconds: sum of the durations of all ended trials.
        epochs_trained: epochs over all trials.
        epochs_unpruned: epochs if every pruned trial had been trained as long as the longest complete one.
    """

    study: str
    metric: str
    direction: str
    best_number: int | None
    best_value: float | None
    best_epoch: int | None
    best_configuration: Mapping[str, JsonScalar]
    test: Mapping[str, float]
    counts: Mapping[TrialState, int]
    imported: int
    causes: Mapping[str, int]
    started_at: datetime | None
    last_event_at: datetime | None
    trial_seconds: float
    epochs_trained: int
    epochs_unpruned: int
    majority_share: float | None = None
    balanced_accuracy: float | None = None

    @property
    def elapsed_s(self) -> float | None:
        """Time from the first start to the last event, pauses included."""
        if self.started_at is None or self.last_event_at is None:
            return None
        return (self.last_event_at - self.started_at).total_seconds()

    def to_json(self) -> dict[str, object]:
        """Return the same as strict JSON: no NaN, no infinity, times as ISO 8601."""
        return {
            "study": self.study,
            "metric": self.metric,
            "direction": self.direction,
            "best": None
            if self.best_number is None
            else {
                "number": self.best_number,
                "value": self.best_value,
                "epoch": self.best_epoch,
                "majority_share": self.majority_share,
                "balanced_accuracy": self.balanced_accuracy,
                "configuration": {name: _strict(value) for name, value in self.best_configuration.items()},
            },
            "test": {name: _strict(score) for name, score in self.test.items()},
            "counts": {state.value: self.counts.get(state, 0) for state in TrialState},
            "imported": self.imported,
            "causes": dict(self.causes),
            "started_at": None if self.started_at is None else self.started_at.isoformat(),
            "last_event_at": None if self.last_event_at is None else self.last_event_at.isoformat(),
            "elapsed_s": self.elapsed_s,
            "trial_seconds": self.trial_seconds,
            "epochs_trained": self.epochs_trained,
            "epochs_unpruned": self.epochs_unpruned,
        }


def overview_of(snapshot: StudySnapshot) -> Overview:
    """Add up a study."""
    best = snapshot.best
    moments = [utc(m) for trial in snapshot.trials for m in (trial.started_at, trial.ended_at) if m is not None]
    failed = [trial for trial in snapshot.trials if trial.state is TrialState.FAILED]
    longest = max((trial.last_epoch for trial in snapshot.complete), default=0)
    return Overview(
        study=snapshot.name,
        metric=snapshot.metric,
        direction=snapshot.direction,
        best_number=None if best is None else best.number,
        best_value=None if best is None else best.value,
        best_epoch=None if best is None else best_epoch(best, snapshot.direction),
        best_configuration={} if best is None else best.configuration,
        majority_share=None if best is None else _fact(best, "majority_share"),
        balanced_accuracy=None if best is None else _fact(best, "balanced_accuracy"),
        test=_test_scores(snapshot),
        counts=Counter(trial.state for trial in snapshot.trials),
        imported=snapshot.imported,
        causes=dict(Counter(trial.cause or "no cause stored" for trial in failed).most_common()),
        started_at=min(moments, default=None),
        last_event_at=max(moments, default=None),
        trial_seconds=sum(duration_s(trial) or 0.0 for trial in snapshot.trials),
        epochs_trained=sum(trial.last_epoch for trial in snapshot.trials),
        epochs_unpruned=sum(
            max(trial.last_epoch, longest) if trial.state is TrialState.PRUNED else trial.last_epoch
            for trial in snapshot.trials
        ),
    )


def _fact(trial: Trial, name: str) -> float | None:
    """Return a number that the trainer has told beside the result."""
    value = trial.attributes.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def duration_s(trial: Trial) -> float | None:
    """Return the time from a trial's first start to its end, in seconds; None while it has not ended."""
    if trial.started_at is None or trial.ended_at is None:
        return None
    return max(0.0, (utc(trial.ended_at) - utc(trial.started_at)).total_seconds())


def ending_of(trial: Trial) -> str:
    """Return how a trial ended, in words: `complete`, `pruned`, `failed: oom`, `infeasible`."""
    if trial.state is TrialState.FAILED:
        return f"failed: {trial.cause or 'no cause stored'}"
    return str(trial.state.value)


def utc(moment: datetime) -> datetime:
    """Return a stored time in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _test_scores(snapshot: StudySnapshot) -> dict[str, float]:
    """Return the best trial's scores on the test data, as they are stored on the study.

    A search stores `{"trial": number, "metrics": {name: score}}`, which is stale once another trial is the best;
    a person may store one number, or several with their names.
    """
    stored = snapshot.attributes.get("test")
    scores: Mapping[object, object] = stored if isinstance(stored, Mapping) else {snapshot.metric: stored}
    if isinstance(metrics := scores.get("metrics"), Mapping):
        is_current = snapshot.best is not None and scores.get("trial") == snapshot.best.number
        scores = metrics if is_current else {}
    return {
        str(name): float(score)
        for name, score in scores.items()
        if isinstance(score, int | float) and not isinstance(score, bool)
    }


def _strict(value: JsonScalar) -> JsonScalar:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
