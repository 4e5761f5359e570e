"""Counting ends early where there is no number to be found."""

import time

from search_spaces import Categorical, Float, Integer, Parameter, SearchSpace
from search_spaces.blocks import repeat

MANY = {f"c{number}": Categorical(choices=tuple(range(10))) for number in range(320)}


def test_more_configurations_than_a_float_holds_are_counted_unless_one_is_continuous() -> None:
    assert SearchSpace("many", MANY).size() == 10**320
    assert SearchSpace("endless", {**MANY, "x": Float(low=0, high=1)}).size() is None
    layers = repeat("layers", Integer(low=1, high=64), {f"p{i}": Categorical(choices=(1, 2, 3, 4)) for i in range(4)})
    count = SearchSpace("deep", layers).size()
    assert count == sum(4 ** (4 * depth) for depth in range(1, 65))
    assert SearchSpace("deep", {**layers, "x": Float(low=0, high=1)}).size() is None


def test_infinite_branch_is_found_behind_a_condition() -> None:
    branch: dict[str, Parameter] = {"op": Categorical(choices=(1, 2)), "x": Float(low=0, high=1, when={"op": 2})}
    assert SearchSpace("branch", {**MANY, **branch}).size() is None


def test_too_many_dependencies_are_given_up_soon() -> None:
    begun = time.perf_counter()
    space = SearchSpace(
        "wide",
        {
            "a": Integer(low=0, high=998),
            "b": Integer(low=0, high=998),
            "c": Integer(low=0, high=2000, at_most="2000 - a - b"),
        },
    )
    assert space.size() is None
    layers = repeat("layers", Integer(low=1, high=256), {"a": Integer(low=1, high=9), "b": Categorical(choices=(1, 2))})
    long = SearchSpace("long", layers)
    assert long.size() == sum(18**depth for depth in range(1, 257))
    assert SearchSpace.from_json(long.to_json()).names() == long.names()
    assert len(long.fixing({"layers_1_a": 2}).names()) == len(layers) - 1
    assert time.perf_counter() - begun < 8, "about half a second on a quiet machine"
