import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import Categorical, Float, Integer, InvalidParameterError, Parameter
from search_spaces.parameters import parameter_from_json

BOUND = 1e6
seeds = st.integers(0, 2**32 - 1)


@st.composite
def floats(draw: st.DrawFn) -> Float:
    log = draw(st.booleans())
    low = draw(st.floats(1e-9 if log else -BOUND, BOUND, allow_nan=False))
    high = draw(st.floats(low, 2 * BOUND, exclude_min=True))
    return Float(low=low, high=high, log=log)


@st.composite
def stepped_floats(draw: st.DrawFn) -> Float:
    step = draw(st.sampled_from((0.05, 0.1, 0.25, 0.3, 1.0, 1e-3)))
    low = draw(st.sampled_from((0.0, 0.1, -0.3, 2.0)))
    return Float(low=low, high=low + draw(st.integers(1, 200)) * step, step=step)


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    log = draw(st.booleans())
    step = 1 if log else draw(st.integers(1, 9))
    low = draw(st.integers(1 if log else -1000, 1000))
    return Integer(low=low, high=low + step * draw(st.integers(1, 500)), log=log, step=step)


@st.composite
def categoricals(draw: st.DrawFn) -> Categorical:
    scalars = (
        st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    )
    choices = draw(st.lists(scalars, min_size=1, max_size=6, unique=True))
    return Categorical(choices=tuple(choices), ordered=draw(st.booleans()))


parameters: st.SearchStrategy[Parameter] = st.one_of(floats(), stepped_floats(), integers(), categoricals())


@given(parameters, seeds)
def test_sample_is_allowed_and_in_its_one_spelling(parameter: Parameter, seed: int) -> None:
    value = parameter.sample(np.random.default_rng(seed))
    assert parameter.problem(value) is None
    assert repr(parameter.normalise(value)) == repr(value)
    assert repr(parameter.sample(np.random.default_rng(seed))) == repr(value)


@given(parameters, seeds)
def test_sample_survives_json(parameter: Parameter, seed: int) -> None:
    value = parameter.sample(np.random.default_rng(seed))
    assert repr(json.loads(json.dumps(value, allow_nan=False))) == repr(value)


