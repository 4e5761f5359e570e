"""Something to be searched without trainings: a space, and what each training would bring."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from automl.executors.simulated import Measure, Measured
from search_spaces.configuration import Configuration
from search_spaces.space import Refusal, SearchSpace
from trainers.config import Direction
from trainers.custom.directions import well_known_direction

__all__ = ["USUAL_METRIC", "Curve", "Problem", "by_curves", "goal_of"]

USUAL_METRIC = "value"
"""What the objective is called where nobody says otherwise."""

Curve: TypeAlias = Sequence[Measured]
"""A whole training, epoch by epoch; at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A space with the trainings of its configurations.

    Attributes:
        name: where it comes from, such as the name of a file.
        space: what is searched.
        metric: what the objective is called.
        direction: whether larger or smaller objectives are better.
        epochs: of a full training.
        measure: seed -> what trainings bring; equal seeds have equal noise.
        refuse: why a configuration cannot be trained, or None; None: all can.
        is_known: whether what a training brings is known of the very configuration, and not of a similar one.
        worth: the objective of a full training without noise; None: it is not known, or there is no noise.
        notes: what a person should know, a sentence each.
    """

    name: str
    space: SearchSpace
    metric: str
    direction: Direction
    epochs: int
    measure: Callable[[int], Measure]
    refuse: Refusal | None = None
    is_known: Callable[[Configuration], bool] = lambda configuration: True
    worth: Callable[[Configuration], float] | None = None
    notes: tuple[str, ...] = ()


def by_curves(curve_of: Callable[[Configuration, int], Curve]) -> Measure:
    """Measure trainings that are known as a whole.

    Args:
        curve_of: configuration and number of the trial -> its curve; asked once for each trial. The epoch that a curve
            ends with is the last one of that training.
    """
    begun: dict[int, Curve] = {}

    def measure(configuration: Configuration, number: int, epoch: int) -> Measured:
        if number not in begun:
            begun[number] = curve_of(configuration, number)
        return begun[number][epoch - 1]

    return measure


def goal_of(metric: str, given: Direction | None) -> tuple[Direction, str]:
    """Which way is better, and a sentence on who says so; empty where a person did.

    Args:
        metric: what the objective is called.
        given: what a person said; None: nothing.
    """
    if given is not None:
        return given, ""
    told = well_known_direction(metric)
    if told is not None:
        return told, f"{metric!r} is to {told}, as its name says; --direction changes it"
    return "minimize", f"{metric!r} is to minimize, as nothing says otherwise; --direction maximize changes it"
