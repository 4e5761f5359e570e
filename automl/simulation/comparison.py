"""Several methods on one problem: the same seeds for all, so that what differs is theirs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from automl.executors.simulated import simulate
from automl.scheduler import Scheduler
from automl.simulation.courses import Course, course_of
from automl.simulation.methods import Method
from automl.simulation.problems import Problem
from automl.simulation.statistics import Interval, mean_interval
from search_spaces.configuration import Configuration

__all__ = ["Axis", "Budget", "Compared", "checkpoints", "compare", "means_at"]

Axis: TypeAlias = Literal["trials", "seconds"]
"""What a course is read along: trainings that were tried, or simulated time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What each search may use.

    Attributes:
        workers: trainings at the same time, at least 1.
        trials: trainings in all; None: any number.
        seconds: simulated time; infinite: any.
        resume_s: what going on with a trial that rested takes, in seconds.
    """

    workers: int = 1
    trials: int | None = None
    seconds: float = math.inf
    resume_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A method and how its searches went, in the order of the seeds.

    Attributes:
        method: who searched.
        courses: one for each seed.
        bests: the objective of what each search leaves; NaN: no trial completed.
        worths: likewise, without noise; None: there is none, or it is not known.
        similar: trainings in all searches that were those of a similar configuration.
    """

    method: Method
    courses: tuple[Course, ...]
    bests: NDArray[np.float64]
    worths: NDArray[np.float64] | None
    similar: int

    def means(self, per_search: Callable[[Course], float]) -> float:
        """The mean of something over the searches."""
        return float(np.mean([per_search(course) for course in self.courses]))

    def better_than(self, other: "Compared", problem: Problem) -> NDArray[np.float64]:
        """By how much each search leaves something better than the other's with the same seed, where both have."""
        ours, theirs = (one.bests if one.worths is None else one.worths for one in (self, other))
        is_there = ~(np.isnan(ours) | np.isnan(theirs))
        sign = 1.0 if problem.direction == "maximize" else -1.0
        return sign * (ours - theirs)[is_there]


def compare(
    problem: Problem,
    methods: Sequence[Method],
    budget: Budget,
    seeds: Sequence[int],
    told: Callable[[Method], None] = lambda method: None,
) -> tuple[Compared, ...]:
    """Search a problem with each of the methods.

    Args:
        problem: what is searched.
        methods: who searches.
        budget: what each search may use.
        seeds: of the searches, and of the problem's noise; at least one.
        told: is told who has been tried.
    """
    found = []
    for method in methods:
        found.append(_tried(problem, method, budget, seeds))
        told(method)
    return tuple(found)


def _tried(problem: Problem, method: Method, budget: Budget, seeds: Sequence[int]) -> Compared:
    courses = tuple(_searched(problem, method, budget, seed) for seed in seeds)
    bests = [math.nan if course.best is None else course.best.value for course in courses]
    similar = sum(
        not problem.is_known(Configuration(trial.configuration)) for course in courses for trial in course.trials
    )
    return Compared(
        method=method,
        courses=courses,
        bests=np.array(bests, dtype=np.float64),
        worths=_worths(problem, courses),
        similar=similar,
    )


def _searched(problem: Problem, method: Method, budget: Budget, seed: int) -> Course:
    scheduler = Scheduler(
        space=problem.space,
        sampler=method.make_sampler(problem.direction),
        pruner=method.make_pruner(problem.direction, problem.epochs),
        seed=seed,
        refuse=problem.refuse,
    )
    found = simulate(
        scheduler,
        problem.measure(seed),
        workers=budget.workers,
        trials=budget.trials,
        seconds=budget.seconds,
        resume_s=budget.resume_s,
    )
    return course_of(found, problem.direction)


def _worths(problem: Problem, courses: Sequence[Course]) -> NDArray[np.float64] | None:
    if problem.worth is None:
        return None
    return np.array(
        [
            math.nan if course.best is None else problem.worth(Configuration(course.best.configuration))
            for course in courses
        ]
    )


def checkpoints(found: Sequence[Compared], axis: Axis, shares: Sequence[float] = (0.25, 0.5, 1.0)) -> list[float]:
    """Places on an axis at which all methods can be read: shares of what the one that ends first has used.

    Args:
        found: the methods.
        axis: what is read along.
        shares: of the median search of that method.
    """
    used = (lambda course: float(course.count)) if axis == "trials" else (lambda course: course.seconds)
    end = min(float(np.median([used(course) for course in one.courses])) for one in found)
    places = [share * end for share in shares]
    return list(dict.fromkeys(max(1.0, float(round(at))) for at in places)) if axis == "trials" else places


def means_at(courses: Sequence[Course], axis: Axis, places: Sequence[float]) -> list[Interval | None]:
    """The mean of the best value so far at places on an axis; None: one of the searches had none yet."""
    at = np.array(places)
    values = np.array([course.at_tried(at) if axis == "trials" else course.at_times(at) for course in courses])
    return [None if np.isnan(column).any() else mean_interval(column) for column in values.T]
