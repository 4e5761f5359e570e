import hashlib
import json
import pickle
from collections.abc import Mapping

import numpy as np
import pytest

from search_spaces import (
    Categorical,
    Configuration,
    Float,
    Integer,
    InvalidConfigurationError,
    InvalidSpaceError,
    JsonScalar,
    SearchSpace,
)
from search_spaces.versions import changes_between


def _without_momentum(configuration: Configuration) -> Mapping[str, JsonScalar]:
    return configuration.replace(momentum=0.0) if configuration["optimizer"] == "adam" else configuration


def _too_large(configuration: Configuration) -> str | None:
    return "more than 24 channels do not fit" if configuration["channels"] == 32 else None


def small_space(name: str = "small", high: int = 32) -> SearchSpace:
    return SearchSpace(
        name,
        {
            "channels": Integer(low=8, high=high, step=8, role="architecture"),
            "optimizer": Categorical(choices=("sgd", "adam")),
            "momentum": Float(low=0.0, high=0.9, step=0.1),
        },
        defaults={"optimizer": "sgd", "channels": 16, "momentum": 0.9},
        canonical=_without_momentum,
        refuse=_too_large,
    )


def test_validate_puts_values_into_order_and_one_spelling() -> None:
    valid = small_space().validate({"momentum": 0.1 + 0.2, "optimizer": "sgd", "channels": 8})
    assert repr(valid) == "Configuration(channels=8, optimizer='sgd', momentum=0.3)"


def test_validate_lists_all_mistakes_with_nearest_names() -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        small_space().validate({"chanels": 8, "optimizer": "adma", "momentum": 2})
    assert caught.value.space == "small"
    assert caught.value.problems == (
        "no parameter 'chanels'; did you mean 'channels'? parameters: channels, optimizer, momentum",
        "channels is missing",
        "optimizer='adma' is not allowed; did you mean 'adam'? choices: 'sgd', 'adam'",
        "momentum=2 is outside [0.0, 0.9]",
    )
    assert str(caught.value).endswith("is outside [0.0, 0.9] (space 'small')")


def test_invalid_configuration_error_travels_between_processes() -> None:
    error = InvalidConfigurationError("small", ["channels is missing"])
    assert str(pickle.loads(pickle.dumps(error))) == "channels is missing (space 'small')"


def test_key_is_the_hash_of_the_canonical_json() -> None:
    text = b'{"channels":8,"momentum":0.3,"optimizer":"sgd"}'
    key = small_space().key({"optimizer": "sgd", "channels": 8, "momentum": 0.30000000000000004})
    assert key == hashlib.sha256(text).hexdigest()[:32] == "144045445f91d3044b7766935e8cc120"


def test_key_is_equal_for_one_network_and_differs_for_another() -> None:
    space = small_space()
    adam: dict[str, JsonScalar] = {"channels": 8, "optimizer": "adam", "momentum": 0.5}
    assert space.key(adam) == space.key(adam | {"momentum": 0.1})
    assert space.key(adam) != space.key(adam | {"optimizer": "sgd"})


def test_key_tells_types_apart() -> None:
    for choices in ((1, "1"), (1.5, "1.5"), (True, "true"), (None, "null")):
        space = SearchSpace("types", {"p": Categorical(choices=choices)})
        assert space.key({"p": choices[0]}) != space.key({"p": choices[1]})


def test_refusal_names_the_reason_of_an_infeasible_configuration() -> None:
    space = small_space()
    assert space.refusal({"channels": 8, "optimizer": "sgd", "momentum": 0.0}) is None
    refused = space.refusal({"channels": 32, "optimizer": "sgd", "momentum": 0.0})
    assert refused == "more than 24 channels do not fit"


def test_size_counts_combinations_unless_one_is_continuous() -> None:
    assert small_space().size() == 4 * 2 * 10
    assert SearchSpace("x", {"a": Float(low=0, high=1), "b": Integer(low=1, high=2)}).size() is None


def test_names_are_those_of_a_role() -> None:
    space = small_space()
    assert space.names("architecture") == ("channels",)
    assert space.names("training") == ("optimizer", "momentum")
    assert space.names("data") == ()
    assert space.names() == ("channels", "optimizer", "momentum")


def test_mutate_chooses_among_all_parameters() -> None:
    space, rng = small_space(), np.random.default_rng(0)
    assert space.defaults is not None
    changed = set()
    for _ in range(60):
        child = space.mutate(space.defaults, rng)
        changed |= {name for name in child if child[name] != space.defaults[name]}
    assert changed == set(space.parameters)


def test_mutate_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'channels'"):
        small_space().mutate(
            {"channels": 8, "optimizer": "sgd", "momentum": 0.0}, np.random.default_rng(0), ["channel"]
        )


def test_mutate_without_any_second_value_raises() -> None:
    space = SearchSpace("fixed", {"only": Categorical(choices=("one",)), "free": Integer(low=1, high=2)})
    with pytest.raises(ValueError, match=r"no parameter of \['only'\] has a second value"):
        space.mutate({"only": "one", "free": 1}, np.random.default_rng(0), names=["only"])
    assert space.mutate({"only": "one", "free": 1}, np.random.default_rng(0)) == {"only": "one", "free": 2}


def test_neighbours_of_named_parameters_only() -> None:
    space = small_space()
    centre: dict[str, JsonScalar] = {"channels": 8, "optimizer": "sgd", "momentum": 0.0}
    assert [dict(n) for n in space.neighbours(centre, names=["momentum", "channels"])] == [
        centre | {"channels": 16},
        centre | {"momentum": 0.1},
    ]