@given(parameters, seeds)
def test_mutate_gives_another_allowed_value_where_there_is_one(parameter: Parameter, seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = parameter.sample(rng)
    mutated = parameter.mutate(value, rng)
    assert parameter.problem(mutated) is None
    assert (mutated == value) == (parameter.size() == 1)


@given(parameters, seeds)
def test_neighbours_are_other_allowed_values(parameter: Parameter, seed: int) -> None:
    value = parameter.sample(np.random.default_rng(seed))
    neighbours = list(parameter.neighbours(value))
    assert value not in neighbours
    assert all(parameter.problem(neighbour) is None for neighbour in neighbours)
    assert len({repr(neighbour) for neighbour in neighbours}) == len(neighbours)


@given(parameters, seeds)
def test_optuna_distribution_contains_samples(parameter: Parameter, seed: int) -> None:
    from optuna.trial import create_trial

    value: Any = parameter.sample(np.random.default_rng(seed))
    create_trial(params={"p": value}, distributions={"p": parameter.distribution()}, value=0.0)  # refuses strangers


@given(parameters)
def test_json_round_trip_gives_the_same_parameter(parameter: Parameter) -> None:
    assert parameter_from_json(json.loads(json.dumps(parameter.to_json(), allow_nan=False))) == parameter


@given(st.one_of(floats(), stepped_floats(), integers()), seeds)
def test_position_and_at_are_inverse(parameter: Float | Integer, seed: int) -> None:
    value = parameter.sample(np.random.default_rng(seed))
    assert 0.0 <= parameter.position(value) <= 1.0
    assert parameter.at(parameter.position(value)) == pytest.approx(value, rel=1e-9, abs=1e-9 * BOUND)
    assert (parameter.at(0.0), parameter.at(1.0)) == (parameter.low, parameter.high)


@given(integers())
@settings(max_examples=20)
def test_integer_every_value_is_its_own_position(parameter: Integer) -> None:
    for value in range(parameter.low, parameter.high + 1, parameter.step):
        assert parameter.at(parameter.position(value)) == value


def test_float_step_values_are_spelt_short() -> None:
    parameter = Float(low=0.0, high=0.3, step=0.1)
    rng = np.random.default_rng(0)
    assert {parameter.sample(rng) for _ in range(200)} == {0.0, 0.1, 0.2, 0.3}
    assert parameter.normalise(0.1 + 0.2) == 0.3
    assert parameter.size() == 4


def test_float_high_is_put_on_the_grid() -> None:
    assert repr(Float(low=0, high=0.05 + 0.1, step=0.05).high) == "0.15"


def test_float_log_sample_is_uniform_in_the_logarithm() -> None:
    parameter = Float(low=1e-4, high=1e0, log=True)
    rng = np.random.default_rng(0)
    decades = Counter(math.floor(math.log10(parameter.sample(rng))) for _ in range(4000))
    assert set(decades) == {-4, -3, -2, -1}
    assert all(abs(count - 1000) < 120 for count in decades.values())  # more than four standard deviations


def test_integer_sample_reaches_every_value_equally() -> None:
    parameter = Integer(low=8, high=32, step=8)
    rng = np.random.default_rng(0)
    counts = Counter(parameter.sample(rng) for _ in range(4000))
    assert set(counts) == {8, 16, 24, 32}
    assert all(abs(count - 1000) < 120 for count in counts.values())


def test_integer_log_sample_reaches_both_ends() -> None:
    parameter = Integer(low=1, high=4, log=True)
    rng = np.random.default_rng(0)
    counts = Counter(parameter.sample(rng) for _ in range(4000))
    assert counts[1] > counts[2] > counts[3] > counts[4] > 0  # logarithms of 3, 5/3, 7/5 and 9/7


def test_mutate_reaches_every_value_of_a_small_parameter() -> None:
    rng = np.random.default_rng(0)
    for parameter in (
        Integer(low=1, high=5),
        Float(low=0.0, high=1.0, step=0.25),
        Categorical(choices=(1, 2, 3, 4, 5)),
    ):
        middle = parameter.normalise(0.5 if isinstance(parameter, Float) else 3)
        assert len({parameter.mutate(middle, rng) for _ in range(400)}) == 4


def test_mutate_number_stays_near_more_often_than_far() -> None:
    parameter = Float(low=1e-4, high=1.0, log=True)
    rng = np.random.default_rng(0)
    distances = [abs(parameter.position(parameter.mutate(0.01, rng)) - 0.5) for _ in range(500)]
    assert sum(distance < 0.2 for distance in distances) > 300


def test_neighbours_of_an_ordered_choice_are_adjacent() -> None:
    sizes = Categorical(choices=(32, 64, 128), ordered=True)
    assert list(sizes.neighbours(32)) == [64]
    assert list(sizes.neighbours(64)) == [32, 128]
    assert list(Categorical(choices=(32, 64, 128)).neighbours(32)) == [64, 128]


def test_neighbours_of_an_integer_are_a_step_away() -> None:
    assert list(Integer(low=8, high=32, step=8).neighbours(8)) == [16]
    assert list(Integer(low=8, high=32, step=8).neighbours(16)) == [8, 24]
    assert list(Integer(low=1, high=4, log=True).neighbours(2)) == [1, 3]


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        (Float(low=1e-5, high=0.1, log=True), 0.5, "is outside [1e-05, 0.1] (log scale)"),
        (Float(low=0, high=1), math.nan, "is no finite number"),
        (Float(low=0, high=1), math.inf, "is no finite number"),
        (Float(low=0, high=1), 10**400, "is no finite number"),
        (Float(low=0, high=1), True, "is no finite number"),
        (Float(low=0, high=1), "0.5", "is no finite number"),
        (Float(low=0, high=1), None, "is no finite number"),
        (Float(low=0, high=1, step=0.25), 0.3, "is not on the grid 0.0, 0.25, ..., 1.0"),
        (Integer(low=1, high=9), 10, "is outside [1, 9]"),
        (Integer(low=1, high=9), True, "is no integer"),
        (Integer(low=1, high=9), 3.0, "is no integer"),
        (Integer(low=1, high=9), "3", "is no integer"),
        (Integer(low=8, high=32, step=8), 12, "is not one of 8, 16, ..., 32"),
        (Categorical(choices=(1, 2)), True, "is not allowed; choices: 1, 2"),
        (Categorical(choices=(1, 2)), 1.0, "is not allowed"),
        (Categorical(choices=("sgd", "adamw")), "adamv", "did you mean 'adamw'? choices: 'sgd', 'adamw'"),
        (Categorical(choices=(1.5,)), math.nan, "is not allowed"),
    ],
)
def test_problem_says_why_a_value_is_not_allowed(parameter: Parameter, value: object, reason: str) -> None:
    assert reason in (parameter.problem(value) or "")


