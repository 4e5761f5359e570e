"""What is said about a changed space, what is refused, and what becomes of old configurations."""

import json
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces import Categorical, Configuration, Float, Integer, JsonScalar, Parameter, SearchSpace
from search_spaces.versions import SpaceHistory, changes_between

OPERATION = Categorical(choices=("conv3", "skip"), role="architecture")
RATE = Float(low=0.001, high=0.1, log=True)


def space(defaults: dict[str, JsonScalar] | None = None, **parameters: Parameter) -> SearchSpace:
    return SearchSpace("tiny", parameters, defaults=defaults)


CHANGES = [
    pytest.param(RATE, Float(low=0.0001, high=0.1, log=True), ["range 0.001..0.1 -> 0.0001..0.1 (wider)"], id="wider"),
    pytest.param(
        RATE,
        Float(low=0.01, high=0.1, log=True),
        ["range 0.001..0.1 -> 0.01..0.1 (narrower, trials outside are left out)"],
        id="narrower",
    ),
    pytest.param(
        Integer(low=1, high=4),
        Integer(low=2, high=5),
        ["range 1..4 -> 2..5 (moved, trials outside are left out)"],
        id="moved",
    ),
    pytest.param(RATE, Float(low=0.001, high=0.1), ["scale log -> linear"], id="scale"),
    pytest.param(
        Float(low=0, high=1),
        Float(low=0, high=1, step=0.5),
        ["step none -> 0.5, trials between are left out"],
        id="step",
    ),
    pytest.param(Float(low=0, high=1, step=0.5), Float(low=0, high=1), ["step 0.5 -> none"], id="no step"),
    pytest.param(
        OPERATION,
        Categorical(choices=("conv3", "avg"), role="architecture"),
        ["choice 'avg' is new", "choice 'skip' was removed, trials with it are left out"],
        id="choices",
    ),
    pytest.param(
        Categorical(choices=(1, 2)),
        Categorical(choices=(2, 1), ordered=True),
        ["order of the choices 1|2 -> 2|1", "the choices are ordered now"],
        id="order",
    ),
    pytest.param(
        Categorical(choices=(1, 2)),
        Categorical(choices=(1.0, 2)),
        ["choice 1.0 is new", "choice 1 was removed, trials with it are left out"],
        id="type of a choice",
    ),
    pytest.param(Integer(low=0, high=3), Float(low=0, high=3), ["integer 0..3 -> float 0.0..3.0"], id="kind"),
    pytest.param(
        Float(low=0, high=1), Float(low=0, high=1, role="architecture"), ["role training -> architecture"], id="role"
    ),
]


@pytest.mark.parametrize("old, new, texts", CHANGES)
def test_changes_are_told_a_line_each(old: Parameter, new: Parameter, texts: list[str]) -> None:
    assert changes_between(space(p=old), space(p=new)) == tuple(f"p: {text}" for text in texts)
    assert changes_between(space(p=old), space(p=old)) == ()


def test_changes_name_new_and_removed_parameters_and_defaults() -> None:
    old = space({"x": 0.5, "operation": "skip"}, x=Float(low=0, high=1), operation=OPERATION)
    new = space({"operation": "conv3", "dropout": 0.1}, operation=OPERATION, dropout=Float(low=0, high=0.5))
    assert changes_between(old, new) == (
        "dropout is new, old trials count as dropout=0.1 (the default)",
        "x was removed",
        "operation: default 'skip' -> 'conv3'",
    )
    assert changes_between(space(x=RATE), space({"x": 0.01}, x=RATE)) == ("defaults are new",)
    assert changes_between(space({"x": 0.01}, x=RATE), space(x=RATE)) == ("the defaults were removed",)


