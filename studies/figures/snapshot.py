"""What every figure is drawn from: the trials of one study at one moment, free of any database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from studies.trial import JsonScalar, Trial, TrialState

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = ["NotDefined", "StudyLike", "StudySnapshot", "snapshot_of"]


class NotDefined(Exception):
    """A figure has no meaning for this study.

    Attributes:
        reason: why, in words that can follow a colon: `1 complete trial`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StudyLike(Protocol):
    """The part of a study that figures and the report read."""

    @property
    def name(self) -> str:
        """Name of the study."""

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        """Whether a larger or a smaller objective is better."""

    @property
    def specification(self) -> Mapping[str, object]:
        """What was searched, plain JSON."""

    @property
    def attributes(self) -> Mapping[str, object]:
        """Facts stored on the study, plain JSON."""

    def trials(self) -> Sequence[Trial]:
        """Return frozen copies of all trials, ordered by number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StudySnapshot:
    """One study at one moment; two snapshots are equal only when they are the same object.

    Attributes:
        name: name of the study.
        direction: whether a larger or a smaller objective is better.
        metric: what the objective is called on axes and in sentences.
        trials: the trials that were trained here, ordered by number.
        imported: how many more were trained elsewhere; no figure shows them.
        distributions: parameter name -> Optuna distribution; what is missing is inferred from the values.
        specification: what was searched, plain JSON.
        attributes: facts stored on the study, plain JSON; `test` holds the score on the test data.
    """

    name: str
    direction: Literal["maximize", "minimize"]
    metric: str = "value"
    trials: tuple[Trial, ...] = ()
    imported: int = 0
    distributions: Mapping[str, "BaseDistribution"] = field(default_factory=dict)
    specification: Mapping[str, object] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def complete(self) -> tuple[Trial, ...]:
        """The COMPLETE trials with a finite value, ordered by number."""
        return tuple(trial for trial in self.trials if _is_valued(trial))

    @cached_property
    def ranking(self) -> tuple[Trial, ...]:
        """The COMPLETE trials, best first; of equal ones the earlier.

        A PRUNED trial never takes part: what it reported last is not the objective of a whole training.
        """
        sign = 1.0 if self.direction == "minimize" else -1.0
        return tuple(sorted(self.complete, key=lambda trial: (sign * value_of(trial), trial.number)))

    @property
    def best(self) -> Trial | None:
        """The best COMPLETE trial, or None."""
        return self.ranking[0] if self.ranking else None

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters, in order of their first appearance."""
        return tuple(dict.fromkeys(name for trial in self.trials for name in trial.configuration))

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The parameters that took at least two values among the COMPLETE trials."""
        seen: dict[str, set[tuple[type, JsonScalar]]] = {}
        for trial in self.complete:
            for name, value in trial.configuration.items():
                seen.setdefault(name, set()).add((type(value), value))
        return tuple(name for name in self.parameters if len(seen.get(name, ())) > 1)

    @property
    def constant(self) -> tuple[str, ...]:
        """The parameters that took one value only."""
        return tuple(name for name in self.parameters if name not in self.varied)


def value_of(trial: Trial) -> float:
    """Return the objective of a COMPLETE trial."""
    assert trial.value is not None, f"trial {trial.number} is {trial.state.value} and has no value"
    return trial.value


def snapshot_of(
    source: "StudyLike | StudySnapshot | optuna.Study",
    *,
    metric: str | None = None,
    distributions: Mapping[str, "BaseDistribution"] | None = None,
) -> StudySnapshot:
    """Take a snapshot of a study of ours or of a plain `optuna.Study`.

    Args:
        source: the study; a snapshot is returned as it is.
        metric: what the objective is called; None: the specification's `metric`, otherwise `value`.
        distributions: parameter name -> Optuna distribution, as `SearchSpace.distributions()` gives them.

    Raises:
        ValueError: when an Optuna study has several objectives.
    """
    import optuna

    if isinstance(source, StudySnapshot):
        return source
    if isinstance(source, optuna.Study):
        return _snapshot_of_optuna(source, metric)
    trials = source.trials()
    own = tuple(trial for trial in trials if not trial.is_imported)
    return StudySnapshot(
        name=source.name,
        direction=source.direction,
        metric=metric or metric_name(source.specification),
        trials=own,
        imported=len(trials) - len(own),
        distributions=distributions or {},
        specification=source.specification,
        attributes=source.attributes,
    )


def metric_name(specification: Mapping[str, object]) -> str:
    """Return the name of the objective in a stored specification; `value` when it names none."""
    training = specification.get("training")
    sources = [specification, training if isinstance(training, Mapping) else {}]
    names = [source["metric"] for source in sources if isinstance(source.get("metric"), str)]
    return str(names[0]) if names else "value"


def _is_valued(trial: Trial) -> bool:
    return trial.state is TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value)


def _snapshot_of_optuna(study: "optuna.Study", metric: str | None) -> StudySnapshot:
    from studies.figures.frozen import merged_distributions

    if len(study.directions) != 1:
        raise ValueError(f"study {study.study_name!r} has {len(study.directions)} objectives; figures show one")
    trials = study.get_trials(deepcopy=False)
    names = study.metric_names
    return StudySnapshot(
        name=study.study_name,
        direction="maximize" if study.direction.name == "MAXIMIZE" else "minimize",
        metric=metric or (names[0] if names else "value"),
        trials=tuple(_trial(trial) for trial in trials),
        distributions=merged_distributions(trial.distributions for trial in trials),
        attributes=dict(study.user_attrs),
    )


def _trial(trial: "FrozenTrial") -> Trial:
    state, cause = _state(trial)
    return Trial(
        id=trial._trial_id,
        number=trial.number,
        state=state,
        configuration={name: _scalar(value) for name, value in trial.params.items()},
        reports=dict(sorted(trial.intermediate_values.items())),
        value=trial.value if state is TrialState.COMPLETE else None,
        cause=cause,
        attempt=0 if trial.datetime_start is None else 1,
        started_at=_utc(trial.datetime_start),
        ended_at=_utc(trial.datetime_complete),
        attributes=dict(trial.user_attrs),
    )


def _state(trial: "FrozenTrial") -> tuple[TrialState, str | None]:
    """Optuna calls an infinite value COMPLETE and keeps constraints aside; neither may become the best."""
    if trial.state.name == "COMPLETE":
        if trial.value is None or not math.isfinite(trial.value):
            return TrialState.FAILED, "non_finite"
        if any(value > 0.0 for value in trial.constraints.values()):
            return TrialState.INFEASIBLE, "infeasible"
        return TrialState.COMPLETE, None
    if trial.state.name == "FAIL":
        cause = trial.user_attrs.get("cause")
        return TrialState.FAILED, cause if isinstance(cause, str) else None
    return {"WAITING": TrialState.QUEUED, "RUNNING": TrialState.RUNNING, "PRUNED": TrialState.PRUNED}[
        trial.state.name
    ], None


def _scalar(value: object) -> JsonScalar:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _utc(moment: datetime | None) -> datetime | None:
    """Optuna's times are naive and local (since 5.0, also when read from a database)."""
    return None if moment is None else moment.astimezone(UTC)
