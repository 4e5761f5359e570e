"""How the columns of a table become inputs of a network: decided once, by the training rows, and kept for later rows.

A number is standardised; a missing one is the mean, beside an indicator where the training rows lack some. A category
is its place among those of the training rows; 0 stands for missing and unknown ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from trainers.data.table_cells import (
    LARGEST_NUMBER,
    NumberForm,
    cell_texts,
    cell_values,
    has_leading_zeros,
    number_form,
    odd_cells,
    too_large_rows,
    unread_cells,
)
from trainers.data.table_files import RawTable
from trainers.errors import BadDataError
from trainers.reporting import JsonValue

__all__ = [
    "CategoryColumn",
    "Column",
    "EncodedRows",
    "NumberColumn",
    "encode_rows",
    "learn_column",
]

_IDENTIFIER_VALUES = 100
"""A column of texts with more values than this, hardly any of them twice, tells rows apart and nothing else."""
_MANY_CATEGORIES = 50
"""A category for each of so many values is worth a word to the person."""
_ODD_SHARE = 0.1
"""A column with fewer cells that are no number is told of."""
_LOST_SHARE = 0.5
"""Later rows with a larger share of cells that are no number, in a column of numbers, are written otherwise."""
_WRITINGS: Mapping[NumberForm, str] = {
    "plain": "2050.5",
    "decimal_comma": "2.050,5",
    "thousands_comma": "2,050.5",
    "date": "2024-12-31",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """A column that becomes one input, or two.

    Attributes:
        name: as in the file, trimmed.
        form: how its numbers are written.
        mean: of the training rows.
        scale: standard deviation of the training rows.
        indicates: whether a second input says that the number is missing.
    """

    name: str
    form: NumberForm
    mean: float
    scale: float
    indicates: bool
    kind: Literal["number"] = "number"

    def to_json(self) -> dict[str, JsonValue]:
        """Return a plain description."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """A column that becomes the number of its category.

    Attributes:
        name: as in the file, trimmed.
        values: the categories of the training rows, sorted; the first has the number 1.
    """

    name: str
    values: tuple[str, ...]
    kind: Literal["category"] = "category"

    def to_json(self) -> dict[str, JsonValue]:
        """Return a plain description."""
        return {"name": self.name, "values": list(self.values), "kind": self.kind}


Column: TypeAlias = NumberColumn | CategoryColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRows:
    """Rows as a network takes them.

    Attributes:
        numbers_ND: (N, D) float32: the numbers in the order of the columns, then the indicators in the same order.
        categories_NC: (N, C) int64.
        notes: what of the rows the columns could not say: column -> counts in words.
        too_large: numbers that are taken as missing ones: column -> how many and where, in words.
    """

    numbers_ND: npt.NDArray[np.float32]
    categories_NC: npt.NDArray[np.int64]
    notes: Mapping[str, str]
    too_large: Mapping[str, str]


def learn_column(
    name: str, cells: Any, separator: str | None, train: npt.NDArray[np.int64]
) -> tuple[Column | None, tuple[str, ...]]:
    """Decide what becomes of a column.

    Args:
        name: its name.
        cells: all its cells, a pyarrow.ChunkedArray.
        separator: of the file, see `number_form`.
        train: indices of the training rows; only these give means, scales and categories.

    Returns:
        The column, or None when it says nothing; and what the person should know about that.

    Raises:
        BadDataError: the cells are neither numbers nor texts.
    """
    form = number_form(cells, separator)
    if form is not None:
        return _learn_numbers(name, cell_values(cells, form), form, train)
    texts = cell_texts(cells)
    if texts is None:
        raise BadDataError(f"column {name!r} holds {cells.type}; needed: numbers, texts, truth values or dates")
    column, notes = _learn_categories(name, texts.take(train), has_leading_zeros(cells))
    if odd := odd_cells(cells, _ODD_SHARE):
        shown = ", ".join(map(repr, odd[:3]))
        notes = (*notes, f"column {name!r} is no column of numbers only because of {len(odd)} cells, such as {shown}")
    return column, notes


def encode_rows(columns: Sequence[Column], table: RawTable) -> EncodedRows:
    """Turn the rows of a table into inputs.

    Args:
        columns: what was learned; the table has them all, and may have others.
        table: the rows, of the file that was learned from or of another one.

    Raises:
        BadDataError: the table lacks columns, or writes numbers in another way; all are named.
    """
    missing = [repr(column.name) for column in columns if column.name not in table.columns]
    if missing:
        raise BadDataError(
            f"{table.source} has no column {', '.join(missing)}; it has {', '.join(table.columns) or 'none'}"
        )
    numbers, indicators, categories, notes, problems = [], [], [], {}, list[str]()
    too_large = dict[str, str]()
    for column in columns:
        cells = table.columns[column.name]
        if isinstance(column, CategoryColumn):
            codes, note = _codes(column, cells)
            categories.append(codes)
        else:
            values = cell_values(cells, column.form)
            is_missing = np.isnan(values)
            problems += _written_otherwise(column, cells, values)
            if len(large := too_large_rows(cells, column.form, values)):
                too_large[column.name] = _taken_as_missing(large.tolist(), table)
            standard = (values - column.mean) / column.scale
            numbers.append(np.where(is_missing, 0.0, standard).astype(np.float32))
            note = f"{int(is_missing.sum())} missing" if is_missing.any() and not column.indicates else ""
            if column.indicates:
                indicators.append(is_missing.astype(np.float32))
        if note:
            notes[column.name] = note
    if problems:
        raise BadDataError(f"{table.source}: {'; '.join(problems)}; write these columns as in the training rows")
    rows = len(table)
    return EncodedRows(
        numbers_ND=_side_by_side([*numbers, *indicators], rows, np.float32),
        categories_NC=_side_by_side(categories, rows, np.int64),
        notes=notes,
        too_large=too_large,
    )


def _taken_as_missing(rows: Sequence[int], table: RawTable) -> str:
    what = "1 number is infinite" if len(rows) == 1 else f"{len(rows)} numbers are infinite"
    return f"{what} or beyond {LARGEST_NUMBER:g} ({table.places(rows, most=3)}), taken as missing"


def _written_otherwise(column: NumberColumn, cells: Any, values: npt.NDArray[np.float64]) -> list[str]:
    """Say so when the numbers of a column are written so that they would all be taken for missing ones."""
    if not np.isnan(values).any():
        return []
    lost = unread_cells(cells, values)
    given = len(lost) + int(np.isfinite(values).sum())
    if len(lost) <= _LOST_SHARE * given:
        return []
    return [
        f"column {column.name!r} has numbers such as {_WRITINGS[column.form]} in the training rows, and {len(lost)} of "
        f"{given} cells here are none: {', '.join(map(repr, lost[:3]))}"
    ]


def _learn_numbers(
    name: str, values: npt.NDArray[np.float64], form: NumberForm, train: npt.NDArray[np.int64]
) -> tuple[Column | None, tuple[str, ...]]:
    learned = values[train]
    given = learned[~np.isnan(learned)]
    if len(given) == 0:
        return None, (f"column {name!r} is left out: the training rows have no number in it",)
    mean, scale = float(given.mean()), float(given.std())
    indicates = len(given) < len(learned)
    if not np.isfinite(scale) or scale <= abs(mean) * 1e-12:
        if not indicates:
            return None, (f"column {name!r} is left out: it is {mean:g} in all training rows",)
        scale = 1.0  # that it is missing may say something
    notes = {
        "decimal_comma": (f"column {name!r} holds numbers with a decimal comma",),
        "thousands_comma": (f"column {name!r} holds numbers with commas between thousands",),
        "date": (f"column {name!r} holds dates; they count as days",),
    }.get(form, ())
    return NumberColumn(name=name, form=form, mean=mean, scale=scale, indicates=indicates), notes


def _learn_categories(name: str, texts: Any, has_zeros: bool) -> tuple[Column | None, tuple[str, ...]]:
    values = tuple(sorted(texts.drop_null().unique().to_pylist()))
    given = len(texts) - texts.null_count
    if len(values) > _IDENTIFIER_VALUES and len(values) > 0.5 * given:
        return None, (
            f"column {name!r} is left out: it has {len(values)} values in {given} training rows, as identifiers or "
            "free texts have",
        )
    if not values or (len(values) == 1 and given == len(texts)):
        what = f"it is {values[0]!r} in" if values else "it is empty in"
        return None, (f"column {name!r} is left out: {what} all training rows",)
    notes: tuple[str, ...] = ()
    if has_zeros:
        notes = (f"column {name!r} holds codes with leading zeros: {len(values)} categories, no numbers",)
    elif len(values) > _MANY_CATEGORIES:
        notes = (f"column {name!r} has {len(values)} categories",)
    return CategoryColumn(name=name, values=values), notes


def _codes(column: CategoryColumn, cells: Any) -> tuple[npt.NDArray[np.int64], str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = cell_texts(cells)
    if texts is None:
        raise BadDataError(f"column {column.name!r} holds {cells.type}; needed: texts")
    places = pc.index_in(texts, value_set=pa.array(column.values, pa.string()), skip_nulls=True)
    codes: npt.NDArray[np.int64] = pc.fill_null(places, -1).to_numpy().astype(np.int64) + 1
    empty = texts.null_count
    unknown = int((codes == 0).sum()) - empty
    return codes, f"{unknown} with a value that the training rows lack" if unknown else ""


def _side_by_side(columns: Sequence[npt.NDArray[Any]], rows: int, kind: Any) -> npt.NDArray[Any]:
    if not columns:
        return np.zeros((rows, 0), dtype=kind)
    return np.stack(columns, axis=1, dtype=kind)
