"""Trains networks of a person's own on datasets of their own: a file that defines `datasets(source)`.

The file, or another one, is also the search space: SPACE and `build_model(configuration)`, which may take the shape of
an input and the number of outputs besides. It may define `loss(answers, targets)`, `metrics(answers, targets)`,
`collate(items)`, METRICS and NUM_OUTPUTS. Everything else is as for any network: ranks, precision, accumulation,
resumption. Importing this module loads no torch.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from trainers.config import Direction, EvaluateTask, TrainConfig, TrainTask
from trainers.custom.files import OwnFile, own_code
from trainers.custom.sources import source_fingerprint
from trainers.data.spec import DataSpec
from trainers.loss_choice import OF_CLASSES, TargetKind
from trainers.method_choice import OF_IMAGES, OF_TEACHERS
from trainers.metrics.names import NUMBER_METRICS, class_metrics
from trainers.reporting import Reporter, TrialResult
from trainers.supervised import HYPERPARAMETERS, Supervised

if TYPE_CHECKING:
    import torch

    from trainers.custom.datasets import OwnDatasets
    from trainers.distributed import Ranks
    from trainers.problem import Problem

__all__ = ["OwnModule", "OwnModuleWithLoss"]

_MADE: "WeakKeyDictionary[ModuleType, tuple[str, OwnDatasets]]" = WeakKeyDictionary()
"""The last datasets of each file, with the fingerprint of their source: a search asks for them several times."""


class OwnModule(Supervised):
    """Learns the targets of a person's datasets by the usual loss.

    Args:
        file: the file.
    """

    hyperparameters: ClassVar[frozenset[str]] = HYPERPARAMETERS - OF_IMAGES - {"class_weights"} | {"loader_workers"}
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType({"loss": "minimize"})
    data_come_from: ClassVar[str] = "own file"

    def __init__(self, file: OwnFile) -> None:
        self._file = file

    def check(self, data: DataSpec) -> None:
        """Refuse nothing: only the file knows what it can read."""

    def measured(self, data: DataSpec) -> Mapping[str, Direction]:
        """Return METRICS of the file with `loss`, or else what fits the targets: the datasets are made to see that."""
        if self._file.function("loss") is not None:
            return {**self._file.metrics(), **self.metrics}
        return self.measured_on(self.load(data))

    def measured_on(self, data: Any) -> Mapping[str, Direction]:
        """Return what is measured on loaded datasets."""
        own = self._file.metrics()
        if self._file.function("loss") is not None or data.kind == "other":
            return {**own, **self.metrics}
        return {**own, **(class_metrics(data.num_outputs) if data.kind == "classes" else NUMBER_METRICS)}

    def target_kind(self, data: DataSpec) -> TargetKind | None:
        """Return what the targets are; the datasets are made to see that, unless the file has a loss of its own."""
        if self._file.function("loss") is not None:
            return None
        kind = self.load(data).kind
        return None if kind == "other" else kind

    def code_digest(self) -> str:
        """Return the digest of the file."""
        return self._file.digest()

    def load(self, data: DataSpec) -> "OwnDatasets":
        """Let the file make its datasets; once for as long as nothing changes.

        Raises:
            UserCodeError: the file has raised, or its datasets have a wrong form.
            BadDataError: a split is empty.
        """
        from trainers.custom.datasets import make_datasets

        made, key = _MADE.get(self._file.module), source_fingerprint(data.source)
        if made is None or made[0] != key:
            with own_code(self._file.path):
                made = key, make_datasets(self._file, data.source)
            _MADE[self._file.module] = made
        return made[1]

    def problem(self, data: "OwnDatasets", training: TrainConfig, device: "torch.device") -> "Problem":
        """Return the datasets as a training problem."""
        from trainers.custom.dataset_problem import DatasetProblem

        return DatasetProblem(data, self._file, training, device)

    def fit(self, task: TrainTask, data: "OwnDatasets", ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Train one configuration; see `Supervised.fit`. Errors of the file have their line."""
        with own_code(self._file.path):
            return super().fit(task, data, ranks, reporter)

    def evaluate(self, task: EvaluateTask, data: "OwnDatasets", ranks: "Ranks") -> Mapping[str, float]:
        """Measure the weights of a checkpoint on one split."""
        with own_code(self._file.path):
            return super().evaluate(task, data, ranks)


class OwnModuleWithLoss(OwnModule):
    """Learns by the file's own `loss`; what shapes the usual losses means nothing to it."""

    hyperparameters: ClassVar[frozenset[str]] = OwnModule.hyperparameters - OF_CLASSES - {"loss", *OF_TEACHERS}
