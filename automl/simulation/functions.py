"""A person's own function in place of trainings: `curve(configuration, seed)` in a Python file."""

import math
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from automl.errors import InvalidSpecError
from automl.executors.simulated import Measure, Measured
from automl.simulation.problems import USUAL_METRIC, Curve, Problem, by_curves, goal_of
from search_spaces.configuration import Configuration
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from search_spaces.own_files import import_file, place_in
from search_spaces.space import SearchSpace
from trainers.config import Direction

__all__ = ["problem_of_function"]

FUNCTION = "curve"


def problem_of_function(
    path: Path,
    space: SearchSpace,
    *,
    epochs: int,
    metric: str | None = None,
    direction: Direction | None = None,
) -> Problem:
    """Make a problem of a file with `curve(configuration, seed)`.

    The function returns the objective of each epoch, or pairs of it and the epoch's seconds; where it returns fewer
    epochs, the training is complete with the last one. Each training has a seed of its own.

    Args:
        path: the Python file.
        space: what is searched.
        epochs: of a full training; no more are asked for.
        metric: what the objective is called; None: `value`.
        direction: whether larger or smaller objectives are better; None: what the metric's name says.

    Raises:
        InvalidSpecError: there is no such file or function. While it is searched: the function fails, or returns
            something else.
        PluginImportError: the file cannot be imported.
    """
    try:
        function = getattr(import_file(path), FUNCTION, None)
    except OSError as error:
        raise InvalidSpecError([f"cannot read the file: {error.strerror}"], str(path)) from error
    if not callable(function):
        raise InvalidSpecError([f"it must define {FUNCTION}(configuration, seed)"], str(path))
    name = USUAL_METRIC if metric is None else metric
    goal, who = goal_of(name, direction)

    def measure(seed: int) -> Measure:
        return by_curves(lambda configuration, number: _asked(path, function, configuration, [seed, number], epochs))

    return Problem(
        name=path.name,
        space=space,
        metric=name,
        direction=goal,
        epochs=epochs,
        measure=measure,
        notes=(who,) if who else (),
    )


def _asked(
    path: Path, function: Callable[..., Any], configuration: Configuration, seeds: list[int], epochs: int
) -> Curve:
    seed = int(np.random.SeedSequence(seeds).generate_state(1)[0])
    try:
        returned = list(islice(function(configuration.as_dict(), seed), epochs))
    except OWN_CODE_ERRORS as error:
        place = place_in(path.expanduser().resolve(), error) or path.name
        raise InvalidSpecError([f"{place}: {error_in_words(error)}; with {configuration!r}"], str(path)) from error
    measured = [_measured(one) for one in returned]
    if not measured or None in measured:
        said = ", ".join(map(repr, returned[:3])) or "nothing"
        what = (
            f"{FUNCTION} gave {said}; wanted are numbers, or pairs of the objective and seconds; with {configuration!r}"
        )
        raise InvalidSpecError([what], str(path))
    curve = [one for one in measured if one is not None]
    return [*curve[:-1], Measured(curve[-1].value, curve[-1].seconds, is_last=True)]


def _measured(item: object) -> Measured | None:
    """An epoch as the function gave it; None: it is none."""
    pair = tuple(item) if isinstance(item, Iterable) and not isinstance(item, str) else (item, 1.0)
    if len(pair) != 2 or not all(isinstance(one, float | int | np.number) for one in pair):
        return None
    value, seconds = (float(one) for one in pair)
    return Measured(value, seconds) if math.isfinite(seconds) and seconds >= 0.0 else None
