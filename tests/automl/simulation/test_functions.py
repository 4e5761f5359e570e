"""Functions in place of trainings: what they may return, and how their faults are told."""

from pathlib import Path

import pytest

from automl.errors import InvalidSpecError
from automl.simulation.functions import problem_of_function
from automl.simulation.problems import Problem
from search_spaces.configuration import Configuration
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace

SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)})
HALF = Configuration({"x": 0.5})


def problem_with(folder: Path, body: str) -> Problem:
    path = folder / "own.py"
    path.write_text(f"import itertools\n\ndef curve(configuration, seed):\n    {body}\n")
    return problem_of_function(path, SPACE, epochs=3, metric="loss")


@pytest.mark.parametrize(
    ("body", "values", "seconds"),
    [
        ("return [1, 0.5, configuration['x']]", [1.0, 0.5, 0.5], [1.0] * 3),
        ("return ((1 / n, 2 * n) for n in itertools.count(1))", [1.0, 1 / 2, 1 / 3], [2.0, 4.0, 6.0]),
        ("return [0.25]", [0.25], [1.0]),
    ],
    ids=["numbers", "pairs without end", "short"],
)
def test_function_is_a_curve(tmp_path: Path, body: str, values: list[float], seconds: list[float]) -> None:
    measure = problem_with(tmp_path, body).measure(0)
    found = [measure(HALF, 0, epoch) for epoch in range(1, len(values) + 1)]
    assert [one.value for one in found] == values
    assert [one.seconds for one in found] == seconds
    assert [one.is_last for one in found] == [False] * (len(values) - 1) + [True]


def test_each_training_has_a_seed_that_comes_again(tmp_path: Path) -> None:
    problem = problem_with(tmp_path, "return [seed]")
    seeds = [problem.measure(seed)(HALF, number, 1).value for seed in range(3) for number in range(3)]
    assert len(set(seeds)) == 9
    assert problem.measure(2)(HALF, 2, 1).value == seeds[-1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 1 / 0", "own.py, line 4: ZeroDivisionError"),
        ("return []", "curve gave nothing"),
        ("return ['good']", "curve gave 'good'"),
        ("return [(1, 2, 3)]", r"curve gave \(1, 2, 3\)"),
        ("return [(1, -2)]", r"curve gave \(1, -2\)"),
        ("return 7", "TypeError: 'int' object is not iterable"),
    ],
)
def test_fault_of_a_function_is_told_with_its_configuration(tmp_path: Path, body: str, words: str) -> None:
    measure = problem_with(tmp_path, body).measure(0)
    with pytest.raises(InvalidSpecError, match=words) as error:
        measure(HALF, 0, 1)
    assert "x=0.5" in str(error.value)


def test_file_without_the_function_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("")
    with pytest.raises(InvalidSpecError, match=r"must define curve\(configuration, seed\)"):
        problem_of_function(path, SPACE, epochs=3)
    with pytest.raises(InvalidSpecError, match="cannot read the file"):
        problem_of_function(tmp_path / "none.py", SPACE, epochs=3)
