"""The toy space where most trials report no number at their first epoch."""

from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "broken_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "mood": Categorical(choices=("fine", "nan", "inf", "-inf"), role="architecture"),
        "bad_epoch": Categorical(choices=(1.0,), role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that breaks at once.",
)
