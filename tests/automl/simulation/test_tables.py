"""Tables as problems: what their columns mean, what they lack, and their mistakes with the lines they are in."""

import gzip
import math
from pathlib import Path

import pandas as pd
import pytest

from automl.errors import InvalidSpecError
from automl.executors.simulated import Measured
from automl.simulation.problems import Problem
from automl.simulation.tables import problem_of_table
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from tests.automl.simulation.conftest import TableOf
from trainers.errors import BadDataError

CURVES = (
    "x,kind,epoch,seconds,accuracy",
    "0.1,a,1,2.0,0.5",
    "0.1,a,2,2.5,0.6",
    "0.2,b,1,3.0,0.4",
    "0.2,b,2,3.5,0.7",
)


def course(problem: Problem, configuration: dict[str, object], seed: int = 0, number: int = 0) -> list[Measured]:
    measure = problem.measure(seed)
    whole = Configuration(configuration)  # type: ignore[arg-type]  # scalars, all of them
    found = [measure(whole, number, epoch) for epoch in range(1, problem.epochs + 1)]
    return found


def problems(path: Path, **options: object) -> str:
    with pytest.raises(InvalidSpecError) as error:
        problem_of_table(path, **options)  # type: ignore[arg-type]  # each test gives what it is about
    return str(error.value)


def test_table_of_curves_is_a_space_of_its_values(table_of: TableOf) -> None:
    problem = problem_of_table(table_of(CURVES), metric="accuracy")
    assert problem.space.parameters == {
        "x": Categorical(choices=(0.1, 0.2), ordered=True),
        "kind": Categorical(choices=("a", "b")),
    }
    assert (problem.direction, problem.epochs) == ("maximize", 2)
    assert course(problem, {"x": 0.2, "kind": "b"}) == [Measured(0.4, 3.0), Measured(0.7, 3.5, is_last=True)]
    assert problem.worth is None


def test_row_alone_is_a_whole_training_of_a_second(table_of: TableOf) -> None:
    problem = problem_of_table(table_of(["n,value", "3,0.5", "1,0.25", "2,"]))
    assert problem.space.parameters == {"n": Categorical(choices=(1, 2, 3), ordered=True)}
    assert (problem.direction, problem.epochs) == ("minimize", 1)
    assert course(problem, {"n": 1}) == [Measured(0.25, 1.0, is_last=True)]
    assert math.isnan(course(problem, {"n": 2})[0].value)
    assert any("--direction" in note for note in problem.notes)


def test_space_tells_what_the_cells_are(table_of: TableOf) -> None:
    space = SearchSpace(
        "own",
        {
            "on": Categorical(choices=(True, False)),
            "width": Integer(low=1, high=9),
            "rate": Float(low=0.1, high=1.0, when={"on": True}),
        },
    )
    path = table_of(["host,on,width,rate,value", "k1,true,3,0.5,1", "k1,false,4.0,,2"])
    problem = problem_of_table(path, space=space)
    assert course(problem, {"on": True, "width": 3, "rate": 0.5})[0].value == 1.0
    assert course(problem, {"on": False, "width": 4})[0].value == 2.0
    assert any("left out: host" in note for note in problem.notes)


@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet", "table.tsv"])
def test_other_files_say_the_same(table_of: TableOf, tmp_path: Path, name: str) -> None:
    plain, path = table_of(CURVES), tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif name.endswith(".tsv"):
        path.write_text(plain.read_text().replace(",", "\t"))
    else:
        pd.read_csv(plain).to_parquet(path)
    first, second = (problem_of_table(one, metric="accuracy") for one in (plain, path))
    assert first.space.parameters == second.space.parameters
    for configuration in ({"x": 0.1, "kind": "a"}, {"x": 0.2, "kind": "b"}):
        assert course(first, configuration) == course(second, configuration)


def test_trainings_of_one_configuration_are_noise_that_is_paired(table_of: TableOf) -> None:
    lines = ["x,seed,value", *(f"{x},{seed},{x + seed}" for x in (0.25, 0.5) for seed in range(8))]
    problem = problem_of_table(table_of(lines))
    one, other = problem.measure(3), problem.measure(3)
    x = Configuration({"x": 0.5})
    seen = [one(x, number, 1).value for number in range(8)]
    assert sorted(seen) == [0.5 + seed for seed in range(8)], "each of its trainings comes once"
    assert other(x, 5, 1).value == seen[0], "the first training of it is the same in each search with this seed"
    assert len({problem.measure(seed)(x, 0, 1).value for seed in range(20)}) > 3
    assert problem.worth is not None
    assert problem.worth(x) == pytest.approx(0.5 + 3.5)


