"""The toy space with epochs that last long enough to be interrupted in the middle of a search."""

from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["EPOCH_S", "SPACE", "build_model"]

EPOCH_S = 0.5

SPACE = SearchSpace(
    "slow_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "epoch_s": Categorical(choices=(EPOCH_S,), role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that takes its time.",
)
