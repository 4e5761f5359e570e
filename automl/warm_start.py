"""A warm start: results that were measured elsewhere, for the samplers of a study to learn from."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from automl.errors import InvalidSpecError
from automl.objective import to_loss
from automl.results import Result, Source
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError
from search_spaces.versions import SpaceHistory
from studies.errors import NumberTakenError
from studies.study import Study
from studies.trial import Trial
from trainers.config import Direction

__all__ = ["IMPORTED_FROM", "Fitted", "add", "first_of", "fit"]

IMPORTED_FROM = "imported_from"
"""The attribute of an imported trial that names its source."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The results that a study can learn from.

    Attributes:
        source: name of their source.
        history: the space that they were brought into.
        results: as the present space writes them, the best last; at least one.
        left_out: why others do not fit, one line each.
        without_value: as in `Source`.
    """

    source: str
    history: SpaceHistory
    results: tuple[Result, ...]
    left_out: tuple[str, ...]
    without_value: int


def fit(source: Source, history: SpaceHistory, direction: Direction, *, top: int | None = None) -> Fitted:
    """Keep the results that the present space can write, with its defaults where a parameter is missing; best last.

    Args:
        source: the results.
        history: the versions of the study's space.
        direction: whether larger or smaller objectives are better.
        top: keep the best of them only; None: all.

    Raises:
        InvalidSpecError: the source optimises the other way, or nothing fits.
    """
    origin = f"the results of {source.name}"
    if source.direction not in (None, direction):
        raise InvalidSpecError([f"they are to {source.direction}, and this study is to {direction}"], origin)
    results, left_out = [], []
    for result in source.results:
        try:
            configuration = _adopted(result.configuration, history)
        except InvalidConfigurationError as error:
            left_out.append(f"{result.place}: {'; '.join(error.problems)}")
        else:
            results.append(Result(place=result.place, configuration=configuration, value=result.value))
    if not results:
        raise InvalidSpecError([_nothing_fits(source), *first_of(left_out)], origin)
    # The best last: a sampler that forgets old trials starts from the best of them.
    results.sort(key=lambda result: to_loss(result.value, direction), reverse=True)
    return Fitted(
        source=source.name,
        history=history,
        results=tuple(results if top is None else results[-top:]),
        left_out=tuple(left_out),
        without_value=source.without_value,
    )


def add(study: Study, fitted: Fitted, *, once: bool = False) -> int:
    """Add results to a study, except those that it has from the same source already.

    Args:
        study: the study, whose present space the results fit.
        fitted: the results.
        once: add nothing at all when the study has anything from this source.

    Returns:
        How many were added.
    """
    space = fitted.history.present
    keyed = [(space.key(result.configuration), result) for result in fitted.results]
    while True:
        trials = study.trials()
        known = _known(trials, fitted)
        if once and known:
            return 0
        new = {(key, result.value): result for key, result in keyed if (key, result.value) not in known}
        if not new:
            return 0
        try:
            return study.add_imported(
                [(Configuration(result.configuration), result.value) for result in new.values()],
                space.distributions(),
                attributes=[{IMPORTED_FROM: fitted.source, "imported_as": one.place} for one in new.values()],
                number=len(trials),
            )
        except NumberTakenError as error:
            _log.debug("looking again: %s", error)


def _known(trials: Sequence[Trial], fitted: Fitted) -> set[tuple[str, float]]:
    """Key and value of what there is from this source already."""
    known = set()
    for trial in trials:
        if trial.is_imported and trial.value is not None and trial.attributes.get(IMPORTED_FROM) == fitted.source:
            configuration = fitted.history.adopt(trial.configuration)
            key = "no longer fits" if configuration is None else fitted.history.present.key(configuration)
            known.add((key, trial.value))
    return known


def _adopted(configuration: Mapping[str, Any], history: SpaceHistory) -> Configuration:
    """Raises InvalidConfigurationError with every reason why the present space cannot write it."""
    space = history.present
    whole = space.validate({**(space.defaults or {}), **history.without_removed(configuration)})
    if (reason := space.refusal(whole)) is not None:
        raise InvalidConfigurationError(space.name, [reason])
    return whole


def _nothing_fits(source: Source) -> str:
    without = f", {source.without_value} more have no finite objective" if source.without_value else ""
    return f"none of {len(source.results)} results fits the space{without}"


def first_of(reasons: Sequence[str], most: int = 3) -> list[str]:
    """The first reasons, and how many there are besides."""
    more = [f"and {len(reasons) - most} more"] if len(reasons) > most else []
    return [*reasons[:most], *more]
