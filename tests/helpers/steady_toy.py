"""The toy space with short epochs that all last equally long, for many processes at once."""

from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["EPOCH_S", "SPACE", "build_model"]

EPOCH_S = 0.05

SPACE = SearchSpace(
    "steady_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "epoch_s": Categorical(choices=(EPOCH_S,), role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that takes a little time.",
)
