"""What `automl simulate` says of methods that it has compared, as lines and as plain values."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from automl.cli.tables import table
from automl.simulation.comparison import Axis, Budget, Compared, checkpoints, means_at
from automl.simulation.problems import Problem
from automl.simulation.statistics import Interval, mean_interval
from studies.figures.words import counted, seconds_in_words

__all__ = ["comparison_facts", "comparison_lines"]


def comparison_lines(
    problem: Problem, budget: Budget, seeds: Sequence[int], found: Sequence[Compared]
) -> Sequence[str]:
    """Tables of the best values along trainings and along time, and of what is left at the end."""
    count = len(seeds)
    which = f"seeds {seeds[0]} to {seeds[-1]}" if count > 1 else f"seed {seeds[0]}"
    lines = [
        f"{problem.name}: {counted(len(problem.space.parameters), 'parameter')}, "
        f"{counted(problem.epochs, 'epoch')}; {problem.direction} {problem.metric}",
        f"{counted(count, 'search', 'searches')} each ({which}), "
        f"{counted(budget.workers, 'worker')}; means of {problem.metric} with 95 % intervals",
        *(f"note: {note}" for note in problem.notes),
    ]
    for axis in ("trials", "seconds"):
        places = checkpoints(found, axis)
        rows = [[one.method.name, *map(_interval, _means(one, axis, places))] for one in found]
        lines += ["", *table(["best so far", *(_place(axis, place) for place in places)], rows)]
    return [*lines, "", *_ends(found, problem), *_remarks(found)]


def comparison_facts(
    problem: Problem, budget: Budget, seeds: Sequence[int], found: Sequence[Compared]
) -> dict[str, Any]:
    """The same, and every search."""
    return {
        "problem": problem.name,
        "metric": problem.metric,
        "direction": problem.direction,
        "epochs": problem.epochs,
        "workers": budget.workers,
        "trials": budget.trials,
        "seconds": None if math.isinf(budget.seconds) else budget.seconds,
        "resume_seconds": budget.resume_s,
        "notes": list(problem.notes),
        "methods": [_facts(one, found, problem, seeds) for one in found],
    }


def _means(one: Compared, axis: Axis, places: Sequence[float]) -> Sequence[Interval | None]:
    return means_at(one.courses, axis, places)


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.mean:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def _place(axis: Axis, place: float) -> str:
    return f"after {counted(round(place), 'training')}" if axis == "trials" else f"after {seconds_in_words(place)}"


def _ends(found: Sequence[Compared], problem: Problem) -> Sequence[str]:
    """A table of what is left at the end; columns that say nothing are left out."""
    rows = [_end(one, found[0], problem) for one in found]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    return table(names, [[row[name] for name in names] for row in rows])


def _end(one: Compared, first: Compared, problem: Problem) -> dict[str, str]:
    return {
        "at the end": one.method.name,
        "best complete": _interval(_mean_of_known(one.bests)),
        "without noise": "" if one.worths is None else _interval(_mean_of_known(one.worths)),
        f"better than {first.method.name} by": "" if one is first else _paired(one.better_than(first, problem)),
        "time": seconds_in_words(one.means(lambda course: course.seconds)),
        "epochs": f"{one.means(lambda course: float(course.epochs)):,.0f}",
        "trainings": f"{one.means(lambda course: float(course.count)):.4g}",
    }


def _paired(differences: NDArray[np.float64]) -> str:
    """By how much, and in how many of the searches that can be compared."""
    if not len(differences):
        return "-"
    return f"{_interval(mean_interval(differences))}, in {int((differences > 0).sum())} of {len(differences)}"


def _mean_of_known(values: NDArray[np.float64]) -> Interval | None:
    known = values[~np.isnan(values)]
    return mean_interval(known) if len(known) else None


def _remarks(found: Sequence[Compared]) -> Sequence[str]:
    """What else a person should know: searches without a result, similar configurations, and why searches ended."""
    lines = []
    for one in found:
        searches, trainings = len(one.courses), sum(len(course.trials) for course in one.courses)
        if empty := int(np.isnan(one.bests).sum()):
            lines.append(f"{one.method.name}: in {empty} of {searches} searches no training was complete")
        if one.similar:
            lines.append(
                f"{one.method.name}: {one.similar:,} of {trainings:,} trainings stand for a configuration that is not "
                "known, by the nearest one that is"
            )
    return ["", *lines, *_reasons(found)]


def _reasons(found: Sequence[Compared]) -> Sequence[str]:
    """Why the searches ended: one line where all say the same."""
    reasons = {one.method.name: Counter(course.reason for course in one.courses) for one in found}
    if len({reason for counts in reasons.values() for reason in counts}) == 1:
        return [f"every search: {next(iter(next(iter(reasons.values()))))}"]
    return [
        f"{name}: {reason} (in {count} of {counts.total()} searches)"
        for name, counts in reasons.items()
        for reason, count in counts.items()
    ]


def _facts(one: Compared, found: Sequence[Compared], problem: Problem, seeds: Sequence[int]) -> dict[str, Any]:
    differences = one.better_than(found[0], problem)
    return {
        "sampler": one.method.sampler,
        "pruner": one.method.pruner,
        "best": _plain(_mean_of_known(one.bests)),
        "best_without_noise": None if one.worths is None else _plain(_mean_of_known(one.worths)),
        "better_than_first": _plain(mean_interval(differences)) if len(differences) and one is not found[0] else None,
        "similar_trainings": one.similar,
        "along": {
            axis: [
                {"at": place, **(_plain(mean) or {})}
                for place, mean in zip(places, _means(one, axis, places), strict=True)
            ]
            for axis, places in _places(found)
        },
        "searches": [
            {
                "seed": seed,
                "best": None if course.best is None else course.best.value,
                "configuration": None if course.best is None else dict(course.best.configuration),
                "seconds": course.seconds,
                "epochs": course.epochs,
                "trainings": course.count,
                "reason": course.reason,
            }
            for seed, course in zip(seeds, one.courses, strict=True)
        ],
    }


def _places(found: Sequence[Compared]) -> Sequence[tuple[Axis, Sequence[float]]]:
    axes: Sequence[Axis] = ("trials", "seconds")
    return [(axis, checkpoints(found, axis)) for axis in axes]


def _plain(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else {"mean": interval.mean, "low": interval.low, "high": interval.high}
