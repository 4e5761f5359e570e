"""A search space and its network in one file: `automl search --space examples/own_space.py --trials 10`."""

from itertools import pairwise

from search_spaces import Categorical, Float, Integer, SearchSpace
from search_spaces.blocks import repeat

SPACE = SearchSpace(
    "own_space",
    {
        **repeat("layers", Integer(low=1, high=3), {"width": Integer(low=16, high=64, step=16)}, role="architecture"),
        "optimizer": Categorical(choices=("sgd", "adam")),
        "momentum": Float(low=0.5, high=0.95, when={"optimizer": "sgd"}),
        "learning_rate": Float(low=1e-3, high=1e-1, log=True),
    },
)


def build_model(configuration: dict, input_shape: tuple, num_classes: int):
    """Build the network of a configuration."""
    from torch import Size, nn

    widths = [configuration[f"layers_{layer + 1}_width"] for layer in range(configuration["layers"])]
    layers = [part for pair in pairwise([Size(input_shape).numel(), *widths]) for part in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], num_classes))
