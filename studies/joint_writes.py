"""Writes to one trial that take place together: a first change of one row, and what follows only if that was possible.

The first change is the birth of the trial, or a change of its own row on the condition that its lease holds. On
PostgreSQL all of it is one statement with data-modifying parts (`WITH holder AS (UPDATE ... RETURNING ...)`): one trip
to the server. Elsewhere the parts are statements of the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Double,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    literal,
    select,
    union_all,
)
from sqlalchemy import Row as ResultRow
from sqlalchemy.dialects import postgresql

from studies.schema.clock import epoch_now
from studies.upsert import upsert

__all__ = ["Row", "insert_jointly", "write_while_held"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row that belongs to the trial: it is inserted, or takes the place of the one with the same keys.

    Attributes:
        table: has a column `trial_id`, which is filled in, and a unique constraint on `trial_id` and `keys`.
        keys: names of the other key columns.
        values: column -> value.
        from_now: columns of a time whose value is given in seconds from now, by the database's clock.
    """

    table: Table
    keys: tuple[str, ...]
    values: Mapping[str, Any]
    from_now: tuple[str, ...] = ()


class _Shape(NamedTuple):
    table: Table
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    from_now: tuple[str, ...]
    size: int


def write_while_held(
    connection: Connection,
    held: Update,
    parameters: Mapping[str, Any],
    *,
    trial_id: int,
    change: Update | None = None,
    rows: Sequence[Row] = (),
    question: tuple[Select[Any], Mapping[str, Any]] | None = None,
) -> Sequence[ResultRow[Any]] | None:
    """Change the trial's own row by `held`, and if that was possible do the rest.

    Args:
        connection: holds the transaction.
        held: changes at most one row, which has a `trial_id`.
        parameters: of `held` and `change`.
        trial_id: the trial.
        change: a change of another row with the same `trial_id`.
        rows: what is written besides.
        question: a statement that reads, and its values. PostgreSQL answers with what was there before the write.

    Returns:
        The answer to the question, empty without one; None when the lease did not hold, and nothing was written.
    """
    if connection.dialect.name == "postgresql":
        return _at_once(connection, held, parameters, change, rows, question)
    if connection.execute(held, parameters).rowcount != 1:
        return None
    if change is not None:
        connection.execute(change, parameters)
    for shape, group in _grouped(rows):
        values = [{"trial_id": trial_id, **row.values} for row in group]
        upsert(connection, shape.table, ("trial_id", *shape.keys), values)
    return [] if question is None else connection.execute(*question).all()


def insert_jointly(connection: Connection, birth: Insert, parameters: Mapping[str, Any], rows: Sequence[Row]) -> int:
    """Insert a trial with all its rows; its key in the database.

    Args:
        connection: holds the transaction.
        birth: inserts one row, and says the value of each column.
        parameters: of `birth`.
        rows: what belongs to the trial.
    """
    if connection.dialect.name == "postgresql":
        answer = _at_once(connection, birth, parameters, None, rows, (_KEY, {}))
        assert answer is not None
        return int(answer[0].holder)
    key = connection.execute(birth, parameters).inserted_primary_key
    assert key is not None
    trial_id = int(key[0])
    for shape, group in _grouped(rows):
        connection.execute(_insert(shape.table, shape.from_now), [_values(trial_id, row) for row in group])
    return trial_id


def _at_once(
    connection: Connection,
    first: Insert | Update,
    parameters: Mapping[str, Any],
    change: Update | None,
    rows: Sequence[Row],
    question: tuple[Select[Any], Mapping[str, Any]] | None,
) -> Sequence[ResultRow[Any]] | None:
    """Do everything in one statement; the answer to the question, None when the first change was not possible."""
    shapes, values = [], dict(parameters)
    for number, (shape, group) in enumerate(_grouped(rows)):
        shapes.append(shape)
        for place, row in enumerate(group):
            values |= {f"{name}_{number}_{place}": value for name, value in row.values.items()}
    query, asked = question or (_KEY, {})
    answer = connection.execute(_statement(first, change, tuple(shapes), query), {**values, **asked}).all()
    is_held = bool(answer) and answer[0].holder is not None
    return None if not is_held else answer if question is not None else []


_KEY = select(literal(1).label("nothing"))
"""A question of one row."""


def _grouped(rows: Sequence[Row]) -> list[tuple[_Shape, list[Row]]]:
    """Put neighbours of one table and the same columns together."""
    groups = groupby(rows, key=lambda row: (row.table, row.keys, tuple(row.values), row.from_now))
    lists = [(shape, list(group)) for shape, group in groups]
    return [(_Shape(*shape, size=len(group)), group) for shape, group in lists]


@lru_cache(maxsize=512)  # building one takes longer than running it
def _statement(
    first: Insert | Update, change: Update | None, shapes: tuple[_Shape, ...], question: Select[Any]
) -> Select[Any]:
    trial_id = first.table.c.trial_id
    holder = first.returning(trial_id).cte("holder")
    parts = [_part(holder, number, shape) for number, shape in enumerate(shapes)]
    if change is not None:
        of_holder = change.table.c.trial_id == select(holder.c.trial_id).scalar_subquery()
        parts.append(change.where(of_holder).cte("change"))
    return question.add_columns(select(holder.c.trial_id).scalar_subquery().label("holder")).add_cte(*parts)


def _part(holder: CTE, number: int, shape: _Shape) -> CTE:
    table = shape.table

    def value(name: str, place: int) -> ColumnElement[Any]:
        given = bindparam(f"{name}_{number}_{place}", type_=table.c[name].type)
        return (epoch_now() + given if name in shape.from_now else given).label(name)

    rows = [select(holder.c.trial_id, *(value(name, place) for name in shape.columns)) for place in range(shape.size)]
    source = rows[0] if shape.size == 1 else union_all(*rows)
    insert = postgresql.insert(table).from_select(["trial_id", *shape.columns], source)
    given = {column.name for column in table.columns if column.name in shape.columns or column.default is not None}
    changed = {name: insert.excluded[name] for name in given if name not in shape.keys}
    if changed:
        insert = insert.on_conflict_do_update(index_elements=["trial_id", *shape.keys], set_=changed)
    return insert.cte(f"part_{number}")


@lru_cache(maxsize=512)
def _insert(table: Table, from_now: tuple[str, ...]) -> Insert:
    return table.insert().values({name: epoch_now() + bindparam(f"{name}_from_now", type_=Double) for name in from_now})


def _values(trial_id: int, row: Row) -> dict[str, Any]:
    named = {f"{name}_from_now" if name in row.from_now else name: value for name, value in row.values.items()}
    return {"trial_id": trial_id, **named}