def test_problem_is_only_what_takes_the_meaning_from_old_trials() -> None:
    for old, new in [parameters.values[:2] for parameters in CHANGES if parameters.id not in ("kind", "type")]:
        assert isinstance(old, Float | Integer | Categorical) and isinstance(new, Float | Integer | Categorical)
        assert SpaceHistory([space(p=old)], space(p=new)).problems == ()


def test_every_problem_is_listed_with_the_way_out() -> None:
    old = SearchSpace("tiny", {"x": Integer(low=0, high=3), "y": Categorical(choices=("a",))}, task="one")
    new = SearchSpace("tiny", {"x": Float(low=0, high=3), "y": Float(low=0, high=1), "z": RATE}, task="two")
    task, x, y, z = SpaceHistory([old], new).problems
    assert "'one' -> 'two'" in task
    assert x == "x: integer 0..3 -> float 0.0..3.0 is another kind of parameter; give it another name"
    assert y.startswith("y: choices a -> float 0.0..1.0")
    assert z.startswith("z is new") and "give the space defaults" in z


def test_problem_of_a_kind_that_any_version_had() -> None:
    versions = [space(x=Integer(low=0, high=3), y=RATE), space(y=RATE)]
    back = space({"x": 0.5, "y": 0.01}, x=Float(low=0, high=3), y=RATE)
    (problem,) = SpaceHistory(versions, back).problems
    assert "integer 0..3 -> float 0.0..3.0" in problem


@pytest.mark.parametrize(
    "first, new",
    [
        pytest.param(Categorical(choices=(1, 2)), Categorical(choices=(1, "auto")), id="no number"),
        pytest.param(Categorical(choices=(1, 2)), Categorical(choices=(1, None)), id="nothing"),
        pytest.param(Float(low=0.1, high=1, log=True), Float(low=0, high=1), id="no logarithm"),
    ],
)
def test_problem_is_what_plots_cannot_draw_on_the_axis_of_the_first_trial(first: Parameter, new: Parameter) -> None:
    (problem,) = SpaceHistory([space(p=first)], space(p=new)).problems
    assert "Optuna could no longer draw" in problem
    assert SpaceHistory([space(p=new)], space(p=first)).problems == ()


def test_new_study_has_neither_changes_nor_problems() -> None:
    history = SpaceHistory([], space(x=RATE))
    assert (history.changes, history.problems) == ((), ())
    assert adopted(history, {"x": 0.01}) == {"x": 0.01}
    assert adopted(history, {}) is None


def test_adopt_fills_in_what_was_in_effect_and_drops_what_is_gone() -> None:
    old = space(x=RATE, operation=OPERATION)
    new = space({"operation": "avg", "dropout": 0.1}, operation=Categorical(choices=("conv3", "avg")),
                dropout=Float(low=0, high=0.5))  # fmt: skip
    history = SpaceHistory([old], new)
    assert adopted(history, {"x": 0.01, "operation": "conv3"}) == {"operation": "conv3", "dropout": 0.1}
    assert adopted(history, {"x": 0.01, "operation": "skip"}) is None
    assert adopted(history, {"operation": "avg", "dropout": 0.5}) == {"operation": "avg", "dropout": 0.5}
    assert adopted(history, {"operation": "avg", "dropout": 0.6}) is None


def test_adopt_takes_the_default_that_a_parameter_came_with() -> None:
    """A default that is changed later says nothing about the trials from before the parameter came."""
    first = space(x=RATE)
    second = space({"x": 0.01, "dropout": 0.0}, x=RATE, dropout=Float(low=0, high=0.5))
    third = space({"x": 0.01, "dropout": 0.3}, x=RATE, dropout=Float(low=0, high=0.5))
    assert adopted(SpaceHistory([first, second], third), {"x": 0.02}) == {"x": 0.02, "dropout": 0.0}
    assert adopted(SpaceHistory([first], third), {"x": 0.02}) == {"x": 0.02, "dropout": 0.3}


