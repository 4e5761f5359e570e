"""A space of forty parameters with names of thirty letters, trained by the toy."""

from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "long_names",
    {
        f"parameter_with_a_very_long_n{number:02d}": Float(low=0.0, high=1.0, role="architecture")
        for number in range(40)
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula with many parameters that it does not use.",
)
