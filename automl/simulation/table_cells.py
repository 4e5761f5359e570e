"""The cells of a simulation's table as values: what a column means, and all mistakes with the lines they are in."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automl.errors import InvalidSpecError
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InvalidConfigurationError, InvalidSpaceError, did_you_mean
from search_spaces.parameters import Categorical
from search_spaces.space import SearchSpace
from search_spaces.value_texts import value_of_text
from trainers.data.table_files import TABLE_KINDS, RawTable, is_table_file, read_table

__all__ = ["Entry", "TableCells", "inferred_space"]

EPOCH, SECONDS, SEED = "epoch", "seconds", "seed"
_MOST_MISTAKES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row that has been read.

    Attributes:
        row: its place, counted from 0.
        configuration: of the training.
        seed: tells trainings of one configuration apart, whatever it says.
        epoch: counted from 1; 1 where the table has no epochs.
        value: the objective; NaN: the training failed there.
        seconds: how long the epoch took.
    """

    row: int
    configuration: Configuration
    seed: object
    epoch: int
    value: float
    seconds: float


@dataclass(slots=True)
class TableCells:
    """A table, its columns, and the mistakes that were found in it so far.

    Attributes:
        path: the file.
        metric: the column of the objective.
        columns: name -> cells; of a text file texts, and None for an empty one.
    """

    path: Path
    metric: str
    columns: Mapping[str, Sequence[Any]]
    _raw: RawTable
    _mistakes: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, metric: str) -> "TableCells":
        """Read a file.

        Raises:
            BadDataError: it cannot be read as a table.
            InvalidSpecError: its name tells no table, it has no rows, or no column of that metric.
        """
        if not is_table_file(path):
            raise InvalidSpecError([f"the name ends in {path.suffix!r}; give a table ({TABLE_KINDS})"], str(path))
        raw = read_table(path)
        problems = [] if len(raw) else ["there are no rows"]
        if metric not in raw.columns:
            near = did_you_mean(metric, raw.columns)
            problems.append(
                f"no column {metric!r} with the objective;{near} columns: {', '.join(raw.columns)}; name it by --metric"
            )
        if problems:
            raise InvalidSpecError(problems, str(path))
        return cls(path, metric, {name: cells.to_pylist() for name, cells in raw.columns.items()}, raw)

    def others(self, space: SearchSpace | None) -> tuple[str, ...]:
        """The columns that are neither the objective, nor epoch, seconds or seed, unless the space has such names."""
        own = {self.metric} | ({EPOCH, SECONDS, SEED} - set(() if space is None else space.parameters))
        return tuple(name for name in self.columns if name not in own)

    def has(self, name: str, space: SearchSpace) -> bool:
        """Whether there is such a column that is no parameter."""
        return name in self.columns and name not in space.parameters

    def entries(self, space: SearchSpace) -> Iterator[Entry]:
        """Read the rows that have no mistakes; `refuse_mistakes` tells the others."""
        names = [name for name in space.parameters if name in self.columns]
        known: dict[object, Configuration | None] = {}
        epochs, seconds, seeds = (self._beside(name, space) for name in (EPOCH, SECONDS, SEED))
        for row, written in enumerate(self.columns[self.metric]):
            cells = tuple(self.columns[name][row] for name in names)
            key = tuple((type(cell), cell) for cell in cells)  # 1 and True are not the same
            if key not in known:
                known[key] = self._configuration(row, dict(zip(names, cells, strict=True)), space)
            configuration, value = known[key], self._value(row, written)
            epoch = 1 if epochs is None else self._epoch(row, epochs[row])
            taken = 1.0 if seconds is None else self._seconds(row, seconds[row])
            if configuration is not None and value is not None and epoch is not None and taken is not None:
                seed = None if seeds is None else seeds[row]
                yield Entry(row=row, configuration=configuration, seed=seed, epoch=epoch, value=value, seconds=taken)

    def mistake(self, row: int, text: str) -> None:
        """Remember a mistake of a row."""
        self._mistakes.setdefault(text, []).append(row)

    def refuse_mistakes(self) -> None:
        """Go on only where there are none.

        Raises:
            InvalidSpecError: all mistakes, each with its lines.
        """
        if not self._mistakes:
            return
        listed = list(self._mistakes.items())
        problems = [f"{self._raw.places(rows)}: {text}" for text, rows in listed[:_MOST_MISTAKES]]
        if len(listed) > _MOST_MISTAKES:
            problems.append(f"and {len(listed) - _MOST_MISTAKES} more")
        raise InvalidSpecError(problems, str(self.path))

    def _configuration(self, row: int, cells: Mapping[str, Any], space: SearchSpace) -> Configuration | None:
        """The configuration of a row's cells; None: it has mistakes."""
        written = {name: _value(space, name, cell) for name, cell in cells.items()}
        try:
            return space.validate({name: value for name, (is_there, value) in written.items() if is_there})
        except InvalidConfigurationError as error:
            for problem in error.problems:
                self.mistake(row, problem)
            return None

    def _beside(self, name: str, space: SearchSpace) -> Sequence[Any] | None:
        return self.columns[name] if self.has(name, space) else None

    def _value(self, row: int, cell: object) -> float | None:
        return math.nan if cell is None else self._number(row, self.metric, cell)

    def _epoch(self, row: int, cell: object) -> int | None:
        number = self._number(row, EPOCH, cell)
        if number is not None and (not math.isfinite(number) or number != int(number) or number < 1):
            self.mistake(row, f"epoch={cell} is no epoch; they are counted from 1")
            return None
        return None if number is None else int(number)

    def _seconds(self, row: int, cell: object) -> float | None:
        number = self._number(row, SECONDS, cell)
        if number is not None and not (math.isfinite(number) and number >= 0.0):
            self.mistake(row, f"seconds={cell} is no duration")
            return None
        return number

    def _number(self, row: int, name: str, cell: Any) -> float | None:
        try:
            return float(cell)
        except (TypeError, ValueError):
            self.mistake(row, f"{name} is empty" if cell is None else f"{name}={cell!r} is no number")
            return None


