"""What the cells of a table say: whether they are numbers, how those are written, and their values.

A column is a pyarrow.ChunkedArray, of texts from a text file and of any type from other files.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "LARGEST_NUMBER",
    "NumberForm",
    "cell_texts",
    "cell_values",
    "has_leading_zeros",
    "number_form",
    "odd_cells",
    "too_large_rows",
    "unread_cells",
]

NumberForm: TypeAlias = Literal["plain", "decimal_comma", "thousands_comma", "date"]
"""How numbers are written: `2050.5`, `2.050,5`, `2,050.5`, or as dates, which count in days since 1970."""

LARGEST_NUMBER = 1e150
"""Larger numbers are none for a network: the squares of some of them, which their spread is made of, have no value."""

_INFINITE_WORDS = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
_MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "nil", "?", "-", *_INFINITE_WORDS)
"""What stands for no number in a column of numbers, in lower case; in a column of categories these are categories."""

_PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_PATTERNS: Mapping[NumberForm, str] = {
    "plain": f"^{_PLAIN}$",
    "decimal_comma": r"^[+-]?((\d{1,3}(\.\d{3})+|\d+)(,\d*)?|,\d+)([eE][+-]?\d+)?$",
    "thousands_comma": f"^([+-]?\\d{{1,3}}(,\\d{{3}})+(\\.\\d*)?|{_PLAIN})$",
    "date": r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$",
}
_DAY_US = 86_400e6


def number_form(column: Any, separator: str | None) -> NumberForm | None:
    """Return how the numbers of a column are written; None where its cells are no numbers.

    A column of texts is one of numbers only if each of its cells is one, or stands for a missing one (`NA`, `?`, ...);
    codes with leading zeros such as `007` are none.

    Args:
        column: the cells.
        separator: of the file: a comma in a cell is a decimal comma only where commas do not separate cells.
    """
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "plain"
    if kinds.is_temporal(kind) and not kinds.is_duration(kind):
        return "date" if kinds.is_timestamp(kind) or kinds.is_date(kind) else None
    if not _is_text(kind):
        return None
    if has_leading_zeros(column):
        return None
    texts = _texts(column)
    if texts.null_count < len(texts) and _cast_at_once(texts) is not None:
        return "plain"
    cells = _given(texts)
    if len(cells) == 0:
        return None
    comma: NumberForm = "thousands_comma" if separator in (None, ",") else "decimal_comma"
    forms: tuple[NumberForm, ...] = ("plain", comma, "date")
    for form in forms:
        if _all_match(cells, _PATTERNS[form]) and (form != "date" or _are_dates(cells)):
            return form
    return None


def has_leading_zeros(column: Any) -> bool:
    """Whether texts have numbers such as `007`, which are codes: as a number they would lose their zeros."""
    import pyarrow.compute as pc

    return _is_text(column.type) and bool(pc.any(pc.match_substring_regex(_texts(column), r"^\s*[+-]?0\d")).as_py())


def odd_cells(column: Any, most_share: float) -> list[str]:
    """Return what is no number in a column of texts that are nearly all numbers; nothing where they are not.

    Args:
        column: the cells.
        most_share: share of the cells that may be odd, for the column to be nearly all numbers.
    """
    import pyarrow.compute as pc

    if not _is_text(column.type):
        return []
    cells = _given(_texts(column))
    odd = cells.filter(pc.invert(pc.match_substring_regex(cells, _PATTERNS["plain"])))
    texts: list[str] = odd.to_pylist()
    return texts if 0 < len(texts) <= most_share * len(cells) else []


def cell_values(column: Any, form: NumberForm) -> npt.NDArray[np.float64]:
    """Return the numbers of a column, which must not all be written in this form; NaN: none, or one that is too large.

    Args:
        column: the cells.
        form: how numbers are written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_text(column.type):
        texts = _texts(column)
        if form == "plain" and (numbers := _cast_at_once(texts)) is not None:
            return _finite(numbers)
        cells = pc.if_else(pc.match_substring_regex(texts, _PATTERNS[form]), texts, None)
        if form == "decimal_comma":
            cells = pc.replace_substring(pc.replace_substring(cells, ".", ""), ",", ".")
        elif form == "thousands_comma":
            cells = pc.replace_substring(cells, ",", "")
        if form == "date":
            return _days_of_texts(cells)
        column = cells
    elif form == "date":
        microseconds = pc.cast(pc.cast(column, pa.timestamp("us"), safe=False), pa.int64())
        return _finite(microseconds) / _DAY_US
    return _finite(column)


def too_large_rows(column: Any, form: NumberForm, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the rows, counted from 0, whose numbers are infinite or beyond `LARGEST_NUMBER`.

    Args:
        column: the cells.
        form: how numbers are written.
        values: what `cell_values` has returned of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.flatnonzero(np.isnan(values))
    if len(rows) == 0 or form == "date":
        return rows[:0]
    cells = column.take(pa.array(rows))
    if _is_text(column.type):
        texts = _texts(cells)
        is_infinite = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(_INFINITE_WORDS))
        is_large = pc.or_kleene(is_infinite, pc.match_substring_regex(texts, _PATTERNS[form]))
    else:
        is_large = pc.greater(pc.abs(pc.cast(cells, pa.float64(), safe=False)), LARGEST_NUMBER)
    found: npt.NDArray[np.int64] = rows[pc.fill_null(is_large, False).to_numpy().astype(bool)]
    return found


def unread_cells(column: Any, values: npt.NDArray[np.float64]) -> list[str]:
    """Return the cells that stand for something in which `cell_values` has found no number.

    Args:
        column: the cells.
        values: what `cell_values` has returned of them.
    """
    import pyarrow as pa

    if not _is_text(column.type):
        return []
    cells: list[str] = _given(_texts(column).filter(pa.array(np.isnan(values)))).to_pylist()
    return cells


def cell_texts(column: Any) -> Any:
    """Return the cells as trimmed texts, null where they are empty; None where they cannot be (lists, bytes)."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    if _is_text(column.type):
        texts = _texts(column)
        return pc.if_else(pc.equal(texts, ""), None, texts)
    if kinds.is_boolean(column.type) or kinds.is_null(column.type) or kinds.is_temporal(column.type):
        return column.cast(pa.string())
    if kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type):
        return column.cast(pa.string())
    return None


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _texts(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(column if column.type == pa.string() else column.cast(pa.string()))


def _cast_at_once(texts: Any) -> Any:
    """Return texts as numbers where all are plain ones, as in most columns: ten times faster than to look at each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return None


def _given(texts: Any) -> Any:
    """Return the texts that stand for something."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = texts.drop_null()
    is_missing = pc.is_in(pc.utf8_lower(present), value_set=pa.array(_MISSING_WORDS))
    return present.filter(pc.invert(is_missing))


def _all_match(texts: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    if not _matches_first(texts, pattern):
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _matches_first(texts: Any, pattern: str) -> bool:
    """Look at one cell first: most columns that are not of a form show it there."""
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(texts[0], pattern).as_py())


def _are_dates(texts: Any) -> bool:
    return not np.isnan(_days_of_texts(texts)).any()


def _days_of_texts(texts: Any) -> npt.NDArray[np.float64]:
    import pandas as pd

    moments = pd.to_datetime(texts.to_pandas(), format="ISO8601", errors="coerce")
    days: npt.NDArray[np.float64] = ((moments - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(np.float64)
    return days


def _finite(column: Any) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= LARGEST_NUMBER, values, np.nan)
