"""The toy space with trials that hang, or take all the memory."""

from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "wayward_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "mood": Categorical(choices=("fine", "hang_last", "hoard_0"), role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that may not come back.",
)
