"""A toy space of four points, of which two fail whenever they are tried."""

from search_spaces.parameters import Categorical
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "failing_toy",
    {
        "x": Categorical(choices=(0.25, 0.5), role="architecture"),
        "mood": Categorical(choices=("fine", "raise_0"), role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that fails at some points.",
)
