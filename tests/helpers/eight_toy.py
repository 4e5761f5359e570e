"""The toy space with eight points."""

from search_spaces.parameters import Categorical
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "eight_toy",
    {"x": Categorical(choices=tuple(n / 8 for n in range(8)), role="architecture")},
    task="tests.helpers.toy:ToyTrainer",
    description="A formula with few values.",
)