def test_adopt_knows_nothing_of_parameters_that_no_version_had() -> None:
    history = SpaceHistory([space(x=RATE)], space(x=RATE))
    assert adopted(history, {"x": 0.02, "foreign": 1}) is None


def test_adopt_keeps_the_value_of_a_parameter_that_went_and_came_back() -> None:
    versions = [space(x=RATE, y=RATE), space(x=RATE)]
    history = SpaceHistory(versions, space({"x": 0.01, "y": 0.09}, x=RATE, y=RATE))
    assert adopted(history, {"x": 0.01, "y": 0.02}) == {"x": 0.01, "y": 0.02}
    assert adopted(history, {"x": 0.01}) == {"x": 0.01, "y": 0.09}


CONV_OR_SKIP = Categorical(choices=("conv", "skip"))
WITH_AVG = Categorical(choices=("conv", "skip", "avg"))
WIDTH = Integer(low=1, high=4)


@pytest.mark.parametrize("defaults", [None, {"op": "conv"}], ids=["no defaults", "defaults"])
def test_new_choice_with_a_parameter_of_its_own_needs_no_default(defaults: dict[str, JsonScalar] | None) -> None:
    new = space(defaults, op=WITH_AVG, width=Integer(low=1, high=4, when={"op": "avg"}))
    history = SpaceHistory([space(defaults, op=CONV_OR_SKIP)], new)
    assert history.problems == ()
    assert history.changes[-1] == "width is new, there only when op is avg, as no old trial is"
    assert adopted(history, {"op": "skip"}) == {"op": "skip"}
    assert adopted(history, {"op": "avg"}) is None, "the configuration of no version"


def test_new_parameter_of_old_trials_counts_as_its_default_where_it_has_one() -> None:
    old = space({"op": "conv"}, op=CONV_OR_SKIP)
    width = Integer(low=1, high=4, when={"op": "conv"})
    known = SpaceHistory([old], space({"op": "conv", "width": 3}, op=CONV_OR_SKIP, width=width))
    assert known.changes == ("width is new, old trials with op is conv count as width=3 (the default)",)
    assert adopted(known, {"op": "conv"}) == {"op": "conv", "width": 3}
    assert adopted(known, {"op": "skip"}) == {"op": "skip"}
    unknown = SpaceHistory([old], space({"op": "skip"}, op=CONV_OR_SKIP, width=width))
    assert unknown.problems == ()
    assert "left out, as the defaults have no width" in unknown.changes[0]
    assert adopted(unknown, {"op": "conv"}) is None
    (problem,) = SpaceHistory([old], space(op=CONV_OR_SKIP, width=width)).problems
    assert problem.startswith("width is new, and nothing says")


def test_condition_taken_away_gives_old_trials_the_default() -> None:
    old = space({"op": "conv", "width": 1}, op=CONV_OR_SKIP, width=Integer(low=1, high=4, when={"op": "conv"}))
    history = SpaceHistory([old], space({"op": "conv", "width": 2}, op=CONV_OR_SKIP, width=WIDTH))
    assert "old trials that lack it count as width=2 (the default)" in history.changes[0]
    assert adopted(history, {"op": "skip"}) == {"op": "skip", "width": 2}
    assert adopted(history, {"op": "conv", "width": 1}) == {"op": "conv", "width": 1}
    without = SpaceHistory([old], space(op=CONV_OR_SKIP, width=WIDTH))
    assert "trials that differ are left out" in without.changes[0]
    assert adopted(without, {"op": "skip"}) is None


def test_each_old_trial_counts_as_the_default_of_the_version_that_brought_the_parameter_to_it() -> None:
    versions = [
        space(op=CONV_OR_SKIP),
        space({"op": "conv", "width": 1}, op=CONV_OR_SKIP, width=Integer(low=1, high=4, when={"op": "conv"})),
    ]
    history = SpaceHistory(versions, space({"op": "conv", "width": 3}, op=CONV_OR_SKIP, width=WIDTH))
    assert adopted(history, {"op": "conv"}) == {"op": "conv", "width": 1}
    assert adopted(history, {"op": "skip"}) == {"op": "skip", "width": 3}