def inferred_space(table: TableCells, name: str) -> SearchSpace:
    """A space of what the table's columns hold: each column a choice of its values, numbers in their order.

    Raises:
        InvalidSpecError: there are no such columns, or a name is none that a parameter may have.
    """
    try:
        return SearchSpace(name, {column: _choices(table.columns[column]) for column in table.others(None)})
    except InvalidSpaceError as error:
        raise InvalidSpecError([f"no space can be made of its columns: {error}"], str(table.path)) from error


def _choices(cells: Sequence[Any]) -> Categorical:
    kind = _kind(cells)
    values = list(dict.fromkeys(_as(kind, cell) for cell in cells))
    is_ordered = kind is not str and None not in values
    return Categorical(choices=tuple(sorted(values) if is_ordered else values), ordered=is_ordered)


def _kind(cells: Sequence[Any]) -> type[int | float | str]:
    """What all cells are that hold something: whole numbers, finite numbers, or texts."""
    written = {str(cell) for cell in cells if cell is not None}
    for kind in (int, float):
        try:
            if all(math.isfinite(kind(text)) for text in written):
                return kind
        except ValueError:
            continue
    return str


def _as(kind: type[int | float | str], cell: Any) -> Any:
    return None if cell is None else kind(str(cell))


def _value(space: SearchSpace, name: str, cell: Any) -> tuple[bool, JsonScalar]:
    """Whether a cell holds a value, and which; an empty one is a choice only where it is None or an empty text."""
    parameter = space.parameters[name]
    if cell is None:
        choices = parameter.choices if isinstance(parameter, Categorical) else ()
        found = [choice for choice in choices if choice is None or choice == ""]
        return bool(found), found[0] if found else None
    return True, value_of_text(parameter, str(cell))
