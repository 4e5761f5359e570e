"""Parameters that depend on others: every way through the space ends in a valid configuration."""

import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import (
    Categorical,
    Configuration,
    Float,
    Integer,
    InvalidConfigurationError,
    InvalidSpaceError,
    JsonScalar,
    Parameter,
    SearchSpace,
)
from search_spaces.counting import every_configuration

SPACE = SearchSpace(
    "dependent",
    {
        "a": Integer(low=0, high=10),
        "b": Integer(low=0, high=10, at_most="10 - a"),
        "c": Integer(low=0, high=10, at_most="10 - a - b"),
        "op": Categorical(choices=("conv", "pool", "skip"), role="architecture"),
        "kernel": Integer(low=1, high=7, step=2, when={"op": ("conv", "pool")}, role="architecture"),
        "groups": Categorical(choices=(1, 2, 4), when={"op": "conv", "kernel": (3, 5)}, role="architecture"),
        "rate": Float(low=0.0, high=1.0, step=0.1, at_least="0.1 * a"),
        "seed": 7,
    },
    defaults={"a": 2, "b": 3, "c": 5, "op": "conv", "kernel": 3, "groups": 2, "rate": 0.5, "seed": 7},
)
seeds = st.integers(0, 2**32 - 1)


def assert_is_right(configuration: Configuration) -> None:
    """The rules of the space, written once more by hand."""
    a, b, c, rate = (configuration[name] for name in ("a", "b", "c", "rate"))
    assert isinstance(a, int)
    assert isinstance(b, int)
    assert isinstance(c, int)
    assert isinstance(rate, float)
    assert a + b + c <= 10
    assert rate >= 0.1 * a - 1e-9
    assert ("kernel" in configuration) == (configuration["op"] in ("conv", "pool"))
    assert ("groups" in configuration) == (configuration["op"] == "conv" and configuration["kernel"] in (3, 5))
    assert configuration["seed"] == 7


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_every_way_through_the_space_is_valid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = SPACE.sample(rng), SPACE.sample(rng)
    ways = [first, second, SPACE.crossover(first, second, rng), SPACE.complete({"op": "skip", "kernel": 3}, rng)]
    ways += [SPACE.mutate(first, rng) for _ in range(5)]
    ways += list(SPACE.neighbours(second))
    for configuration in ways:
        assert SPACE.validate(configuration) == configuration
        assert_is_right(configuration)
        assert SPACE.decode(SPACE.encode(configuration)) == configuration


def test_crossover_of_long_searches_never_breaks_a_bound_or_a_condition() -> None:
    rng = np.random.default_rng(0)
    population = [SPACE.sample(rng) for _ in range(10)]
    for _ in range(200):
        first, second = (population[int(i)] for i in rng.integers(len(population), size=2))
        child = SPACE.mutate(SPACE.crossover(first, second, rng), rng)
        assert_is_right(child)
        population = [*population[1:], child]


def test_mutation_changes_one_parameter_and_what_depends_on_it() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        parent = SPACE.sample(rng)
        child = SPACE.mutate(parent, rng)
        changed = {name for name in SPACE.parameters if parent.get(name, ...) != child.get(name, ...)}
        assert changed
        assert any(changed - {name} <= SPACE.dependents(name) for name in changed)


def test_dependents_are_those_of_dependents_too() -> None:
    assert SPACE.dependents("op") == {"kernel", "groups"}
    assert SPACE.dependents("a") == {"b", "c", "rate"}
    assert SPACE.dependents("groups") == frozenset()


def test_size_is_that_of_all_configurations() -> None:
    part = SearchSpace("part", {name: SPACE.parameters[name] for name in ("a", "b", "op", "kernel", "groups", "rate")})
    everything = list(every_configuration(part.parameters))
    assert part.size() == len(everything) == len(set(everything))
    shapes = 1 + 4 + 2 + 2 * 3
    assert part.size() == sum((11 - a) * (11 - a) for a in range(11)) * shapes


def test_sampling_a_small_space_finds_every_configuration() -> None:
    space = SearchSpace("small", {name: SPACE.parameters[name] for name in ("op", "kernel", "groups")})
    rng = np.random.default_rng(0)
    counts = Counter(space.sample(rng) for _ in range(2000))
    assert len(counts) == space.size() == 13


