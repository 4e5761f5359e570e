"""Searches that refuse networks with too many weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.errors import InvalidSpecError
from automl.session import SearchOutcome
from automl.size_limit import SizeLimit
from automl.spec import SearchSpec
from search_spaces.catalog import nas_small
from search_spaces.configuration import Configuration
from studies.trial import TrialState

FIELDS: dict[str, Any] = {
    "space": "nas_small",
    "epochs": 1,
    "executor": "inline",
    "sampler": "random",
    "pruner": "none",
}


def spec_of(most: object, **more: Any) -> SearchSpec:
    return SearchSpec.from_mapping({**FIELDS, "max_params": most, **more}, "a test")


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., SearchOutcome]:
    def run(**more: Any) -> SearchOutcome:
        return api.search(**FIELDS, study="small", storage=f"sqlite:///{tmp_path}/studies.db", **more)

    return run


def weights_of(configuration: object) -> int:
    assert isinstance(configuration, Configuration | dict)
    return sum(weight.numel() for weight in nas_small.build_model(configuration, (1, 8, 8), 10).parameters())


@pytest.mark.parametrize(("given", "most"), [("1e6", 10**6), ("200000", 200_000), (5000, 5000), ("2.5e3", 2500)])
def test_max_params_is_a_whole_number_in_every_spelling(given: object, most: int) -> None:
    assert spec_of(given).max_params == most


@pytest.mark.parametrize("given", ["0", "1.5", "many", "-3", 0, "nan", "inf"])
def test_max_params_that_is_no_number_of_weights_is_refused(given: object) -> None:
    with pytest.raises(InvalidSpecError, match=r"max-params: .* is not allowed"):
        spec_of(given)


def test_max_params_of_a_space_without_networks_is_refused_in_words() -> None:
    with pytest.raises(InvalidSpecError, match="has no networks to count the weights of"):
        spec_of(1000, space="tests.helpers.toy", metric="loss")


def test_weights_are_counted_as_the_training_builds_them_and_each_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(1)
    limit = SizeLimit(spec, spec.make_trainer().load(spec.data))
    assert nas_small.SPACE.defaults is not None
    default = nas_small.SPACE.defaults
    assert f"has {weights_of(default):,} weights, more than 1 " in str(limit.refusal(default))

    def again(*arguments: object) -> None:
        raise AssertionError("it is counted already")

    monkeypatch.setattr(nas_small, "build_model", again)
    faster = default.replace(learning_rate=0.5 * float(str(default["learning_rate"])))
    assert limit.refusal(faster) == limit.refusal(default)


def test_search_trains_only_networks_that_are_small_enough(search: Callable[..., SearchOutcome]) -> None:
    assert nas_small.SPACE.defaults is not None
    most = weights_of(nas_small.SPACE.defaults)
    outcome = search(max_params=most, trials=3)
    trials = outcome.study.trials()
    trained = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    refused = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    assert len(trained) == 3 and len(trained) + len(refused) == len(trials)
    assert all(weights_of(trial.configuration) <= most for trial in trained)
    assert refused and all(weights_of(trial.configuration) > most for trial in refused)
    keys = [nas_small.SPACE.key(trial.configuration) for trial in trials]
    assert len(set(keys)) == len(keys)


def test_search_in_which_nothing_is_small_enough_names_the_smallest(
    search: Callable[..., SearchOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automl.scheduler.MAX_REFUSALS_IN_A_ROW", 12)
    outcome = search(max_params=2, trials=3)
    trials = outcome.study.trials()
    assert [trial.state for trial in trials] == [TrialState.INFEASIBLE] * 12
    smallest = min(weights_of(trial.configuration) for trial in trials)
    assert outcome.exit_code == 3
    assert (
        f"the smallest network found has {smallest:,} weights, give --max-params {smallest} or more" in outcome.reason
    )
