"""Constants for trainings whose parameters have no kind that we know."""

from pathlib import Path

import pytest

from search_spaces import Float, SearchSpace
from search_spaces.configuration import JsonScalar
from tests.trainers.custom.own import write
from trainers.settings import checked_constants
from trainers.tasks import load_trainer

SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)})
FIT = "def fit(context):\n    context.report({'accuracy': 1.0})\n"


@pytest.mark.parametrize(
    "text, value",
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("none", None),
        ("adam", "adam"),
        ("nan", "nan"),
        ("-inf", "-inf"),
        ("1e999", "1e999"),
    ],
)
def test_text_becomes_what_it_says_unless_no_database_holds_it(tmp_path: Path, text: str, value: JsonScalar) -> None:
    trainer = load_trainer(str(write(tmp_path, "own.py", FIT)))
    found = checked_constants({"own": text}, trainer, SPACE)["own"]
    assert (found, type(found)) == (value, type(value))


def test_constant_in_the_place_of_a_searched_parameter_is_what_the_parameter_is(tmp_path: Path) -> None:
    trainer = load_trainer(str(write(tmp_path, "own.py", FIT)))
    assert checked_constants({"x": "0.5"}, trainer, SPACE) == {"x": 0.5}
    with pytest.raises(ValueError, match=r"^x='2' is outside \[0.0, 1.0\] \(space 'own'\)$"):
        checked_constants({"x": "2"}, trainer, SPACE)


def test_value_that_is_no_scalar_is_one_mistake(tmp_path: Path) -> None:
    trainer = load_trainer(str(write(tmp_path, "own.py", FIT)))
    given = {"a": float("nan"), "b": [1, 2], "c": 1}
    with pytest.raises(ValueError, match=r"^a=nan is not allowed: [^;]*; b=\[1, 2\] is not allowed: [^;]*$"):
        checked_constants(given, trainer, SPACE)
