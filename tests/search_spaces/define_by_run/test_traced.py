"""Functions that ask while they run become the spaces that somebody would have written."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from search_spaces import Categorical, Float, Integer, InvalidParameterError, InvalidSpaceError, Parameter
from search_spaces.blocks import repeat
from search_spaces.define_by_run import FixedTrial, traced


def optuna_like(trial: Any) -> tuple[Any, ...]:
    layers = trial.suggest_int("layers", 1, 3)
    units = tuple(trial.suggest_int(f"layers_{n}_units", 8, 64, step=8) for n in range(1, layers + 1))
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd" and trial.suggest_categorical("fast", [0, 1]):
        trial.suggest_float("momentum", 0.5, 0.99)
    trial.suggest_float("learning_rate", 1e-5, 1e-1, log=True)
    return layers, units, trial.suggest_categorical("kernel", [[3, 3], [5, 5]])


def test_loops_and_branches_of_optuna_become_counts_and_conditions() -> None:
    space = traced("own", optuna_like, architecture=("layers*", "kernel"), description="Own.")
    wanted: dict[str, Parameter] = {
        **repeat("layers", Integer(low=1, high=3), {"units": Integer(low=8, high=64, step=8)}, role="architecture"),
        "optimizer": Categorical(choices=("sgd", "adam")),
        "fast": Categorical(choices=(0, 1), when={"optimizer": "sgd"}),
        "momentum": Float(low=0.5, high=0.99, when={"fast": 1}),
        "learning_rate": Float(low=1e-5, high=1e-1, log=True),
        "kernel": Categorical(choices=((3, 3), (5, 5)), role="architecture"),
    }
    assert dict(space.parameters) == wanted
    assert list(space.parameters) == list(wanted)
    assert space.defaults is None


def test_fixed_trial_answers_with_the_configuration() -> None:
    space = traced("own", optuna_like)
    for seed in range(20):
        drawn = space.sample(np.random.default_rng(seed))
        layers, units, kernel = optuna_like(FixedTrial(space.plain(drawn)))
        assert (layers, len(units)) == (drawn["layers"], drawn["layers"])
        assert units == tuple(drawn[f"layers_{n}_units"] for n in range(1, layers + 1))
        assert kernel == list(map(int, str(drawn["kernel"]).split("x")))  # the function's own list
        assert kernel == optuna_like(FixedTrial(drawn))[2]  # by its label as well


def test_fixed_trial_without_a_value_or_with_a_wrong_one_says_so() -> None:
    with pytest.raises(InvalidParameterError, match="asks for 'layers', which is not among x"):
        optuna_like(FixedTrial({"x": 1}))
    with pytest.raises(InvalidParameterError, match=r"layers=7 is outside \[1, 3\]"):
        optuna_like(FixedTrial({"layers": 7}))


def keras_like(hp: Any) -> Any:
    kind = hp.Choice("kind", ["cnn", "mlp"])
    with hp.conditional_scope("kind", ["cnn"]):
        filters = hp.Int("filters", 16, 64, step=16, default=32)
    units = hp.Int("units", 8, 64, step=2, sampling="log", parent_name="kind", parent_values="mlp")
    hp.Float("learning_rate", 1e-4, 1e-1, sampling="log", default=1e-2)
    hp.Boolean("norm", default=True)
    assert hp.Fixed("version", 2) == 2 and hp.get("kind") == hp["kind"] == kind and "norm" in hp
    return kind, filters, units


def test_scopes_and_defaults_of_keras_tuner_become_conditions_and_defaults() -> None:
    space = traced("own", keras_like)
    wanted: dict[str, Parameter] = {
        "kind": Categorical(choices=("cnn", "mlp")),
        "filters": Integer(low=16, high=64, step=16, when={"kind": "cnn"}),
        "units": Categorical(choices=(8, 16, 32, 64), ordered=True, when={"kind": "mlp"}),
        "learning_rate": Float(low=1e-4, high=1e-1, log=True),
        "norm": Categorical(choices=(False, True)),
        "version": Categorical(choices=(2,)),
    }
    assert dict(space.parameters) == wanted
    assert space.defaults is not None
    assert space.defaults.as_dict() == {"kind": "cnn", "filters": 32, "learning_rate": 1e-2, "norm": True, "version": 2}
    # What is not there is answered with its default, as there.
    assert keras_like(FixedTrial({**space.defaults, "kind": "mlp", "units": 16})) == ("mlp", 32, 16)


def test_ranges_that_move_with_a_sum_become_bounds() -> None:
    def suggest(trial: Any) -> None:
        a = trial.suggest_int("a", 0, 100)
        b = trial.suggest_int("b", 0, 100 - a)
        trial.suggest_int("c", 0, 100 - a - b)
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_float("y", 0.5 * x, x + 1)

    assert dict(traced("own", suggest).parameters) == {
        "a": Integer(low=0, high=100),
        "b": Integer(low=0, high=100, at_most="100 - a"),
        "c": Integer(low=0, high=100, at_most="100 - a - b"),
        "x": Float(low=0, high=1),
        "y": Float(low=0, high=2, at_least="0.5 * x", at_most="1 + x"),
    }


def test_what_two_values_bring_in_together_is_found() -> None:
    def suggest(trial: Any) -> None:
        a, b = (trial.suggest_categorical(name, ["x", "y", "z"]) for name in "ab")
        if a == "y" and b == "z" and trial.suggest_int("n", 1, 30) == 7:
            trial.suggest_float("rare", 0, 1)

    parameters = traced("own", suggest).parameters
    assert parameters["n"].condition == {"a": ("y",), "b": ("z",)}
    if "rare" in parameters:  # it takes luck to see it at all
        assert parameters["rare"].condition["n"] == (7,)


def or_else(trial: Any) -> None:
    if trial.suggest_categorical("a", ["x", "y"]) == "y" or trial.suggest_categorical("b", ["x", "y"]) == "y":
        trial.suggest_float("q", 0, 1)


def of_a_float(trial: Any) -> None:
    if trial.suggest_float("a", 0, 1) > 0.5:
        trial.suggest_float("q", 0, 1)


def squared(trial: Any) -> None:
    trial.suggest_int("q", 1, trial.suggest_int("a", 2, 20) ** 2)


def other_choices(trial: Any) -> None:
    trial.suggest_categorical("q", ["r", "s"] if trial.suggest_categorical("a", ["x", "y"]) == "y" else ["r", "t"])


def twice(trial: Any) -> None:
    trial.suggest_int("q", 1, 2)
    trial.suggest_int("q", 1, 3)


def empty(trial: Any) -> None:
    trial.suggest_int("q", 5, 1)


def strange_name(trial: Any) -> None:
    trial.suggest_int("block/q", 1, 5)


def strange_scale(hp: Any) -> None:
    hp.Int("q", 1, 5, sampling="reverse_log")


def strange_default(hp: Any) -> None:
    hp.Int("q", 1, 5, default=9)


def scope_of_nothing(hp: Any) -> None:
    with hp.conditional_scope("q", 1):
        hp.Boolean("b")


def endless(trial: Any) -> None:
    for number in itertools.count():
        trial.suggest_int(f"q{number}", 1, 5)


@pytest.mark.parametrize(
    "suggest, words",
    [
        (or_else, r"'q' is asked for with .*, but not with .*; a condition of a space is a list of values"),
        (of_a_float, "'q' is asked for with a=1.0, but not with a=0.0, and 'a' has too many values"),
        (
            squared,
            r"the range of 'q' changes, and follows no sum of numbers: \[1, 121\] with a=11, but \[1, 4\] with a=2",
        ),
        (other_choices, r"the range of 'q' changes.*\['r', 't'\] with a='x', but \['r', 's'\] with a='y'"),
        (twice, r"test_traced\.py, line \d+: InvalidParameterError: 'q' is asked for twice, with two ranges"),
        (empty, r"test_traced\.py, line \d+: .*low=5 is not below high=1"),
        (strange_name, "'block/q' is no identifier"),
        (strange_scale, "q: sampling='reverse_log' is not known here"),
        (strange_default, r"q: the default 9 is outside \[1, 5\]"),
        (scope_of_nothing, "the scope depends on 'q', which was not asked for before it"),
        (endless, "more than 2000 parameters are asked for"),
        (lambda trial: None, "the function asks for nothing"),
    ],
)
def test_function_that_makes_no_space_is_refused(suggest: Callable[[Any], object], words: str) -> None:
    with pytest.raises(InvalidSpaceError, match=f"(?s)search space 'own': .*{words}"):
        traced("own", suggest)


def test_function_that_draws_itself_is_refused() -> None:
    rng = np.random.default_rng(0)

    def suggest(trial: Any) -> None:
        trial.suggest_int("a", 0, 3)
        if rng.random() < 0.5:
            trial.suggest_float("q", 0, 1)

    with pytest.raises(InvalidSpaceError, match=r"search space 'own'.*'q' is asked for"):
        traced("own", suggest)


def test_role_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidSpaceError, match=r"architecture=unit_\* names no parameter; there are: layers"):
        traced("own", optuna_like, architecture=("layers", "unit_*"))
