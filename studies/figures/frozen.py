"""A snapshot as Optuna's own plots want it: an in-memory `optuna.Study` with the same trial numbers."""

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from statistics import median
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from studies.figures.snapshot import StudySnapshot
from studies.optuna_chatter import without_chatter
from studies.trial import JsonScalar, Trial, TrialState

__all__ = ["label", "merged_distributions", "optuna_study"]

_LOG_RATIO = 100.0
_LOG_MIDDLE = 0.7  # where the median lies on a log axis: 0.5 if drawn on a log scale, over 0.8 if drawn evenly

_UNKNOWN = datetime(1970, 1, 1)  # Optuna insists on times; no plot of values shows them

_STATES = {
    TrialState.QUEUED: optuna.trial.TrialState.WAITING,
    TrialState.PAUSED: optuna.trial.TrialState.WAITING,
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
    TrialState.INFEASIBLE: optuna.trial.TrialState.FAIL,
}


def optuna_study(
    snapshot: StudySnapshot, keep: Collection[int] | None = None, *, parameters: Collection[str] | None = None
) -> optuna.Study:
    """Return an in-memory Optuna study that holds the snapshot's trials under their own numbers.

    An in-memory study numbers its trials by position, so a number that is missing or not kept is taken by
    a failed trial without parameters, which no plot of values draws.

    Args:
        snapshot: the study.
        keep: numbers of the trials wanted; None: all.
        parameters: names of the parameters wanted, since copying them takes most of the time; None: all.
    """
    known = _all_distributions(snapshot)
    distributions = {name: known[name] for name in known if parameters is None or name in parameters}
    wanted = {trial.number: trial for trial in snapshot.trials if keep is None or trial.number in keep}
    frozen = [
        _frozen(wanted[number], distributions) if number in wanted else _placeholder(number)
        for number in range(max(wanted, default=-1) + 1)
    ]
    with without_chatter():
        study = optuna.create_study(study_name=label(snapshot.name), direction=snapshot.direction)
        study.add_trials(frozen)
    return study


def merged_distributions(seen: Iterable[Mapping[str, BaseDistribution]]) -> dict[str, BaseDistribution]:
    """Return one distribution per parameter, wide enough for all that were used under its name."""
    merged: dict[str, BaseDistribution] = {}
    for distributions in seen:
        for name, distribution in distributions.items():
            known = merged.get(name)
            merged[name] = distribution if known is None else _union(known, distribution)
    return merged


def label(text: object) -> str:
    """Return a text that plotly shows letter for letter (it reads `<b>` as HTML does, and `$x$` as a formula)."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace("$", "&#36;")


def _frozen(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial:
    parameters = {
        name: value for name, value in trial.configuration.items() if name in distributions and _finite(value)
    }
    valued = trial.value is not None and math.isfinite(trial.value)
    state = _STATES[trial.state] if valued or trial.state is not TrialState.COMPLETE else optuna.trial.TrialState.FAIL
    started = _local(trial.started_at or trial.ended_at)
    return FrozenTrial(
        trial_id=trial.number,
        number=trial.number,
        state=state,
        value=trial.value if trial.state is TrialState.COMPLETE and valued else None,
        datetime_start=started,
        datetime_complete=_local(trial.ended_at) if trial.state.is_ended else None,
        params={label(name): _choice(value, distributions[name]) for name, value in parameters.items()},
        distributions={label(name): distributions[name] for name in parameters},
        user_attrs={},
        system_attrs={},
        intermediate_values={epoch: value for epoch, value in trial.reports.items() if math.isfinite(value)},
    )


def _placeholder(number: int) -> FrozenTrial:
    return FrozenTrial(
        trial_id=number,
        number=number,
        state=optuna.trial.TrialState.FAIL,
        value=None,
        datetime_start=_UNKNOWN,
        datetime_complete=_UNKNOWN,
        params={},
        distributions={},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
    )


@lru_cache(maxsize=1)  # each figure of one report makes its own copy of the study
def _all_distributions(snapshot: StudySnapshot) -> Mapping[str, BaseDistribution]:
    """Given distributions, widened where a trial lies outside (an enqueued one may), and inferred ones."""
    values: dict[str, list[JsonScalar]] = {}
    for trial in snapshot.trials:
        for name, value in trial.configuration.items():
            if _finite(value):
                values.setdefault(name, []).append(value)
    return {name: _distribution(snapshot.distributions.get(name), seen) for name, seen in values.items()}


def _distribution(given: BaseDistribution | None, seen: list[JsonScalar]) -> BaseDistribution:
    if isinstance(given, CategoricalDistribution):
        return _categorical((*given.choices, *seen))
    inferred = _inferred(seen)
    return inferred if given is None else _union(given, inferred)


def _inferred(values: list[JsonScalar]) -> BaseDistribution:
    if not _are_numbers(values):
        return _categorical(values)
    numbers = [value for value in values if isinstance(value, int | float)]
    low, high = min(numbers), max(numbers)
    log = low > 0 and high / low >= _LOG_RATIO and _log_position(median(numbers), low, high) < _LOG_MIDDLE
    if any(isinstance(value, float) for value in numbers):
        return FloatDistribution(float(low), float(high), log=log)
    return IntDistribution(int(low), int(high), log=log)


def _categorical(choices: Iterable[Any]) -> CategoricalDistribution:
    """Choices that are not all numbers become labels: plots sort them, and True is not 1 on an axis."""
    listed = list(choices)
    return CategoricalDistribution(tuple(dict.fromkeys(listed if _are_numbers(listed) else map(label, listed))))


def _log_position(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _union(first: BaseDistribution, second: BaseDistribution) -> BaseDistribution:
    """Return a distribution that contains both; the first one decides on the kind where it can."""
    if isinstance(first, FloatDistribution | IntDistribution) and isinstance(
        second, FloatDistribution | IntDistribution
    ):
        low, high = min(first.low, second.low), max(first.high, second.high)
        if isinstance(first, IntDistribution) and isinstance(second, IntDistribution):
            return IntDistribution(int(low), int(high), log=first.log and low > 0)
        return FloatDistribution(float(low), float(high), log=first.log and low > 0)
    return _categorical((*_choices(first), *_choices(second)))


def _choices(distribution: BaseDistribution) -> tuple[Any, ...]:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return (distribution.low, distribution.high)


def _choice(value: JsonScalar, distribution: BaseDistribution) -> JsonScalar:
    is_label = isinstance(distribution, CategoricalDistribution) and not _are_numbers(distribution.choices)
    return label(value) if is_label else value


def _are_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _finite(value: JsonScalar) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _local(moment: datetime | None) -> datetime:
    return _UNKNOWN if moment is None else moment.astimezone().replace(tzinfo=None)
