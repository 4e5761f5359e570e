"""The toy space with a second parameter and combinations that cannot be trained."""

from collections.abc import Mapping

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Float, Integer
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

__all__ = ["SPACE", "build_model"]


def refuse(configuration: Mapping[str, JsonScalar]) -> str | None:
    x, y = configuration["x"], configuration["y"]
    assert isinstance(x, float) and isinstance(y, int)
    return "x is too large for this y" if x > 0.1 * y else None


SPACE = SearchSpace(
    "picky_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "y": Integer(low=0, high=10, role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    defaults={"x": 0.25, "y": 5},
    refuse=refuse,
    description="A formula that cannot be computed everywhere.",
)