def test_float_takes_an_integer_as_the_same_number() -> None:
    parameter = Float(low=0, high=1)
    assert parameter.problem(1) is None
    assert repr(parameter.normalise(1)) == "1.0"
    assert repr(parameter.normalise(-0.0)) == "0.0"


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: Float(low=1.0, high=1.0), "low=1.0 is not below high=1.0"),
        (lambda: Float(low=0.0, high=1.0, log=True), "low=0.0 has no logarithm"),
        (lambda: Float(low=math.nan, high=1.0), "low=nan is no finite number"),
        (lambda: Float(low=0.0, high=math.inf), "high=inf is no finite number"),
        (lambda: Float(low=False, high=1.0), "low=False is no finite number"),
        (lambda: Float(low="0", high=1.0), "low='0' is no finite number"),  # type: ignore[arg-type]  # as from YAML
        (lambda: Float(low=-1e300, high=1e300), "too wide"),
        (lambda: Float(low=0.0, high=1.0, step=2.0), "step=2.0 is more than the whole range"),
        (lambda: Float(low=0.0, high=1.0, step=0.0), "step=0.0 is not positive"),
        (lambda: Float(low=0.0, high=1.0, step=1e-9), "leave it out"),
        (lambda: Float(low=0.1, high=1.0, step=0.1, log=True), "exclude each other"),
        (lambda: Float(low=1 / 3, high=1 / 3 + 123 / 7, step=1 / 7), "too many digits"),
        (lambda: Integer(low=1, high=True), "high=True is no integer"),
        (lambda: Integer(low=1, high=2.5), "high=2.5 is no integer"),  # type: ignore[arg-type]  # as from YAML
        (lambda: Integer(low=1, high=9, step=-1), "step=-1 is not positive"),
        (lambda: Integer(low=0, high=9, log=True), "low=0 has no logarithm"),
        (lambda: Categorical(choices=()), "there are no choices"),
        (lambda: Categorical(choices=(1, True)), "choice True is there twice"),
        (lambda: Categorical(choices=(0, False, 0.0)), "choice False is there twice"),
        (lambda: Categorical(choices=(math.nan,)), "choice nan is neither a finite JSON scalar"),
        (lambda: Categorical(choices=({"a": 1},)), "is neither a finite JSON scalar nor a list"),
        (lambda: Categorical(choices=(((1, 2),),)), "is neither a finite JSON scalar nor a list"),
        (lambda: Categorical(choices=("1x2", (1, 2))), "choice '1x2' is there twice"),
        (lambda: Integer(low=1, high=2, when={"a": ()}), "a has no value with which the condition holds"),
        (lambda: Integer(low=1, high=2, when={"a": math.nan}), "when: a: nan is no finite JSON scalar"),
        (lambda: Integer(low=1, high=2, when="a"), "when='a' is no mapping"),  # type: ignore[arg-type]  # a likely slip
        (lambda: Integer(low=1, high=9, at_most="a * b"), "'a' is multiplied by another parameter"),
        (lambda: Integer(low=1, high=9, at_least="max(a)"), "'max(a)' is not understood"),
        (lambda: Categorical(choices="abc"), "is one text"),  # type: ignore[arg-type]  # a likely slip
        (lambda: Integer(low=1, high=2, role="trainig"), "did you mean 'training'?"),  # type: ignore[arg-type]  # as from YAML
    ],
)
def test_constructor_refuses_what_cannot_be_searched(build: Any, reason: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        build()
    assert reason in str(caught.value)


def test_constructor_lists_all_mistakes_at_once() -> None:
    with pytest.raises(InvalidParameterError, match=r"low=0\.0 is not below.*no logarithm.*role='x' is unknown"):
        Float(low=0.0, high=-1.0, log=True, role="x")  # type: ignore[arg-type]  # as from YAML


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ({"type": "flaot"}, "did you mean 'float'?"),
        ({"type": "float", "low": 0.0}, "high"),
        ({"type": "integer", "low": 0, "high": 1, "base": 2}, "base"),
    ],
)
def test_parameter_from_json_names_what_is_wrong(description: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidParameterError, match=reason.replace("?", r"\?")):
        parameter_from_json(description)


