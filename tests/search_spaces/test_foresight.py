"""Bounds that leave nothing for most values: draws find what there is, and a space without any is refused."""

import numpy as np
import pytest

from search_spaces import Categorical, Float, Integer, InvalidConfigurationError, InvalidSpaceError, SearchSpace


def test_sample_finds_the_few_values_that_leave_others_some() -> None:
    space = SearchSpace("narrow", {"a": Integer(low=0, high=9999), "b": Integer(low=0, high=9999, at_most="1 - a")})
    rng = np.random.default_rng(0)
    assert {(c["a"], c["b"]) for c in (space.sample(rng) for _ in range(60))} == {(0, 0), (0, 1), (1, 0)}
    assert space.mutate({"a": 1, "b": 0}, rng, names=["a"]) == {"a": 0, "b": 0}
    assert space.validate(space.filled({})) == space.filled({})


def test_sample_follows_what_is_asked_of_numbers_that_are_bounded_themselves() -> None:
    space = SearchSpace(
        "chain",
        {
            "a": Integer(low=0, high=9999),
            "k": Categorical(choices=(1, 7, 500)),
            "b": Integer(low=0, high=9999, at_least="2 * a", at_most="k - a + 3"),
            "c": Float(low=0.0, high=1.0, step=0.1, at_most="0.1 * b - 0.1 * k"),
        },
    )
    rng = np.random.default_rng(0)
    for _ in range(60):
        drawn = space.sample(rng)
        assert space.validate(drawn) == drawn


def test_bound_of_a_parameter_that_is_not_there_asks_for_nothing() -> None:
    space = SearchSpace(
        "maybe",
        {
            "op": Categorical(choices=("x", "y")),
            "a": Integer(low=0, high=999),
            "b": Integer(low=0, high=999, at_most="1 - a", when={"op": "x"}),
        },
    )
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(40)]
    assert max(c["a"] for c in drawn if c["op"] == "y") > 1  # type: ignore[type-var, operator]
    assert max(c["a"] for c in drawn if c["op"] == "x") <= 1  # type: ignore[type-var, operator]


def test_space_in_which_a_parameter_never_has_a_value_is_refused() -> None:
    with pytest.raises(InvalidSpaceError, match="b has no value, whatever the others are: at most 5 - a leaves"):
        SearchSpace("empty", {"a": Integer(low=5, high=900), "b": Integer(low=1, high=3, at_most="5 - a")})


def test_draws_that_are_used_up_say_so() -> None:
    """Even and odd numbers never meet, which ends do not tell."""
    odd = Integer(low=1, high=9, step=2, at_least="a", at_most="a")
    space = SearchSpace("parity", {"a": Integer(low=0, high=8, step=2), "b": odd})
    assert space.size() == 0
    with pytest.raises(InvalidConfigurationError, match=r"b has no value left: .*; 100 draws of a found no way out"):
        space.sample(np.random.default_rng(0))
