"""The table of trials keeps every value under a name of its own and with its type, whatever a study holds."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from studies.trial import Trial
from studies.trial_table import Column, columns_of, in_text
from tests.studies.figures.examples import trial, with_configuration
from tests.studies.figures.odd_studies import ODD_STUDIES

FACTS = [
    "number", "state", "value", "cause", "attempt", "losses", "last_epoch", "started_at", "ended_at", "duration_s",
    "imported",
]  # fmt: skip


def by_name(trials: Sequence[Trial]) -> dict[str, Column]:
    columns = columns_of(trials)
    assert len({column.name for column in columns}) == len(columns)
    return {column.name: column for column in columns}


@pytest.mark.parametrize("name", ODD_STUDIES)
def test_odd_study_is_exported_as_csv_and_typed_columns(name: str) -> None:
    trials = ODD_STUDIES[name].trials
    columns = by_name(trials)
    assert list(columns)[: len(FACTS)] == FACTS
    types = {"integer": int, "number": float | int, "boolean": bool, "text": str, "moment": datetime}
    for column in columns.values():
        assert len(column.values) == len(trials)
        assert all(value is None or isinstance(value, types[column.kind]) for value in column.values)
    for position, odd in enumerate(trials):
        for parameter, value in odd.configuration.items():
            stored = columns[f"param_{parameter}"].values[position]
            assert stored == value or in_text(stored) == in_text(value)


@pytest.mark.parametrize("values, kind", [
    ((1, None, 2), "integer"),
    ((1, 0.5), "number"),
    ((math.nan, math.inf, None), "number"),
    ((True, None, False), "boolean"),
    ((True, 1), "text"),
    ((1, "1"), "text"),
    ((2**63, 1), "text"),
    ((2**53 + 1, 0.5), "text"),
    ((None, None), "text"),
    (([1], None), "text"),
], ids=str)  # fmt: skip
def test_column_is_of_the_narrowest_kind_that_keeps_every_value(values: tuple[Any, ...], kind: str) -> None:
    column = by_name([with_configuration(trial(n), {"x": value}) for n, value in enumerate(values)])["param_x"]
    assert column.kind == kind
    assert [in_text(value) for value in column.values] == [in_text(value) for value in values]


def test_names_that_are_also_columns_or_each_other_stay_apart() -> None:
    example = with_configuration(trial(0, value=0.5), {"state": "a", "param_state": "b", "number": 7, "attribute_x": 1})
    columns = by_name([example])
    assert columns["state"].values == ("complete",)
    assert columns["param_state"].values == ("a",)
    assert columns["param_param_state"].values == ("b",)
    assert columns["number"].values == (0,)
    assert columns["param_number"].values == (7,)


@pytest.mark.parametrize("number", [0.1, 1e-300, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf])
def test_number_is_read_back_from_its_text_exactly(number: float) -> None:
    assert math.copysign(1.0, float(in_text(number))) == math.copysign(1.0, number)
    assert float(in_text(number)) == number
