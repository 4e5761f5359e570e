"""Configurations as people write them: NAME=VALUE words, the rows of a CSV file, the items of a JSON file.

Text becomes a value by the kind of its parameter. Whether the value is allowed is the space's question: what cannot be
read stays text, so that the space's own message names it.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automl.errors import InvalidSpecError
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Parameter
from search_spaces.space import SearchSpace
from search_spaces.value_texts import value_of_text

__all__ = ["Row", "Table", "is_table", "read_table", "row_of_words", "values_in"]

_SUFFIXES = (".csv", ".json")
_PREFIXES = ("param_", "params_")
"""Columns of parameters in a table that `automl export` wrote, and in one of Optuna's `trials_dataframe`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was written about one trial.

    Attributes:
        place: where it stands, for messages, such as `line 3`; empty for the command line.
        parameters: name -> what was written; may hold names that are no parameters.
        facts: everything beside, and also the parameters where nothing tells the two apart.
        is_text: whether all values are text that is to be read by the kind of parameter.
    """

    place: str
    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    is_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of a file, and the direction of the study that it says it comes from; None: it does not say."""

    rows: tuple[Row, ...]
    direction: str | None


def row_of_words(words: Sequence[str]) -> Row:
    """Read `NAME=VALUE` words of a command.

    Raises:
        InvalidSpecError: a word has no `=`, or a name is there twice; all such words are named.
    """
    problems, values = [], {}
    for word in words:
        name, sign, value = word.partition("=")
        if not (sign and name):
            problems.append(f"{word!r} is not NAME=VALUE")
        elif name in values:
            problems.append(f"{name} is given twice")
        values[name] = value
    if problems:
        raise InvalidSpecError(problems, "the command line")
    return Row(place="", parameters=values, facts={}, is_text=True)


def is_table(reference: str) -> bool:
    """Whether a name ends like a file that `read_table` reads."""
    return Path(reference).suffix.lower() in _SUFFIXES


def read_table(path: Path) -> Table:
    """Read a CSV file with a header, or a JSON file with a list of objects; both as `automl export` writes them, too.

    A column `param_NAME` holds a parameter, and then all others are facts; in JSON `configuration` holds them all.
    Without these every column is a parameter.

    Raises:
        InvalidSpecError: the file cannot be read, or holds something else.
    """
    if not is_table(str(path)):
        raise InvalidSpecError([f"the name ends in {path.suffix!r}; give a .csv or a .json file"], str(path))
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidSpecError([f"cannot read the file: {error.strerror}"], str(path)) from error
    except UnicodeDecodeError as error:
        raise InvalidSpecError([f"the file is not UTF-8 text: {error.reason}; save it as UTF-8"], str(path)) from error
    return _csv_table(text, path) if path.suffix.lower() == ".csv" else _json_table(text, path)


def values_in(row: Row, space: SearchSpace) -> dict[str, Any]:
    """The row's parameters as values; an empty cell is a missing value, unless a choice is written so."""
    values = {}
    for name, written in row.parameters.items():
        parameter = space.parameters.get(name)
        if not row.is_text or parameter is None:
            values[name] = written
        elif written or not row.place:
            values[name] = value_of_text(parameter, written)
        elif choices := _empty_choices(parameter):
            values[name] = choices[0]
    return values


def _empty_choices(parameter: Parameter) -> list[JsonScalar]:
    """How an export writes an empty cell: for None, and for a text without letters."""
    choices = parameter.choices if isinstance(parameter, Categorical) else ()
    return [choice for choice in choices if choice is None or choice == ""]


def _csv_table(text: str, path: Path) -> Table:
    try:
        lines = [(number, cells) for number, cells in enumerate(csv.reader(text.splitlines(keepends=True)), 1) if cells]
    except csv.Error as error:
        raise InvalidSpecError([f"not a CSV file: {error}"], str(path)) from error
    if not lines:
        raise InvalidSpecError(["the file is empty; wanted are a header and a line per trial"], str(path))
    (_, header), *body = lines
    problems = [f"the column {name!r} is there twice" for name in dict.fromkeys(header) if header.count(name) > 1]
    problems += [
        f"line {number} has {len(cells)} cells, and the header {len(header)}"
        for number, cells in body
        if len(cells) != len(header)
    ]
    if problems:
        raise InvalidSpecError(problems, str(path))
    rows = (_row(f"line {number}", dict(zip(header, cells, strict=True)), is_text=True) for number, cells in body)
    return Table(rows=tuple(rows), direction=None)


def _json_table(text: str, path: Path) -> Table:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidSpecError([f"not valid JSON: {error}"], str(path)) from error
    items, direction = document, None
    if isinstance(document, dict):
        items, direction = document.get("trials"), document.get("direction")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidSpecError(['wanted is a list of objects, one per trial: [{"NAME": VALUE, ...}, ...]'], str(path))
    rows = (_row(f"item {number}", item, is_text=False) for number, item in enumerate(items, 1))
    return Table(rows=tuple(rows), direction=direction)


def _row(place: str, values: Mapping[str, Any], *, is_text: bool) -> Row:
    if isinstance(values.get("configuration"), Mapping):
        return Row(place=place, parameters=values["configuration"], facts=values, is_text=is_text)
    marked = dict(_marked(values))
    return Row(place=place, parameters=marked or values, facts=values, is_text=is_text)


def _marked(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for prefix in _PREFIXES:
        for name, value in values.items():
            if name.startswith(prefix):
                yield name.removeprefix(prefix), value
