"""The toy space with two more parameters: how a trial misbehaves, and how long an epoch takes."""

from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import MOODS, build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "moody_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "mood": Categorical(choices=MOODS, role="architecture"),
        "epoch_s": Float(low=0.0, high=60.0, role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula that misbehaves on demand.",
)
