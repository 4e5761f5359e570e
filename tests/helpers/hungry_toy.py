"""The toy with a small device: a micro-batch of more than `room` items does not fit, as the second epoch shows."""

from typing import TYPE_CHECKING, Any, ClassVar

from search_spaces.parameters import Float, Integer
from search_spaces.space import SearchSpace
from tests.helpers.toy import ToyTrainer, build_model
from trainers.config import TrainTask
from trainers.errors import DeviceMemoryError
from trainers.reporting import Decision, Reporter, TrialResult

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["SPACE", "HungryTrainer", "build_model"]

SPACE = SearchSpace(
    "hungry_toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
        "room": Integer(low=0, high=64, role="architecture"),
        "batch_size": Integer(low=1, high=64),
    },
    task="tests.helpers.hungry_toy:HungryTrainer",
    description="A formula that needs memory.",
)


class HungryTrainer(ToyTrainer):
    hyperparameters: ClassVar[frozenset[str]] = frozenset({"x", "batch_size", "accumulate"})
    tried: ClassVar[list[tuple[int, int]]] = []
    """The epoch and the micro-batch of everything that was begun in this process; tests empty it."""

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        result = super().fit(task, data, ranks, reporter)
        facts = {**result.facts, "micro_batch": task.training.micro_batch(ranks.world_size)}
        return TrialResult(outcome=result.outcome, epoch=result.epoch, facts=facts)

    def _train(self, task: TrainTask, ranks: "Ranks", reporter: Reporter, epoch: int) -> Decision | None:
        items, room = task.training.micro_batch(ranks.world_size), task.configuration["room"]
        self.tried.append((epoch, items))
        assert isinstance(room, int)
        if epoch == 2 and items > room:
            raise DeviceMemoryError(f"{items} items do not fit")
        return super()._train(task, ranks, reporter, epoch)