def test_rows_without_seeds_are_several_trainings_too(table_of: TableOf) -> None:
    problem = problem_of_table(table_of(["x,value", "1,0.5", "2,3", "1,0.7"]))
    assert problem.worth is not None
    assert problem.worth(Configuration({"x": 1})) == pytest.approx(0.6)


def test_configuration_that_is_not_there_is_the_nearest_one_or_refused(table_of: TableOf) -> None:
    space = SearchSpace("own", {"x": Float(low=1e-4, high=1.0, log=True), "kind": Categorical(choices=("a", "b", "c"))})
    path = table_of(["x,kind,value", "0.001,a,1", "0.1,a,2", "0.1,b,3"])
    missing = Configuration({"x": 0.0099, "kind": "a"})  # nearer to 0.001 on the log scale
    nearest, refused = (problem_of_table(path, space=space, missing=way) for way in ("nearest", "refuse"))
    assert nearest.refuse is None
    assert not nearest.is_known(missing)
    assert course(nearest, dict(missing))[0].value == 1.0
    assert course(nearest, {"x": 0.05, "kind": "b"})[0].value == 3.0
    assert refused.refuse is not None
    assert refused.refuse(missing) == "not in the table"
    assert refused.refuse(Configuration({"x": 0.1, "kind": "b"})) is None


def test_other_name_of_a_network_is_found(table_of: TableOf) -> None:
    def sorted_pair(configuration: Configuration) -> Configuration:
        low, high = sorted(configuration.values(), key=str)
        return Configuration({"a": low, "b": high})

    pair = {"a": Categorical(choices=(1, 2, 3)), "b": Categorical(choices=(1, 2, 3))}
    problem = problem_of_table(
        table_of(["a,b,value", "1,2,5", "3,3,6"]), space=SearchSpace("p", pair, canonical=sorted_pair)
    )
    assert problem.is_known(Configuration({"a": 2, "b": 1}))
    assert course(problem, {"a": 2, "b": 1})[0].value == 5.0


def test_shorter_curves_end_earlier_and_are_told(table_of: TableOf) -> None:
    problem = problem_of_table(table_of([*CURVES, "0.2,a,1,1.0,0.1"]), metric="accuracy")
    assert problem.measure(0)(Configuration({"x": 0.2, "kind": "a"}), 0, 1).is_last
    assert any("1 of 3 curves" in note for note in problem.notes)
    cut = problem_of_table(table_of(CURVES), metric="accuracy", epochs=1)
    assert cut.epochs == 1


def test_all_mistakes_are_told_with_their_lines(table_of: TableOf) -> None:
    text = problems(
        table_of(
            [
                "x,epoch,seconds,value",
                "0.5,1,1,much",
                "0.5,2,-1,0.1",
                "0.5,zero,1,0.1",
                "2.0,1,1,0.1",
                "0.25,1,1,0.1",
                "0.25,1,1,0.1",
                "0.125,2,1,0.1",
            ]
        ),
        space=SearchSpace("own", {"x": Float(low=0.0, high=1.0)}),
    )
    assert text.startswith("6 mistakes in ")
    for expected in (
        "line 2: value='much' is no number",
        "line 3: seconds=-1 is no duration",
        "line 4: epoch='zero' is no number",
        "line 5: x=2.0 is outside [0.0, 1.0]",
        "line 7: is there before",
        "line 8: epoch 1 of its training is missing",
    ):
        assert expected in text, text


def test_equal_mistakes_are_told_once(table_of: TableOf) -> None:
    text = problems(table_of(["x,value", *(f"{number},none" for number in range(40))]))
    assert "lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 30 more: value='none' is no number" in text


def test_columns_that_are_missing_are_named(table_of: TableOf) -> None:
    path = table_of(CURVES)
    assert "no column 'value' with the objective" in problems(path)
    assert "name it by --metric" in problems(path)
    space = SearchSpace("own", {"y": Float(low=0.0, high=1.0)})
    assert "no column for y of space 'own'" in problems(path, space=space, metric="accuracy")
    assert "3 epochs are asked for, and it has 2" in problems(path, metric="accuracy", epochs=3)
    assert "there are no rows" in problems(table_of(["x,value"]))
    assert "give a table" in problems(path.rename(path.with_suffix(".txt")))
    assert "no space can be made of its columns" in problems(table_of(["learning rate,value", "1,2"]))


def test_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="cannot be read"):
        problem_of_table(tmp_path / "nothing.csv")
