"""Trainers of networks that a search space builds: what is the same for images, texts and tables.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from trainers.artifact_files import is_url
from trainers.config import SEARCH_FIELDS, Direction, EvaluateTask, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.errors import UserCodeError
from trainers.loss_choice import TargetKind, loss_mistakes
from trainers.method_choice import method_mistakes, missing_teacher
from trainers.reporting import Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    import torch

    from trainers.distributed import Ranks
    from trainers.drafts import Drafts
    from trainers.problem import Problem

__all__ = ["HYPERPARAMETERS", "Supervised"]

HYPERPARAMETERS = frozenset(TrainConfig.model_fields) - {*SEARCH_FIELDS, "loader_workers"}
"""Training parameters that a search space may set: all but those that belong to the search, and that of data which do
not lie in memory."""


class Supervised(Trainer):
    """Learns from items with known answers, with a network that the search space builds.

    On one rank or several (copies, cut weights or stages, see `trainers.parallel`), in mixed precision, and resumed
    exactly.

    A report holds the metrics of the validation split, `train_loss`, `learning_rate`, `gradient_norm`, `skipped_steps`,
    and what the clock told (`trainers.monitoring`). Subclasses read data and make a Problem of them.
    """

    has_networks: ClassVar[bool] = True

    @abstractmethod
    def problem(self, data: Any, training: TrainConfig, device: "torch.device") -> "Problem":
        """Return what `load` returned as a training problem on a device."""

    @abstractmethod
    def target_kind(self, data: DataSpec) -> TargetKind | None:
        """Return what the targets of some data are, reading no more than must be; None: something of a person's own.

        Raises:
            BadDataError: the data cannot be read.
        """

    def mistakes(self, training: TrainConfig, data: DataSpec) -> list[str]:
        """Return which loss and which methods do not fit the data, and whether the teacher is missing."""
        kind = self.target_kind(data)
        return [
            *(loss_mistakes(training, kind) if kind is not None else []),
            *method_mistakes(training, self.hyperparameters, tells_classes=kind == "classes"),
            *missing_teacher(training),
        ]

    def mistakes_once_loaded(
        self,
        training: TrainConfig,
        space: str,
        configurations: Sequence[Mapping[str, JsonScalar]],
        data: Any,
        ranks: int,
    ) -> list[str]:
        """Return why the teacher cannot be learned from, and why no network can be cut into stages."""
        teacher = None if training.teacher is None or is_url(training.teacher) else training.teacher
        is_cut = training.parallel == "pipeline" and ranks > 1
        if teacher is None and not is_cut:
            return []
        from trainers.first_try import on_cpu, pipeline_mistakes, teacher_mistakes
        from trainers.networks import build_network

        problem = on_cpu(self._maker(data, training))
        found = [] if teacher is None else teacher_mistakes(teacher, problem)
        if is_cut:
            builds = [partial(build_network, space, configuration, problem) for configuration in configurations]
            found += pipeline_mistakes(builds, problem.example(), ranks)
        return found

    def fingerprint(self, data: Any) -> str:
        """Return the digest of all items and splits."""
        digest: str = data.fingerprint
        return digest

    def measured_on(self, data: Any) -> Mapping[str, Direction]:
        """Return what `measured` says of the data, from what `load` returned: their files may lie elsewhere.

        An epoch leaves out what has no value: `r2` where all targets are equal, `auc` where only one class occurs.
        """
        return self.metrics

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Train one configuration.

        Raises:
            UserCodeError: the objective is no metric of this trainer, or the network's answers have a wrong shape.
            NonFiniteLossError: the loss or the objective left the numbers.
            DeviceMemoryError: the device's memory is too small.
            DamagedCheckpointError: `resume_from` cannot be gone on with.
            RanksDivergedError: the ranks no longer hold equal weights.
            PeerFailedError: another rank failed.
        """
        from trainers.fitting import fit

        self._check_metric(task, data)
        return fit(task, self._maker(data, task.training), ranks, reporter)

    def evaluate(self, task: EvaluateTask, data: Any, ranks: "Ranks") -> Mapping[str, float]:
        """Measure the weights of a checkpoint on one split.

        Raises:
            BadDataError: the data have no such split.
            DamagedCheckpointError: the checkpoint cannot be read or belongs to another network.
        """
        from trainers.fitting import evaluate

        return evaluate(task, self._maker(data, TrainConfig()), ranks)

    def drafts(self, space: str, data: Any) -> "Drafts":
        """Return what builds the networks of a space for these data, to be looked at before any is trained."""
        import torch

        from trainers.drafts import Drafts

        return Drafts(space, self.problem(data, TrainConfig(), torch.device("cpu")))

    def _maker(self, data: Any, training: TrainConfig) -> "Callable[[torch.device], Problem]":
        return lambda device: self.problem(data, training, device)

    def _check_metric(self, task: TrainTask, data: Any) -> None:
        measured = self.measured_on(data)
        name = task.training.metric
        if name not in measured:
            raise UserCodeError(
                f"no metric {name!r};{did_you_mean(name, measured)} measured: {', '.join(sorted(measured))}"
            )
