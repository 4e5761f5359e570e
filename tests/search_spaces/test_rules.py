"""The code that a space has beside its parameters: its mistakes are told as those of the space."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from search_spaces import Configuration, Integer, InvalidSpaceError, SearchSpace
from search_spaces.errors import SpaceRuleError

NUMBER = Integer(low=1, high=2, role="architecture")


def leave(configuration: Mapping[str, object]) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "rule, said",
    [
        pytest.param(
            lambda c: {"n": 3}, r"names a configuration that is not valid (n=3 is outside [1, 2])", id="wrong"
        ),
        pytest.param(lambda c: {"m": c["m"]}, "raises KeyError: 'm'", id="raises"),
        pytest.param(lambda c: None, "returns None, which is no configuration", id="nothing"),
        pytest.param(leave, "raises SystemExit", id="leaves"),
    ],
)
def test_canonical_form_that_fails_is_named(rule: Callable[[Configuration], Any], said: str) -> None:
    space = SearchSpace("own", {"n": NUMBER}, canonical=rule)
    for ask in (space.key, space.canonical):
        with pytest.raises(SpaceRuleError) as caught:
            ask({"n": 1})
        assert str(caught.value).startswith(f"search space 'own': its `canonical` {said}")
        assert str(caught.value).endswith("for n=1")


@pytest.mark.parametrize(
    "rule, said",
    [
        pytest.param(lambda c: c["m"], "raises KeyError: 'm'", id="raises"),
        pytest.param(lambda c: True, "returns True, which is neither a sentence nor None", id="no sentence"),
        pytest.param(leave, "raises SystemExit", id="leaves"),
    ],
)
def test_refusal_that_fails_is_named(rule: Callable[[Configuration], Any], said: str) -> None:
    with pytest.raises(SpaceRuleError) as caught:
        SearchSpace("own", {"n": NUMBER}, refuse=rule).refusal({"n": 1})
    assert str(caught.value).startswith(f"search space 'own': its `refuse` {said}")
    with pytest.raises(InvalidSpaceError, match="its `refuse`"):
        SearchSpace("own", {"n": NUMBER}, refuse=rule, defaults={"n": 1})


def test_counting_the_different_networks_tells_it_too() -> None:
    with pytest.raises(SpaceRuleError):
        SearchSpace("own", {"n": NUMBER}, canonical=lambda c: {"n": c["m"]}).different()
