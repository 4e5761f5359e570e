"""Networks of a space are scored on a batch of real data, each with the same weights' seed and the same items."""

import pytest
import torch

from search_spaces.catalog import nas_small
from search_spaces.errors import InfeasibleArchitectureError
from trainers.config import TrainConfig
from trainers.data.spec import DataSpec
from trainers.network_scores import network_scores, scored_batch
from trainers.problem import Batch, Problem
from trainers.tasks.image_classification import ImageClassification

NAMES = ("naswot", "parameters", "snip")


@pytest.fixture(scope="module")
def digits() -> Problem:
    trainer = ImageClassification()
    return trainer.problem(trainer.load(DataSpec()), TrainConfig(), torch.device("cpu"))


@pytest.fixture
def batch(digits: Problem) -> Batch:
    return scored_batch(digits, 16, seed=0)


def test_batch_is_of_so_many_random_items(digits: Problem) -> None:
    batches = [scored_batch(digits, 16, seed=seed) for seed in (0, 0, 1)]
    assert [batch.inputs[0].shape for batch in batches] == [(16, 1, 8, 8)] * 3
    assert torch.equal(batches[0].inputs[0], batches[1].inputs[0])
    assert not torch.equal(batches[0].targets, batches[2].targets)
    assert len(scored_batch(digits, 10**6, seed=0)) == digits.training_items


def test_scores_depend_on_the_seed_of_the_weights_alone(digits: Problem, batch: Batch) -> None:
    assert nas_small.SPACE.defaults is not None
    randomness = torch.get_rng_state()
    found = [
        network_scores("nas_small", nas_small.SPACE.defaults, digits, batch, NAMES, seed=seed) for seed in (0, 0, 1)
    ]
    assert torch.equal(torch.get_rng_state(), randomness)
    assert tuple(found[0]) == NAMES
    assert found[0] == found[1]
    assert found[0]["naswot"] != found[2]["naswot"]
    assert found[0]["parameters"] == found[2]["parameters"]


def test_configuration_without_a_network_is_refused(digits: Problem, batch: Batch) -> None:
    assert nas_small.SPACE.defaults is not None
    empty = nas_small.SPACE.defaults.replace(edge_0_3="none", edge_2_3="none", edge_1_3="none")
    with pytest.raises(InfeasibleArchitectureError, match="no path"):
        network_scores("nas_small", empty, digits, batch, NAMES, seed=0)
