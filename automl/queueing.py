"""Trials that a person wants: queued configurations, and another try for those that failed."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from automl.configuration_text import Row, values_in
from automl.continuation import present_space
from automl.errors import InvalidSpecError
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError
from search_spaces.space import SearchSpace
from search_spaces.versions import SpaceHistory
from studies.errors import NumberTakenError
from studies.study import Study, View
from studies.trial import Trial, TrialState

__all__ = ["RETRY_OF", "Retry", "enqueue", "places_needed", "places_wanting", "retried_as", "retry"]

RETRY_OF = "retry_of"
"""The attribute of a trial that tries another one's configuration again: the other one's number."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What became of failed trials.

    Attributes:
        queued: number of a failed trial -> number of its new try.
        known: the same for those that had been tried again before.
        left_out: number -> why a trial cannot be tried again in the present space.
    """

    queued: Mapping[int, int]
    known: Mapping[int, int]
    left_out: Mapping[int, str]


def enqueue(study: Study, rows: Sequence[Row], *, count: int = 1) -> tuple[int, ...]:
    """Queue configurations, all or none; each is a wish, so that one that was tried before is tried again.

    Args:
        study: the study that shall try them.
        rows: what is fixed; the search completes what is left open.
        count: how often each is tried, at least 1.

    Returns:
        The numbers of the new trials.

    Raises:
        InvalidSpecError: with every mistake of every configuration; nothing is queued then.
    """
    space = present_space(study).present
    problems: list[str] = []
    wishes: list[Configuration] = []
    for row in rows:
        try:
            wishes += [_wish(space, values_in(row, space))] * count
        except InvalidConfigurationError as error:
            problems += [f"{row.place}: {text}" if row.place else text for text in error.problems]
    if not rows:
        problems.append("there is no configuration")
    if problems:
        raise InvalidSpecError(problems, f"what study '{study.name}' shall try (space '{space.name}')")
    keys = set(study.enqueue(wishes, space.distributions()))
    return tuple(trial.number for trial in study.trials() if trial.id in keys)


def retry(study: Study, numbers: Collection[int] | None = None) -> Retry:
    """Queue the configurations of failed trials anew, each once, and raise the study's limit so that they find places.

    The failed trials stay as they are. Two people who do this at once retry nothing twice.

    Args:
        study: the study.
        numbers: trials to be tried again; None: all that have failed.

    Raises:
        InvalidSpecError: one of `numbers` has not failed, or does not fit the present space; all are named.
    """
    history = present_space(study)
    while True:
        trials = study.trials()
        failed = _failed(study, trials, numbers)
        known = {trial.number: after for trial in failed if (after := retried_as(trials, trial.number)) is not None}
        wishes, left_out = _wishes([trial for trial in failed if trial.number not in known], history)
        if left_out and numbers is not None:
            problems = [f"trial {number}: {reason}" for number, reason in left_out.items()]
            raise InvalidSpecError(problems, f"the trials of study '{study.name}' to be tried again")
        try:
            queued = _queue(study, wishes, history.present, number=len(trials))
        except NumberTakenError as error:
            _log.debug("looking again: %s", error)
            continue
        return Retry(queued=queued, known=known, left_out=left_out)


def retried_as(trials: Sequence[Trial], number: int) -> int | None:
    """The number of the trial that tries the configuration of trial `number` again; None: there is none."""
    return next((trial.number for trial in trials if trial.attributes.get(RETRY_OF) == number), None)


def places_needed(view: View) -> int:
    """How many trials the study's limit must allow, so that every queued one finds a place."""
    return view.claimed + _queued(view)


def places_wanting(view: View) -> int:
    """How many of the queued trials have no place within the study's limit."""
    budget = view.standing.limits.trials
    if budget is None:
        return 0
    return min(_queued(view), max(0, places_needed(view) - budget))


def _failed(study: Study, trials: Sequence[Trial], numbers: Collection[int] | None) -> list[Trial]:
    if numbers is None:
        return [trial for trial in trials if trial.state is TrialState.FAILED]
    last = len(trials) - 1
    problems = [f"there is no trial {number}; the last one is {last}" for number in numbers if not 0 <= number <= last]
    chosen = [trials[number] for number in dict.fromkeys(numbers) if 0 <= number <= last]
    problems += [
        f"trial {trial.number} is {trial.state.value}; only a failed trial is tried again"
        for trial in chosen
        if trial.state is not TrialState.FAILED
    ]
    if problems:
        raise InvalidSpecError(problems, f"the trials of study '{study.name}' to be tried again")
    return chosen


def _wishes(failed: Sequence[Trial], history: SpaceHistory) -> tuple[dict[int, Configuration], dict[int, str]]:
    """Number -> configuration as the present space writes it, and number -> why it cannot."""
    wishes: dict[int, Configuration] = {}
    left_out: dict[int, str] = {}
    for trial in failed:
        try:
            wish = _wish(history.present, history.without_removed(trial.configuration))
        except InvalidConfigurationError as error:
            left_out[trial.number] = "; ".join(error.problems)
            continue
        whole = history.adopt(wish)
        if whole is None:
            left_out[trial.number] = "only part of its configuration is known, as it was refused before it was trained"
        else:
            wishes[trial.number] = whole
    return wishes, left_out


def _queue(study: Study, wishes: Mapping[int, Configuration], space: SearchSpace, *, number: int) -> dict[int, int]:
    if not wishes:
        return {}
    links = [{RETRY_OF: old} for old in wishes]
    study.enqueue(list(wishes.values()), space.distributions(), attributes=links, number=number)
    view = study.look()
    if places_wanting(view):
        study.raise_trials(places_needed(view))
    return {old: new for new, old in enumerate(wishes, start=number)}


def _queued(view: View) -> int:
    return sum(trial.state is TrialState.QUEUED for trial in view.trials)


def _wish(space: SearchSpace, values: Mapping[str, Any]) -> Configuration:
    """Check what is fixed of a configuration; what is left open may be anything.

    Raises:
        InvalidConfigurationError: with every mistake; also when it is whole and cannot be trained.
    """
    if not values:
        raise InvalidConfigurationError(space.name, [f"no parameter is given; parameters: {', '.join(space.names())}"])
    anything = space.complete(values, np.random.default_rng(0))
    whole = space.validate({**anything, **values})
    if values.keys() == whole.keys() and (reason := space.refusal(whole)) is not None:
        raise InvalidConfigurationError(space.name, [f"cannot be trained: {reason}"])
    return Configuration({name: whole[name] for name in whole if name in values})
