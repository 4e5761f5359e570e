"""How one configuration is trained: everything the loop needs besides the network and the data."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from search_spaces.configuration import JsonScalar
from trainers.data.spec import DataSpec

__all__ = ["Direction", "EvaluateTask", "OptimizerName", "Precision", "TrainConfig", "TrainTask"]

Precision: TypeAlias = Literal["auto", "fp32", "bf16", "fp16"]
OptimizerName: TypeAlias = Literal["sgd", "adam", "adamw"]
Direction: TypeAlias = Literal["maximize", "minimize"]


def _below_the_root(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise ValueError(f"{path!r} must be a POSIX path relative to artifacts_root, without '..'")
    return path


RelativePath: TypeAlias = Annotated[str, AfterValidator(_below_the_root)]


class TrainConfig(BaseModel):
    """The training hyperparameters of one trial.

    A parameter of a search space whose role is `training` sets the field of the same name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: Annotated[int, Field(ge=1)] = 8
    """Passes over the training data."""
    metric: str = "accuracy"
    """The objective: a name among the metrics that the trainer measures on the validation split."""
    direction: Direction = "maximize"
    """Whether a larger or a smaller objective is better."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds the weights, the order of the data, augmentation and dropout of this trial."""
    precision: Precision = "auto"
    """`auto`: bf16 on a GPU that computes in it, otherwise fp32."""

    batch_size: Annotated[int, Field(ge=1)] = 64
    """Items per optimizer step over all ranks and accumulated micro-batches together."""
    accumulate: Annotated[int, Field(ge=1)] = 1
    """Micro-batches that one optimizer step is cut into."""
    optimizer: OptimizerName = "adamw"
    """`sgd` is with Nesterov momentum 0.9."""
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    """Peak of the schedule."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 1e-4
    """Not applied to biases and normalisation weights."""
    warmup_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Share of all steps in which the learning rate rises linearly from near 0; a cosine follows."""
    gradient_clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Largest global gradient norm; 0: no clipping."""
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Share of the target's weight that is spread over all classes (Szegedy et al. 2016, section 7)."""
    augmentation: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Strength of random shifts, rotations, scaling and contrast; 0: none."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Early stopping: epochs without an improvement of more than `min_change`; 0: never."""
    min_change: Annotated[float, Field(ge=0.0)] = 0.0
    """Smallest change of the objective that counts as an improvement."""

    def micro_batch(self, ranks: int) -> int:
        """Most items that a rank computes at a time."""
        return -(-self.batch_size // (ranks * self.accumulate))


class TrainTask(BaseModel):
    """One trial as a trainer sees it: a configuration, how to train it, and where its checkpoints live."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: str
    """Name of the search space that builds the network."""
    configuration: Mapping[str, JsonScalar]
    """The configuration, valid in that space."""
    data: DataSpec = DataSpec()
    """The data."""
    training: TrainConfig = TrainConfig()
    """The training hyperparameters, those of the configuration among them."""
    artifacts_root: str
    """Absolute folder on this machine, or URL of a store, under which all paths of checkpoints lie."""
    checkpoint_dir: RelativePath
    """Folder of this trial's checkpoints, relative to `artifacts_root`."""
    resume_from: RelativePath | None = None
    """Checkpoint to go on from, relative to `artifacts_root`; None: start anew."""


class EvaluateTask(BaseModel):
    """Measures a finished network on one split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: str
    configuration: Mapping[str, JsonScalar]
    data: DataSpec = DataSpec()
    precision: Precision = "auto"
    artifacts_root: str
    checkpoint: RelativePath
    """Checkpoint with the weights, relative to `artifacts_root`."""
    split: Literal["validation", "test"] = "test"
