"""Trains by a person's own function: a file that defines `fit(context)`.

It may also define METRICS, `load(source)`, which reads the data once for all trials, and `test(context)`, which returns
the metrics of the best state on items that the search has not seen.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from search_spaces.catalog import load
from trainers.config import Direction, EvaluateTask, TrainConfig, TrainTask
from trainers.custom.files import Carried, OwnFile, own_code
from trainers.custom.sources import source_fingerprint
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError
from trainers.reporting import JsonValue, Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.checkpoint import Checkpoint
    from trainers.custom.context import Context
    from trainers.custom.course import Course
    from trainers.distributed import Ranks

__all__ = ["OwnData", "OwnFit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """What a person's `load` has returned.

    Attributes:
        content: the value, or the source where there is no `load`.
        fingerprint: of the source.
    """

    content: Carried
    fingerprint: str


class OwnFit(Trainer):
    """Hands a configuration to the `fit` of a file, and takes what it reports.

    Args:
        file: the file.
    """

    hyperparameters: ClassVar[frozenset[str]] = frozenset({"patience", "min_change"})
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType({})
    is_open: ClassVar[bool] = True

    def __init__(self, file: OwnFile) -> None:
        self._file = file

    def check(self, data: DataSpec) -> None:
        """Refuse nothing: only the file knows what it can read."""

    def measured(self, data: DataSpec) -> Mapping[str, Direction]:
        """Return the file's METRICS."""
        return self._file.metrics()

    def can_evaluate(self) -> bool:
        """Return whether the file defines `test`."""
        return self._file.function("test") is not None

    def code_digest(self) -> str:
        """Return the digest of the file."""
        return self._file.digest()

    def load(self, data: DataSpec) -> OwnData:
        """Return what the file's `load` makes of the source, or the source itself.

        Raises:
            UserCodeError: `load` has raised; the message has the line.
        """
        load = self._file.function("load")
        value: Any = data.source
        if load is not None:
            with own_code(self._file.path):
                value = load(data.source)
        content = Carried(str(self._file.path), value)
        return OwnData(content=content, fingerprint=source_fingerprint(data.source))

    def fingerprint(self, data: OwnData) -> str:
        """Return the digest of the source."""
        return data.fingerprint

    def fit(self, task: TrainTask, data: OwnData, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Let the file train one configuration.

        Raises:
            UserCodeError: it has raised, or has reported nothing or something that cannot be taken.
            NonFiniteLossError: it has reported an objective that is NaN or infinite.
            DamagedCheckpointError: `resume_from` cannot be gone on with.
            PeerFailedError: another rank failed.
        """
        from trainers.custom.context import Ended
        from trainers.custom.course import Course

        course = Course(task, reporter)
        with ranks.together("setting up the training"):
            context = self._context(task, course, data, ranks, _checkpoint_to_go_on_from(task, data))
        with _own_generators(task.training, course.epoch, ranks), own_code(self._file.path):
            try:
                self._file.module.fit(context)
            except Ended:
                pass
            if not course.is_over:
                context.finish()
        facts: dict[str, JsonValue] = {"world_size": ranks.world_size, "device": str(ranks.device)}
        return course.result(facts, of="fit(context)", tells=ranks.is_first)

    def evaluate(self, task: EvaluateTask, data: OwnData, ranks: "Ranks") -> Mapping[str, float]:
        """Let the file's `test` measure the state of a checkpoint.

        Raises:
            BadDataError: it defines no `test`, or another split is asked for.
            UserCodeError: it has raised, or returned something else than numbers.
        """
        from trainers.checkpoint import read_checkpoint
        from trainers.custom.course import Course, numbers_of

        if not self.can_evaluate() or task.split != "test":
            raise BadDataError(f"{self._file.path.name} has no test(context) to measure the split {task.split!r} by")
        with ranks.together("loading the checkpoint"):
            checkpoint = read_checkpoint(f"{task.artifacts_root}/{task.checkpoint}")
            training = TrainTask(
                space=task.space,
                configuration=task.configuration,
                data=task.data,
                training=TrainConfig(epochs=checkpoint.epoch, seed=checkpoint.seed),
                artifacts_root=task.artifacts_root,
                checkpoint_dir="unused",
            )
            context = self._context(training, Course(training, _nobody_asks), data, ranks, checkpoint)
        with _own_generators(training.training, context.start_epoch, ranks), own_code(self._file.path):
            return numbers_of(self._file.module.test(context), "test(context)")

    def _context(
        self, task: TrainTask, course: "Course", data: OwnData, ranks: "Ranks", checkpoint: "Checkpoint | None"
    ) -> "Context":
        from trainers.custom.context import Context

        if checkpoint is not None:
            course.resume(checkpoint.epoch, checkpoint.best)
        return Context(
            configuration=load(task.space, has_networks=False).SPACE.plain(task.configuration),
            epochs=task.training.epochs,
            seed=task.training.seed,
            data=data.content.value,
            ranks=ranks,
            start_epoch=course.epoch,
            state=None if checkpoint is None else checkpoint.optimization["state"],
            _task=task,
            _course=course,
            _fingerprint=data.fingerprint,
        )


def _checkpoint_to_go_on_from(task: TrainTask, data: OwnData) -> "Checkpoint | None":
    from trainers.checkpoint import read_checkpoint
    from trainers.fitting import check_belongs

    if task.resume_from is None:
        return None
    checkpoint = read_checkpoint(f"{task.artifacts_root}/{task.resume_from}")
    check_belongs(checkpoint, task, data.fingerprint)
    return checkpoint


@contextmanager
def _own_generators(training: TrainConfig, epoch: int, ranks: "Ranks") -> Iterator[None]:
    from trainers.feeding.generators import kept_generators, seed_generators
    from trainers.seeds import Purpose, seed_torch, torch_seed

    seed = torch_seed(Purpose.OWN, training.seed, epoch, ranks.rank)
    with kept_generators(ranks.device):
        seed_generators(seed)
        seed_torch(seed, ranks.device)
        yield


def _nobody_asks(report: object) -> Any:
    raise AssertionError("a measurement reports nothing")
