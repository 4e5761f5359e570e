"""A table of trainings in place of trainings: a row for each epoch, or for each whole training."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from automl.errors import InvalidSpecError
from automl.executors.simulated import Measure, Measured
from automl.objective import is_finite, to_loss
from automl.simulation.nearest import Nearest
from automl.simulation.problems import USUAL_METRIC, Curve, Problem, by_curves, goal_of
from automl.simulation.table_cells import EPOCH, SEED, Entry, TableCells, inferred_space
from search_spaces.configuration import Configuration
from search_spaces.own_files import name_of_file
from search_spaces.space import SearchSpace
from studies.figures.words import counted, listed
from trainers.config import Direction

__all__ = ["Missing", "problem_of_table"]

Missing: TypeAlias = Literal["nearest", "refuse"]
"""What becomes of a configuration that the table lacks."""


def problem_of_table(
    path: Path,
    *,
    space: SearchSpace | None = None,
    metric: str | None = None,
    direction: Direction | None = None,
    epochs: int | None = None,
    missing: Missing = "nearest",
) -> Problem:
    """Make a problem of a file: columns of the parameters' names, the objective, and maybe `epoch`, `seconds`, `seed`.

    An empty objective, or one that is not finite, lets the training fail there. A curve that is shorter than others is
    that of a training which is complete earlier. Without `epoch` and `seed`, several rows of a configuration are
    several trainings of it.

    Args:
        path: a .csv, .tsv or .parquet file, also a compressed one.
        space: what is searched; None: the values that the columns hold.
        metric: the column of the objective; None: `value`.
        direction: whether larger or smaller objectives are better; None: what the metric's name says.
        epochs: of a full training; None: as many as the longest curve has.
        missing: `nearest`: a configuration that the table lacks brings what the nearest one in it brings; `refuse`: it
            cannot be trained.

    Raises:
        BadDataError: the file cannot be read as a table.
        InvalidSpecError: it has other mistakes, all of which are named with their lines.
    """
    cells = TableCells.read(path, USUAL_METRIC if metric is None else metric)
    searched = inferred_space(cells, name_of_file(path)) if space is None else space
    lacks = [name for name in searched.names() if name not in cells.columns and searched.parameters[name].when is None]
    if lacks:
        raise InvalidSpecError(
            [f"no column for {listed(lacks)} of space '{searched.name}'; columns: {', '.join(cells.columns)}"],
            str(path),
        )
    table = _Trainings(searched, _curves(cells, searched))
    longest = table.epochs
    if epochs is not None and epochs > longest:
        raise InvalidSpecError([f"{counted(epochs, 'epoch')} are asked for, and it has {longest}"], str(path))
    goal, who = goal_of(cells.metric, direction)
    notes = (
        who,
        table.shorter_in_words(longest if epochs is None else epochs),
        "" if space is None else _left_out(cells, space),
    )
    return Problem(
        name=path.name,
        space=searched,
        metric=cells.metric,
        direction=goal,
        epochs=longest if epochs is None else epochs,
        measure=table.measure,
        refuse=None if missing == "nearest" else table.refusal,
        is_known=table.is_known,
        worth=(lambda configuration: table.worth(configuration, goal)) if table.has_noise else None,
        notes=tuple(note for note in notes if note),
    )


class _Trainings:
    """The curves of a table by their configurations; one configuration has several where there is noise."""

    def __init__(self, space: SearchSpace, curves: Mapping[Configuration, Sequence[Curve]]) -> None:
        self._space = space
        self._configurations = tuple(curves)
        self._curves = tuple(curves.values())
        self._places = {configuration: place for place, configuration in enumerate(curves)}

    @property
    def epochs(self) -> int:
        return max(len(curve) for curves in self._curves for curve in curves)

    @property
    def has_noise(self) -> bool:
        return any(len(curves) > 1 for curves in self._curves)

    def is_known(self, configuration: Configuration) -> bool:
        return self._place(configuration) is not None

    def refusal(self, configuration: Configuration) -> str | None:
        return None if self.is_known(configuration) else "not in the table"

    def measure(self, seed: int) -> Measure:
        """What trainings bring; the same configuration brings the same in all searches with this seed."""
        tried: Counter[int] = Counter()

        def curve_of(configuration: Configuration, number: int) -> Curve:
            place = self._place_or_nearest(configuration)
            curves = self._curves[place]
            tried[place] += 1
            if len(curves) == 1:
                return curves[0]
            order = np.random.default_rng([seed, place]).permutation(len(curves))
            return curves[order[(tried[place] - 1) % len(curves)]]

        return by_curves(curve_of)

    def worth(self, configuration: Configuration, direction: Direction) -> float:
        """The mean over the trainings of a configuration of what each is worth: its best epoch."""
        curves = self._curves[self._place_or_nearest(configuration)]
        values = [[one.value for one in curve if is_finite(one.value)] for curve in curves]
        return float(np.mean([min(known, key=lambda value: to_loss(value, direction)) for known in values if known]))

    def shorter_in_words(self, epochs: int) -> str:
        """A sentence on the trainings that are complete before a full one; empty: there are none."""
        every = [curve for curves in self._curves for curve in curves]
        shorter = sum(len(curve) < epochs and is_finite(curve[-1].value) for curve in every)
        if not shorter:
            return ""
        which = f"{shorter:,} of {len(every):,} curves have fewer than {epochs} epochs"
        return f"{which}: these trainings are complete earlier"

    def _place_or_nearest(self, configuration: Configuration) -> int:
        place = self._place(configuration)
        return self._nearest.index(configuration) if place is None else place

    def _place(self, configuration: Configuration) -> int | None:
        """Where it is, or the same network under another name."""
        place = self._places.get(configuration)
        return self._by_key.get(self._space.key(configuration)) if place is None else place

    @cached_property
    def _by_key(self) -> Mapping[str, int]:
        return {self._space.key(configuration): place for configuration, place in self._places.items()}

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self._space, self._configurations)


def _curves(cells: TableCells, space: SearchSpace) -> Mapping[Configuration, Sequence[Curve]]:
    """The curves of each configuration, in the order of the file.

    Raises:
        InvalidSpecError: with all mistakes of the rows.
    """
    is_counted = not (cells.has(EPOCH, space) or cells.has(SEED, space))
    found: dict[Configuration, dict[object, dict[int, Entry]]] = defaultdict(lambda: defaultdict(dict))
    for entry in cells.entries(space):
        trainings = found[entry.configuration]
        seed = len(trainings) if is_counted else entry.seed
        if entry.epoch in trainings[seed]:
            cells.mistake(
                entry.row, "is there before: the same configuration and epoch; a column 'seed' tells them apart"
            )
        trainings[seed][entry.epoch] = entry
    for trainings in found.values():
        for training in trainings.values():
            if len(training) != max(training):
                first = min(epoch for epoch in range(1, max(training)) if epoch not in training)
                cells.mistake(next(iter(training.values())).row, f"epoch {first} of its training is missing")
    cells.refuse_mistakes()
    return {
        configuration: [_curve(training) for training in trainings.values()]
        for configuration, trainings in found.items()
    }


def _curve(training: Mapping[int, Entry]) -> Curve:
    last = len(training)
    return tuple(
        Measured(training[epoch].value, training[epoch].seconds, is_last=epoch == last) for epoch in range(1, last + 1)
    )


def _left_out(cells: TableCells, space: SearchSpace) -> str:
    """A sentence on columns that are no parameters; empty: there are none."""
    names = [name for name in cells.others(space) if name not in space.parameters]
    return f"no parameters of space '{space.name}', and left out: {listed(names)}" if names else ""