def test_infinite_branch_makes_an_infinite_space_only_where_it_is_reached() -> None:
    endless: dict[str, Parameter] = {"op": Categorical(choices=("a", "b")), "x": Float(low=0, high=1, when={"op": "a"})}
    assert SearchSpace("endless", endless).size() is None
    fixed: dict[str, Parameter] = {
        "op": Categorical(choices=("b", "a")),
        "go": Categorical(choices=(1,)),
        "y": Integer(low=1, high=3),
    }
    assert SearchSpace("finite", {**fixed, "z": Integer(low=1, high=2, when={"op": "a"})}).size() == 3 + 6


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "skip"}, "kernel=3 is given, but it is there only when op is conv or pool (op is skip); leave it out"),
        ({"b": 9}, "b=9 is outside its bounds: at most 10 - a = 8"),
        ({"rate": 0.1}, "rate=0.1 is outside its bounds: at least 0.1 * a = 0.2"),
        ({"groups": None}, "groups is missing"),
    ],
)
def test_validate_says_what_depends_on_what(change: dict[str, JsonScalar], problem: str) -> None:
    assert SPACE.defaults is not None
    given = {name: value for name, value in {**SPACE.defaults, **change}.items() if value is not None}
    with pytest.raises(InvalidConfigurationError) as caught:
        SPACE.validate(given)
    assert problem in caught.value.problems


def test_one_key_whatever_an_inactive_parameter_was() -> None:
    rng = np.random.default_rng(0)
    part: dict[str, JsonScalar] = {"a": 0, "b": 0, "c": 0, "op": "skip", "rate": 0.5}
    keys = {SPACE.key(SPACE.complete({**part, "kernel": kernel}, rng)) for kernel in (1, 3, 5)}
    assert len(keys) == 1


def test_complete_moves_into_bounds_and_refuses_what_is_never_allowed() -> None:
    rng = np.random.default_rng(0)
    moved = SPACE.complete({"a": 8, "b": 5, "c": 5, "rate": 0.1}, rng)
    assert (moved["b"], moved["c"], moved["rate"]) == (2, 0, 0.8)
    with pytest.raises(InvalidConfigurationError) as caught:
        SPACE.complete({"a": 11, "opp": "conv"}, rng)
    assert len(caught.value.problems) == 2


def test_value_that_leaves_another_none_is_refused_and_never_drawn() -> None:
    space = SearchSpace("tight", {"a": Integer(low=0, high=9), "b": Integer(low=0, high=4, at_least="a")})
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(200)]
    assert all(c["b"] >= c["a"] for c in drawn)  # type: ignore[operator]  # both are integers
    assert space.size() == 5 + 4 + 3 + 2 + 1
    with pytest.raises(InvalidConfigurationError, match=r"b has no value left: at least a = 9"):
        space.complete({"a": 9}, rng)
    with pytest.raises(InvalidConfigurationError, match=r"b=4 is outside its bounds"):
        space.validate({"a": 9, "b": 4})


def test_constructor_lists_every_dependency_that_cannot_be() -> None:
    with pytest.raises(InvalidSpaceError) as caught:
        SearchSpace(
            "wrong",
            {
                "early": Integer(low=1, high=2, when={"late": 1}),
                "late": Integer(low=1, high=2, when={"eraly": 1}),
                "value": Integer(low=1, high=2, when={"late": (1, 3)}),
                "word": Categorical(choices=("x", "y")),
                "bound": Integer(low=1, high=2, at_most="word + 1"),
            },
        )
    assert str(caught.value) == (
        "search space 'wrong': early depends on late, which must come before it; "
        "late depends on 'eraly', which is no parameter; did you mean 'early'?; "
        "value: when: late=3 is outside [1, 2]; bound: the bound 'word' is no number"
    )


def test_description_and_pickle_keep_dependencies() -> None:
    read = SearchSpace.from_json(json.loads(json.dumps(SPACE.to_json())))
    assert dict(read.parameters) == dict(SPACE.parameters)
    assert read.is_conditional
    parameter = SPACE.parameters["groups"]
    assert pickle.loads(pickle.dumps(parameter)) == parameter
    assert hash(parameter) == hash(pickle.loads(pickle.dumps(parameter)))


def test_encoding_has_a_place_for_every_parameter() -> None:
    numbers = SPACE.encode(SPACE.complete({"op": "skip"}, np.random.default_rng(0)))
    assert len(numbers) == len(SPACE.parameters)
    assert [math.isnan(number) for number in numbers] == [name in ("kernel", "groups") for name in SPACE.parameters]
    with pytest.raises(ValueError, match="zip"):
        SPACE.decode(numbers[:-1])


def test_plain_values_have_lists_for_labels() -> None:
    space = SearchSpace("lists", {"kernel": Categorical(choices=((3, 3), (5, 5))), "width": Integer(low=1, high=4)})
    configuration = space.validate({"kernel": (5, 5), "width": 2})
    assert configuration == {"kernel": "5x5", "width": 2}
    assert space.plain(configuration) == {"kernel": (5, 5), "width": 2}


def test_what_a_given_value_needs_is_drawn_so_that_it_is_there() -> None:
    for seed in range(20):
        completed = SPACE.complete({"groups": 4}, np.random.default_rng(seed))
        assert (completed["op"], completed["groups"]) == ("conv", 4)
        assert completed["kernel"] in (3, 5)


