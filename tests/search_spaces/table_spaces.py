"""What the tests of spaces for tables have in common."""

import os
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from search_spaces import SearchSpace, catalog
from search_spaces.catalog import SpaceModule
from search_spaces.configuration import JsonScalar
from search_spaces.shapes import TableShape
from tests.trainers.training import Script
from trainers.config import EvaluateTask, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.data.table_loading import load_table
from trainers.distributed import Ranks
from trainers.parallel.stages import chain_of
from trainers.tasks import load_trainer

__all__ = [
    "SHAPES",
    "accuracy_on_magic",
    "build",
    "chained",
    "check_that_draws_learn",
    "configuration",
    "inputs",
    "real_tables",
]

SHAPES = {
    "numbers": TableShape(3),
    "categories": TableShape(0, (4, 2)),
    "both": TableShape(3, (4, 2)),
    "one number": TableShape(1),
    "one category": TableShape(0, (5,)),
    "unknown only": TableShape(2, (1,)),
}
DRAWS = 200

real_tables = pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA names no folder")
"""For tests that learn one."""


def configuration(space: SearchSpace, **values: JsonScalar) -> dict[str, JsonScalar]:
    """Return the defaults with some values changed."""
    assert space.defaults is not None
    return {**space.defaults, **values}


def inputs(shape: TableShape, rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows that differ from each other."""
    numbers_ND = torch.rand(rows, shape.numbers, generator=torch.Generator().manual_seed(0))
    categories_NC = torch.tensor([[row % size for size in shape.categories] for row in range(rows)], dtype=torch.int64)
    return numbers_ND, categories_NC.reshape(rows, len(shape.categories))


def build(space: SpaceModule, shape: TableShape, values: Mapping[str, JsonScalar], num_outputs: int = 3) -> nn.Module:
    """Build a network with known weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return space.build_model(values, shape, num_outputs)


def chained(network: nn.Module, rows: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Pass rows through the layers of a chain, one after the other, as pipeline stages do."""
    first, *others = chain_of(network)
    answers: torch.Tensor = first.module(*rows)
    for layer in others:
        answers = layer.module(answers)
    return answers


def check_that_draws_learn(space: SpaceModule, num_outputs: int) -> None:
    """Build random configurations for tables of all kinds and send rows forward and backward.

    Each one answers with finite numbers, and each of its weights has a gradient.
    """
    rng = np.random.default_rng(11)
    for _, shape in zip(range(DRAWS), cycle(SHAPES.values())):
        values = space.SPACE.sample(rng)
        network = space.build_model(values, shape, num_outputs)
        answers = network(*inputs(shape))
        answers.square().mean().backward()
        assert answers.shape == (4, num_outputs) and torch.isfinite(answers).all(), values
        assert all(weight.grad is not None for weight in network.parameters()), values


def accuracy_on_magic(space: str, folder: Path, epochs: int) -> float:
    """Train the defaults of a space on showers that the MAGIC telescope saw, and return the test accuracy."""
    spec = DataSpec(source=str(Path(os.environ["AUTOML_BENCH_DATA"]) / "magic.csv.gz"), target="y")
    of, trainer, data, alone = catalog.load(space).SPACE, load_trainer("tabular"), load_table(spec), Ranks.alone("cpu")
    values = configuration(of)
    training = TrainConfig.model_validate({"epochs": epochs, **{name: values[name] for name in of.names("training")}})
    where: dict[str, Any] = {"space": space, "configuration": values, "artifacts_root": str(folder), "data": spec}
    trainer.fit(TrainTask(**where, training=training, checkpoint_dir="trial-0"), data, alone, Script())
    return trainer.evaluate(EvaluateTask(**where, checkpoint=f"trial-0/epoch-{epochs:04d}.pt"), data, alone)["accuracy"]