def test_constructor_lists_bad_names_and_wrong_defaults() -> None:
    with pytest.raises(InvalidSpaceError, match="'a b' is no identifier; there are no parameters"):
        SearchSpace("a b", {})
    with pytest.raises(InvalidSpaceError, match="its defaults are wrong: channels is missing"):
        SearchSpace("x", {"channels": Integer(low=1, high=2)}, defaults={})


def test_constructor_refuses_infeasible_defaults() -> None:
    with pytest.raises(InvalidSpaceError, match="its defaults are wrong: never"):
        SearchSpace("x", {"n": Integer(low=1, high=2)}, defaults={"n": 1}, refuse=lambda configuration: "never")


def test_json_round_trip_describes_the_same_space() -> None:
    description = json.loads(json.dumps(small_space().to_json()))
    read = SearchSpace.from_json(description)
    assert read.to_json() == description | {"has_canonical": False, "has_refuse": False}
    assert changes_between(read, small_space()) == ()


def test_from_json_names_what_lacks() -> None:
    description = small_space().to_json()
    del description["task"]
    with pytest.raises(InvalidSpaceError, match="lacks 'task'"):
        SearchSpace.from_json(description)


def test_space_pickles_with_its_hooks() -> None:
    space = pickle.loads(pickle.dumps(small_space()))
    configuration: dict[str, JsonScalar] = {"channels": 32, "optimizer": "adam", "momentum": 0.5}
    assert space.key(configuration) == small_space().key(configuration)
    assert space.refusal(configuration) == small_space().refusal(configuration)


def test_configuration_is_immutable_hashable_and_pickles() -> None:
    configuration = Configuration({"a": 1, "b": None})
    assert configuration == {"b": None, "a": 1} == Configuration({"b": None, "a": 1})
    assert hash(configuration) == hash(Configuration({"b": None, "a": 1}))
    assert pickle.loads(pickle.dumps(configuration)) == configuration
    assert repr(configuration) == "Configuration(a=1, b=None)"
    configuration.as_dict()["a"] = 2
    assert configuration["a"] == 1
    with pytest.raises(TypeError):
        configuration["a"] = 2  # type: ignore[index]  # what must not be possible


def test_space_with_a_constant_keeps_defaults_and_gives_its_rules_the_constant() -> None:
    space = small_space().fixing({"optimizer": "adam"})
    assert (space.names(), space.name) == (("channels", "momentum"), "small")
    assert dict(space.defaults or {}) == {"channels": 16, "momentum": 0.9}
    assert space.canonical({"channels": 8, "momentum": 0.5}) == {"channels": 8, "momentum": 0.0}, "adam has none"
    assert space.refusal({"channels": 32, "momentum": 0.5}) == "more than 24 channels do not fit"
    assert (space.to_json()["has_canonical"], space.to_json()["has_refuse"]) == (True, True)
    strange = small_space().fixing({"optimizer": "muon"})
    assert strange.canonical({"channels": 8, "momentum": 0.5}) == {"channels": 8, "momentum": 0.5}


def test_space_with_no_constant_is_itself_and_with_constants_only_is_none() -> None:
    space = small_space()
    assert space.fixing({}) is space
    with pytest.raises(InvalidSpaceError, match="there are no parameters"):
        space.fixing({name: 1 for name in space.names()})
    with pytest.raises(ValueError, match="no parameter 'chanels'; did you mean 'channels'"):
        space.fixing({"chanels": 8})


@pytest.mark.parametrize(
    "numbers, problem",
    [
        ([8.0, -1.0, 0.0], "optimizer: -1.0 is the place of none of 2 choices"),
        ([8.0, 0.5, 0.0], "optimizer: 0.5 is the place of none of 2 choices"),
        ([8.0, float("inf"), 0.0], "optimizer: inf is the place of none of 2 choices"),
        ([8.5, 1.0, 0.0], "channels=8.5 is no integer"),
        ([8.0, 1.0, 0.12], "momentum=0.12 is not on the grid"),
        ([float("nan"), 1.0, 0.0], "channels is missing"),
    ],
)
def test_decode_refuses_numbers_that_encode_never_writes(numbers: list[float], problem: str) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        small_space().decode(numbers)
    assert problem in str(caught.value)


def test_one_text_is_no_list_of_names() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="names='channels' is one text"):
        small_space().mutate({"channels": 8, "optimizer": "sgd", "momentum": 0.0}, rng, names="channels")


def test_names_that_nothing_could_be_called_by_are_refused() -> None:
    with pytest.raises(InvalidSpaceError) as caught:
        SearchSpace(
            "x",
            {1: 2, "lambda": 3, "self": 4, "my-name": 5, "n": 6},  # type: ignore[dict-item]  # what people give
            canonical_over=["zz"],
        )
    for part in ("1 is no identifier", "'my-name' is no identifier", "'zz'"):
        assert part in str(caught.value)
    assert ";;" not in str(caught.value)


def test_words_of_python_are_names_like_others() -> None:
    space = SearchSpace("x", {"lambda": Float(low=0.0, high=1.0), "self": Integer(low=1, high=9)})
    rng = np.random.default_rng(0)
    parent = space.sample(rng)
    assert set(space.mutate(parent, rng)) == {"lambda", "self"}
    assert space.validate(parent.replace(**{"lambda": 0.5, "self": 3})) == {"lambda": 0.5, "self": 3}


def test_configuration_replaces_a_value_of_any_name() -> None:
    assert Configuration({"self": 1}).replace(self=2) == {"self": 2}
