"""A trainer whose data are an array, and which tells how it got them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import ToyTrainer, build_model
from trainers.config import TrainTask
from trainers.data.spec import DataSpec
from trainers.reporting import JsonValue, Reporter, TrialResult

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["SPACE", "ArrayTrainer", "build_model"]

SPACE = SearchSpace(
    "array_toy",
    {"x": Float(low=0.0, high=1.0, role="architecture")},
    task="tests.helpers.array_toy:ArrayTrainer",
    description="Tells whether its ranks share the memory of the data.",
)


class ArrayTrainer(ToyTrainer):
    def load(self, data: DataSpec) -> Any:
        return {"images": np.arange(1_000_000, dtype=np.float64)}

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        images = data["images"]
        own: list[JsonValue] = [not images.flags.writeable and not images.flags.owndata, float(images.sum())]
        return TrialResult(outcome="completed", epoch=1, facts={"is_shared": ranks.gather_objects(own)})
