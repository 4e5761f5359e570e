"""A function as users of Optuna write it, as a search space: `automl search --space examples/define_by_run_space.py`.

The function is traced: what it asks for, and when, becomes the space. It builds the network of a trial as well.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import Any

from search_spaces.define_by_run import FixedTrial, traced


def suggest(trial: Any) -> list[int]:
    """Ask for everything, and return the widths of the layers."""
    trial.suggest_float("learning_rate", 1e-3, 1e-1, log=True)
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0.5, 0.95)
    return [trial.suggest_int(f"units_{layer}", 16, 64, step=16) for layer in range(trial.suggest_int("layers", 1, 3))]


SPACE = traced("define_by_run", suggest, architecture=("layers", "units_*"))


def build_model(configuration: Mapping[str, Any], input_shape: tuple[int, int, int], num_classes: int) -> Any:
    """Build the network of a configuration."""
    from torch import nn

    widths = [prod(input_shape), *suggest(FixedTrial(configuration))]
    layers = [nn.Sequential(nn.Linear(*pair), nn.ReLU()) for pair in pairwise(widths)]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], num_classes))
