"""What a Tune program may say about its study."""

import pytest

pytest.importorskip("ray")
from ray import tune

from automl.configuration_text import Row
from automl.errors import InvalidSpecError
from automl.integrations.ray_tune import TuneStudy
from automl.integrations.ray_tune.domains import parameters_of
from automl.queueing import enqueue
from search_spaces.errors import InvalidParameterError
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace
from studies.standing import Limits
from studies.storage import Storage
from tests.automl.conftest import Search
from tests.automl.integrations.conftest import Joined

DOMAINS = {
    "uniform": (tune.uniform(0, 2), Float(low=0.0, high=2.0)),
    "loguniform": (tune.loguniform(1e-4, 1e-1), Float(low=1e-4, high=1e-1, log=True)),
    "quniform": (tune.quniform(0, 1, 0.25), Float(low=0.0, high=1.0, step=0.25)),
    "randint": (tune.randint(1, 9), Integer(low=1, high=8)),
    "lograndint": (tune.lograndint(1, 9), Integer(low=1, high=8, log=True)),
    "qrandint": (tune.qrandint(2, 8, 2), Integer(low=2, high=8, step=2)),
    "choice": (tune.choice(["sgd", "adam"]), Categorical(choices=("sgd", "adam"))),
}


@pytest.mark.parametrize(("domain", "parameter"), DOMAINS.values(), ids=DOMAINS)
def test_domain_of_tune_becomes_a_parameter(domain: object, parameter: Parameter) -> None:
    assert parameters_of({"x": domain}) == {"x": parameter}


def test_domains_without_a_counterpart_are_refused_together() -> None:
    with pytest.raises(InvalidParameterError) as error:
        parameters_of({"a": tune.randn(), "b": tune.sample_from(lambda _: 1), "c": tune.qloguniform(2, 8, 2), "d": 3})
    assert all(f"{name}: " in str(error.value) for name in "abcd")


def test_pruner_that_lets_trials_rest_is_refused(storage: str) -> None:
    with pytest.raises(InvalidSpecError, match="Tune starts paused trials again by itself"):
        TuneStudy(
            "resting", storage=storage, metric="loss", mode="min", epochs=3, pruner="asha_promote",
            space={"x": tune.uniform(0.0, 1.0)},
        )  # fmt: skip


def test_all_mistakes_are_named_at_once(storage: str) -> None:
    with pytest.raises(InvalidSpecError) as error:
        TuneStudy(
            "wrong",
            storage=storage,
            metric=["loss", "size"],  # type: ignore[arg-type]
            mode="best",  # type: ignore[arg-type]
            epochs=0,
            sampler="tpee",
            pruner="ashaa",
            trials=0,
            seed=True,
            space={"x": tune.randn()},
        )
    text = str(error.value)
    for words in (
        "a study has one objective", "'best' is not allowed: give min or max", "epochs=0", "'tpee'", "'ashaa'",
        "trials=0", "seed=True", "space: x: ",
    ):  # fmt: skip
        assert words in text
    with Storage(storage) as database:
        assert database.studies() == ()


def test_new_study_needs_space_metric_mode_and_epochs(storage: str) -> None:
    with pytest.raises(InvalidSpecError) as error:
        TuneStudy("bare", storage=storage)
    assert len(error.value.problems) == 4


def test_joining_again_takes_everything_from_the_study(joined: Joined, storage: str) -> None:
    with joined(space={"x": Float(low=0.0, high=1.0)}, epochs=7, seed=5, trials=9, pruner="median") as study:
        first = study.settings
    with TuneStudy("toy", storage=storage) as study:
        again = study.settings
    assert again.space.to_json() == first.space.to_json()
    for name in ("metric", "direction", "epochs", "seed", "sampler", "pruner", "max_failures"):
        assert getattr(again, name) == getattr(first, name)
    with Storage(storage) as database:
        assert database.open_study("toy").limits == Limits(trials=9)


def test_what_all_trials_share_cannot_be_changed_and_the_rest_can(joined: Joined, storage: str) -> None:
    joined().close()
    with pytest.raises(InvalidSpecError) as error:
        joined(metric="size", mode="max", epochs=5, seed=1, space="nas_small")
    assert len(error.value.problems) == 5
    with joined(pruner="asha", trials=4, max_retries=0) as study:
        assert (study.settings.pruner, study.settings.max_retries) == ("asha", 0)


def test_study_of_a_search_is_joined_by_its_name_alone(storage: str, toy_search: Search) -> None:
    toy_search(trials=1, epochs=3)
    with TuneStudy("toy", storage=storage) as study:
        assert (study.settings.epochs, study.settings.metric, study.settings.space.name) == (3, "loss", "toy")
    with Storage(storage) as database:
        specification = database.open_study("toy").specification
    assert (specification["space"], specification["data"]["source"]) == ("tests.helpers.toy", "digits")


def test_space_with_rules_must_be_given_again(joined: Joined, storage: str) -> None:
    joined(space=SearchSpace("picky", {"x": Float(low=0.0, high=1.0)}, refuse=lambda _: None)).close()
    with pytest.raises(InvalidSpecError, match="without the rules"):
        TuneStudy("toy", storage=storage)


def test_wish_for_a_space_that_only_the_study_knows_is_queued(joined: Joined, storage: str) -> None:
    with joined(space={"x": tune.uniform(0, 1)}) as study:
        with Storage(storage) as database:
            wish = Row(place="", parameters={"x": "0.25"}, facts={}, is_text=True)
            assert enqueue(database.open_study("toy"), [wish]) == (0,)
        assert study.asking.ask("a") == {"x": 0.25}