def numbers(low: int, high: int) -> st.SearchStrategy[Parameter]:
    bounds = st.tuples(st.integers(low, high - 1), st.integers(1, 5))
    return st.one_of(
        st.builds(lambda b: Integer(low=b[0], high=b[0] + b[1]), bounds),
        st.builds(lambda b, log: Float(low=b[0], high=b[0] + b[1], log=log), bounds, st.booleans()),
        st.builds(lambda b: Float(low=b[0], high=b[0] + b[1], step=0.5), bounds),
    )


CHOICES = st.lists(st.sampled_from(["a", "b", 1, 2.5, None]), min_size=1, max_size=4, unique=True)
PARAMETERS = st.one_of(numbers(1, 6), CHOICES.map(lambda choices: Categorical(choices=tuple(choices))))


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    chosen = draw(st.dictionaries(st.sampled_from("uvwxyz"), PARAMETERS, min_size=1, max_size=4))
    bare = SearchSpace("any", chosen)
    defaults = bare.sample(np.random.default_rng(draw(st.integers(0, 99)))) if draw(st.booleans()) else None
    return SearchSpace("any", chosen, defaults=defaults)


VERSIONS = st.lists(spaces(), min_size=1, max_size=4)
SEEDS = st.integers(0, 2**31).map(np.random.default_rng)


@given(VERSIONS, SEEDS)
def test_adopting_a_fitting_configuration_is_itself(versions: list[SearchSpace], rng: np.random.Generator) -> None:
    *earlier, present = versions
    fitting = present.sample(rng)
    assert spelling(SpaceHistory(earlier, present).adopt(fitting)) == spelling(fitting)


@given(VERSIONS, SEEDS)
def test_what_is_adopted_is_valid_and_is_adopted_again_as_it_is(
    versions: list[SearchSpace], rng: np.random.Generator
) -> None:
    *earlier, present = versions
    history = SpaceHistory(earlier, present)
    for version in versions:
        found = history.adopt(version.sample(rng))
        if found is not None:
            assert spelling(present.validate(found)) == spelling(found)
            assert spelling(history.adopt(found)) == spelling(found)


@given(spaces(), spaces(), SEEDS)
def test_values_that_both_spaces_allow_are_kept(old: SearchSpace, new: SearchSpace, rng: np.random.Generator) -> None:
    before = old.sample(rng)
    after = SpaceHistory([old], new).adopt(before)
    if after is not None:
        shared = before.keys() & after.keys()
        assert all(after[name] == pytest.approx(before[name]) for name in shared)
        new_ones = after.keys() - before.keys()
        assert not new_ones or (new.defaults is not None and all(after[n] == new.defaults[n] for n in new_ones))


@given(spaces(), spaces())
def test_stored_descriptions_tell_the_same_as_the_spaces(old: SearchSpace, new: SearchSpace) -> None:
    read = SearchSpace.from_json(json.loads(json.dumps(old.to_json())))
    assert changes_between(read, new) == changes_between(old, new)
    assert changes_between(read, old) == ()
    assert SpaceHistory([read], new).problems == SpaceHistory([old], new).problems


@given(spaces(), spaces())
def test_no_changes_means_that_every_configuration_fits_both(old: SearchSpace, new: SearchSpace) -> None:
    if not changes_between(old, new):
        rng = np.random.default_rng(0)
        for _ in range(5):
            new.validate(old.sample(rng))
            old.validate(new.sample(rng))


def spelling(configuration: Configuration | None) -> str:
    return repr(configuration)


def adopted(history: SpaceHistory, configuration: Mapping[str, JsonScalar]) -> dict[str, JsonScalar] | None:
    found = history.adopt(configuration)
    return None if found is None else found.as_dict()