@pytest.mark.parametrize(
    ("constants", "left"),
    [
        ({"op": "conv", "kernel": 3}, {"a", "b", "c", "groups", "rate", "seed"}),
        ({"op": "conv", "kernel": 7}, {"a", "b", "c", "rate", "seed"}),
        ({"op": "pool"}, {"a", "b", "c", "kernel", "rate", "seed"}),
        ({"op": "strange"}, {"a", "b", "c", "rate", "seed"}),
        ({"kernel": 5}, {"a", "b", "c", "op", "groups", "rate", "seed"}),
    ],
)
def test_constants_leave_what_is_there_with_them(constants: dict[str, JsonScalar], left: set[str]) -> None:
    space = SPACE.fixing(constants)
    assert set(space.parameters) == left
    rng = np.random.default_rng(0)
    assert space.defaults is not None
    for configuration in (space.defaults, *(space.sample(rng) for _ in range(30))):
        whole = {**configuration, **constants}
        if "strange" not in constants.values() and not (whole["op"] == "skip" and "kernel" in whole):
            SPACE.validate(whole)


def test_bounds_have_the_numbers_of_constants() -> None:
    space = SPACE.fixing({"a": 4})
    assert max(space.sample(np.random.default_rng(seed))["b"] for seed in range(60)) == 6  # type: ignore[type-var]
    assert space.parameters["rate"].to_json()["at_least"] == "0.4"
    assert space.parameters["c"].to_json()["at_most"] == "6.0 + -1.0 * b"


def test_filled_keeps_what_is_allowed_and_has_the_usual_rest() -> None:
    assert SPACE.filled({"op": "skip", "a": 99, "what": 1}) == {
        "a": 2, "b": 3, "c": 5, "op": "skip", "rate": 0.5, "seed": 7,
    }  # fmt: skip
    assert SPACE.filled({"op": "pool"})["kernel"] == 3


def test_values_of_conditions_are_spelled_as_their_parents_spell_them() -> None:
    space = SearchSpace(
        "spelled",
        {
            "on": Float(low=0.0, high=1.0, step=0.5),
            "kernel": Categorical(choices=([3, 3], [5, 5], [7, 7])),
            "x": Integer(low=1, high=2, when={"on": 1}),
            "one": Integer(low=1, high=2, when={"kernel": [3, 3]}),
            "two": Integer(low=1, high=2, when={"kernel": [[3, 3], [5, 5]]}),
        },
    )
    read = SearchSpace.from_json(json.loads(json.dumps(space.to_json())))
    for each in (space, read):
        assert [str(each.parameters[name].condition) for name in ("x", "one", "two")] == [
            "on is 1.0", "kernel is 3x3", "kernel is 3x3 or 5x5",
        ]  # fmt: skip
        assert set(each.filled({"on": 1, "kernel": [3, 3]})) == set(each.parameters)  # type: ignore[dict-item]


def test_condition_that_contradicts_its_parents_is_refused() -> None:
    with pytest.raises(InvalidSpaceError, match="z: when op is skip and k is 1 can never hold") as caught:
        SearchSpace(
            "never",
            {
                "op": Categorical(choices=("conv", "skip")),
                "k": Categorical(choices=(1, 3), when={"op": "conv"}),
                "z": Integer(low=1, high=2, when={"op": "skip", "k": 1}),
            },
        )
    assert "other values of op" in str(caught.value)


def test_constant_that_is_there_only_sometimes_leaves_its_own_condition() -> None:
    seen: list[Configuration] = []
    space = SearchSpace(
        "chain",
        {
            "op": Categorical(choices=("conv", "skip")),
            "kernel": Categorical(choices=([3, 3], [5, 5]), when={"op": "conv"}),
            "groups": Categorical(choices=([1, 1], [2, 2]), when={"kernel": [[3, 3]]}),
        },
        refuse=lambda configuration: seen.append(configuration),
    )
    rest = space.fixing({"kernel": [3, 3]})  # type: ignore[dict-item]
    assert str(rest.parameters["groups"].condition) == "op is conv"
    assert rest.plain({"groups": "2x2"}) == {"groups": (2, 2)}
    rest.refusal({"op": "skip"})
    rest.refusal({"op": "conv", "groups": "1x1"})
    assert seen == [{"op": "skip"}, {"op": "conv", "kernel": "3x3", "groups": "1x1"}]


def test_bound_of_a_constant_holds_where_nothing_else_depends() -> None:
    space = SearchSpace("two", {"a": Integer(low=0, high=9), "b": Integer(low=0, high=9, at_most="a")})
    rest, rng = space.fixing({"a": 3}), np.random.default_rng(0)
    assert max(rest.sample(rng)["b"] for _ in range(60)) == 3  # type: ignore[type-var]
    assert rest.size() == 4
