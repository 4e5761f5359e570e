"""The spaces of one network each: only its training is searched."""

from pathlib import Path

import numpy as np
import pytest
import torch

import automl
from search_spaces import InvalidConfigurationError, catalog
from search_spaces.example_inputs import EXAMPLE_SHAPES
from studies.trial import TrialState

SPACES = {"training_only": "nas_small", "training_only_text": "cnn_text", "training_only_table": "tabular_mlp"}


@pytest.mark.parametrize(("name", "network"), SPACES.items(), ids=SPACES)
def test_network_is_the_default_one_of_its_kind_whatever_the_training_is(name: str, network: str) -> None:
    module, other = catalog.load(name), catalog.load(network)
    assert module.SPACE.task == other.SPACE.task
    assert set(module.SPACE.names("training")) == set(module.SPACE.parameters)
    assert other.SPACE.defaults is not None
    shape, rng = EXAMPLE_SHAPES[module.SPACE.task], np.random.default_rng(0)
    with torch.device("meta"):
        usual = other.build_model(other.SPACE.defaults, shape, 3)
        networks = [module.build_model(module.SPACE.sample(rng), shape, 3) for _ in range(3)]
    assert {str(each) for each in networks} == {str(usual)}


def test_configuration_of_another_space_is_refused() -> None:
    for name in SPACES:
        module = catalog.load(name)
        with pytest.raises(InvalidConfigurationError, match="optimizer is missing"):
            module.build_model({}, EXAMPLE_SHAPES[module.SPACE.task], 3)


def test_training_on_a_table_is_searched_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    outcome = automl.search(
        space="training_only_table",
        data="diabetes",
        storage=f"sqlite:///{tmp_path}/studies.db",
        executor="inline",
        sampler="random",
        pruner="none",
        trials=3,
        epochs=1,
    )
    assert outcome.exit_code == 0
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 3
