"""A trainer whose code lets NumPy raise wherever it would warn, in the whole process."""

from typing import TYPE_CHECKING, Any

import numpy as np

from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from tests.helpers.toy import ToyTrainer, build_model
from trainers.config import TrainTask
from trainers.reporting import Reporter, TrialResult

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["SPACE", "TouchyTrainer", "build_model"]

SPACE = SearchSpace(
    "touchy_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "rate": Float(low=1e-9, high=1.0, log=True, role="architecture"),
        "layers": Integer(low=1, high=9, role="architecture"),
        "kind": Categorical(choices=("a", "b", "c"), role="architecture"),
    },
    task="tests.helpers.touchy_toy:TouchyTrainer",
    description="A formula that changes NumPy's settings.",
)


class TouchyTrainer(ToyTrainer):
    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        np.seterr(all="raise")
        return super().fit(task, data, ranks, reporter)
