"""What a person's `fit` is given: the configuration, the ranks, what to go on from, and how to report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from search_spaces.parameters import PlainValue
from trainers.checkpoint import Checkpoint, checkpoint_name, write_checkpoint
from trainers.config import TrainTask
from trainers.custom.course import Course, origin_of
from trainers.custom.states import plain_state
from trainers.distributed import Ranks
from trainers.errors import PeerFailedError, TrialError, UserCodeError
from trainers.reporting import CheckpointFile

if TYPE_CHECKING:
    import torch

__all__ = ["Context", "Ended"]


class Ended(BaseException):
    """Unwinds a person's `fit` whose training is over; no Exception, so that nothing on the way keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """One rank's view of the training of one configuration.

    Reading a field never communicates. `report` is to be called by every rank, equally often.

    Attributes:
        configuration: name -> value, the constants of `--set` among them; a choice that is a list is that list.
        epochs: reports of a full training.
        seed: of this trial; the global generators of Python, NumPy and torch are seeded from it already.
        data: what the file's `load` returned; without one the source that the search names.
        ranks: the ranks, for one's own collective operations: `ranks.main` is the group, None for a single rank.
        start_epoch: epochs that were reported before, 0 for a training that starts anew.
        state: what the last report before kept; None: start anew.
    """

    configuration: Mapping[str, PlainValue]
    epochs: int
    seed: int
    data: Any
    ranks: Ranks
    start_epoch: int = 0
    state: Any = None
    _task: TrainTask = field(repr=False)
    _course: Course = field(repr=False)
    _fingerprint: str = field(repr=False)

    @property
    def rank(self) -> int:
        """This process's place among the ranks, from 0."""
        return self.ranks.rank

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.ranks.world_size

    @property
    def device(self) -> "torch.device":
        """Where this rank computes."""
        return self.ranks.device

    def report(self, metrics: Mapping[str, float], state: Any = None) -> None:
        """Report the next epoch, and leave `fit` when the training shall end.

        Args:
            metrics: name -> number, the objective among them; those of rank 0 count.
            state: what to go on from, on rank 0: nested dicts, lists and tuples of tensors, numbers and texts, such as
                `{"model": model.state_dict()}`. None: no checkpoint; an interrupted training starts anew.

        Raises:
            UserCodeError: the objective is missing, the state cannot be kept, or ranks do not report alike.
            NonFiniteLossError: the objective is NaN or infinite.
            PeerFailedError: rank 0 could not report.
        """
        course, ranks = self._course, self.ranks
        if course.is_over:
            raise Ended
        epoch = course.epoch + 1
        numbers = self._agree_on(epoch, metrics)
        course.take(epoch, numbers)
        decision = None
        with ranks.together("saving and reporting the epoch"):
            if ranks.is_first:
                checkpoint = None if state is None else self._save(numbers, state)
                decision = course.ask(numbers, checkpoint)
        course.decision = ranks.broadcast_decision(decision)
        if course.decision is not course.decision.CONTINUE or course.best.is_exhausted:
            raise Ended

    def finish(self) -> None:
        """Compare how the ranks have left `fit`; called by the trainer on every rank whose `fit` raised nothing."""
        self._meet("left fit", {})

    def _agree_on(self, epoch: int, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Return rank 0's metrics on every rank."""
        failure: TrialError | None = None
        numbers: Mapping[str, float] | None = {}
        if self.ranks.is_first:
            try:
                numbers = self._course.checked(epoch, metrics)
            except TrialError as error:
                failure, numbers = error, None
        shared = self._meet(f"reported epoch {epoch}", numbers)
        if failure is not None:
            raise failure
        if shared is None:
            raise PeerFailedError("rank 0 could not report the epoch")
        return shared

    def _meet(self, doing: str, numbers: Mapping[str, float] | None) -> Mapping[str, float] | None:
        """Exchange what each rank does; the same call wherever a rank is, so that none waits in vain."""
        said = self.ranks.gather_objects((doing, numbers))
        if len({words for words, _ in said}) > 1:
            told = "; ".join(f"rank {rank} {words}" for rank, (words, _) in enumerate(said))
            raise UserCodeError(f"{told}; every rank must call context.report, and equally often")
        return said[0][1]

    def _save(self, numbers: Mapping[str, float], state: Any) -> CheckpointFile:
        task, course = self._task, self._course
        checkpoint = Checkpoint(
            epoch=course.epoch,
            seed=self.seed,
            network={},
            optimization={"state": plain_state(state)},
            best=course.best.state(),
            metrics=numbers,
            blueprint=origin_of(task, self._fingerprint),
        )
        path = f"{task.checkpoint_dir.rstrip('/')}/{checkpoint_name(course.epoch)}"
        return write_checkpoint(checkpoint, task.artifacts_root, path)