def test_range_that_ends_beside_its_grid_ends_on_it_and_says_so() -> None:
    rate = Float(low=0.0, high=1.0, step=0.3)
    assert list(rate.values()) == [0.0, 0.3, 0.6, 0.9]
    assert rate.note == "high=1.0 is not on the grid; the values are 0, 0.3, 0.6, 0.9"
    odd = Integer(low=1, high=10, step=2)
    assert list(odd.values()) == [1, 3, 5, 7, 9]
    assert odd.note == "high=10 is not on the grid; the values are 1, 3, 5, 7, 9"
    fine = Integer(low=80, high=320, step=16)
    assert (fine.note, fine.high, fine.size()) == ("", 320, 16)
    assert Float(low=0.0, high=1.0, step=0.05).note == ""


def test_lists_are_choices_under_their_labels() -> None:
    kernel = Categorical(choices=[[3, 3], [3, 5], "auto"], ordered=True)  # type: ignore[arg-type]  # as from YAML
    assert kernel.choices == ("3x3", "3x5", "auto")
    assert [kernel.plain(choice) for choice in kernel.choices] == [(3, 3), (3, 5), "auto"]
    assert kernel.problem([3, 5]) is None
    assert kernel.normalise((3, 5)) == "3x5"
    read = parameter_from_json(json.loads(json.dumps(kernel.to_json())))
    assert read == kernel
    assert isinstance(read, Categorical)
    assert read.plain("3x3") == (3, 3)


def test_description_has_conditions_and_bounds_only_where_there_are_some() -> None:
    assert Integer(low=1, high=9).to_json() == {
        "type": "integer", "low": 1, "high": 9, "log": False, "step": 1, "role": "training",
    }  # fmt: skip
    bounded = Integer(low=1, high=9, at_most="9 - a", when={"op": "conv"})
    assert bounded.to_json()["when"] == {"op": ["conv"]}
    assert parameter_from_json(json.loads(json.dumps(bounded.to_json()))) == bounded


@pytest.mark.parametrize(
    "choices, said",
    [({"a", "b"}, "is a set"), ({"a": 1}, "is a mapping"), (None, "is no list"), ("ab", "is one text")],
)
def test_categorical_choices_without_an_order_are_refused(choices: Any, said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        Categorical(choices=choices)


def test_categorical_of_many_choices_is_made_at_once() -> None:
    many = Categorical(choices=tuple(range(20_000)))
    assert (many.normalise(19_999), many.encoded(7), many.problem(20_000) is None) == (19_999, 7.0, False)
