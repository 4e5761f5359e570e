"""A toy whose data take as long to read as anybody waits."""

import threading

from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import ToyTrainer, build_model
from trainers.data.spec import DataSpec

__all__ = ["SPACE", "ReadingToy", "build_model"]

SPACE = SearchSpace(
    "reading_toy",
    {"x": Float(low=0.0, high=1.0, role="architecture")},
    task="tests.helpers.reading_toy:ReadingToy",
    description="A toy that never gets its data.",
)


class ReadingToy(ToyTrainer):
    def load(self, data: DataSpec) -> str:
        threading.Event().wait(60.0)
        raise AssertionError("nobody has interrupted the reading")
