"""How one configuration is trained: everything the loop needs besides the network and the data."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from search_spaces.configuration import JsonScalar
from trainers.data.spec import DataSpec

__all__ = [
    "SEARCH_FIELDS",
    "BatchNorm",
    "ClassWeights",
    "Direction",
    "EvaluateTask",
    "GradientCompression",
    "LearningRateScaling",
    "LossName",
    "MemoryFormat",
    "OptimizerName",
    "Parallelism",
    "Precision",
    "ScheduleName",
    "TrainConfig",
    "TrainTask",
]

Precision: TypeAlias = Literal["auto", "fp32", "tf32", "bf16", "fp16"]
Parallelism: TypeAlias = Literal["auto", "ddp", "fsdp", "pipeline"]
MemoryFormat: TypeAlias = Literal["auto", "contiguous", "channels_last"]
GradientCompression: TypeAlias = Literal["none", "bf16"]
BatchNorm: TypeAlias = Literal["local", "synchronised"]
OptimizerName: TypeAlias = Literal["sgd", "adam", "adamw", "rmsprop", "lion", "muon"]
ScheduleName: TypeAlias = Literal["constant", "step", "cosine", "one_cycle", "linear", "polynomial"]
LearningRateScaling: TypeAlias = Literal["none", "linear", "sqrt"]
LossName: TypeAlias = Literal["auto", "cross_entropy", "focal", "binary", "mse", "smooth_l1", "huber"]
ClassWeights: TypeAlias = Literal["none", "balanced"]
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

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    epochs: Annotated[int, Field(ge=1)] = 8
    """Passes over the training data."""
    metric: str = "accuracy"
    """The objective: a name among the metrics that the trainer measures on the validation split."""
    direction: Direction = "maximize"
    """Whether a larger or a smaller objective is better."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds the weights, the order of the data, augmentation and dropout of this trial."""
    precision: Precision = "auto"
    """`auto`: bf16 on a GPU that computes in it, otherwise fp32. `tf32`: fp32 whose factors an NVIDIA GPU rounds; the
    same as fp32 elsewhere."""
    parallel: Parallelism = "auto"
    """How several ranks share one training: `ddp` copies the network and cuts the batches, `fsdp` cuts the network,
    too, `pipeline` gives each rank some of its layers; `auto` is `ddp`."""
    gradient_compression: GradientCompression = "none"
    """In which format `ddp` exchanges gradients; `bf16` halves what is sent and rounds it."""
    batch_norm: BatchNorm = "local"
    """Whose items batch normalisation takes mean and spread of: those that a rank computes at a time, or with
    `synchronised` those that all ranks of `ddp` or `fsdp` do, which costs two exchanges for each layer and pass."""
    compile: bool = False
    """Whether the network is compiled first; costs a minute or so, which only long trainings earn back."""
    memory_format: MemoryFormat = "auto"
    """Order of the pixels of images in memory; `auto`: the one that is faster on the device."""

    batch_size: Annotated[int, Field(ge=1)] = 64
    """Items per optimizer step over all ranks and accumulated micro-batches together."""
    accumulate: Annotated[int, Field(ge=1)] = 1
    """Micro-batches that one optimizer step is cut into."""
    loader_workers: Annotated[int, Field(ge=0)] = 0
    """Processes per rank that read items, for data that do not lie in memory."""

    optimizer: OptimizerName = "adamw"
    """`sgd` is with Nesterov momentum; `muon` moves all but hidden matrices by AdamW; learning rates of `lion` are 3 to
    10 times smaller than those of `adamw`."""
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    """Of `sgd`, `rmsprop` and `muon`."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 1e-4
    """L2; not applied to biases and normalisation weights."""
    l1: Annotated[float, Field(ge=0.0)] = 0.0
    """Factor of the sum of the absolute values of the weights that decay."""
    gradient_clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Largest global gradient norm; 0: no clipping."""

    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    """Peak of the schedule, for a batch of `reference_batch_size` items where it is scaled."""
    learning_rate_scaling: LearningRateScaling = "none"
    """How the peak follows `batch_size / reference_batch_size`: proportionally, as its square root, or not at all."""
    reference_batch_size: Annotated[int, Field(ge=1)] = 64
    """Batch size that `learning_rate` is meant for, where it is scaled."""
    schedule: ScheduleName = "cosine"
    """How the learning rate falls after the warm-up."""
    warmup_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Share of all steps in which the learning rate rises linearly from near 0 (for `one_cycle`: to the peak)."""
    schedule_power: Annotated[float, Field(gt=0.0)] = 2.0
    """Exponent of `polynomial`."""
    schedule_drops: Annotated[int, Field(ge=1)] = 2
    """How often `step` lowers the learning rate, after equal parts of the steps."""
    schedule_factor: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """What `step` multiplies the learning rate by each time."""

    loss: LossName = "auto"
    """What is minimised: `cross_entropy`, `focal` or `binary` for classes, `mse` (the squared error), `smooth_l1` or
    `huber` for numbers; `auto`: the first of them."""
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Share of the target's weight that is spread over all classes (Szegedy et al. 2016, section 7)."""
    class_weights: ClassWeights = "none"
    """`balanced`: each class counts as much in the loss as any other, however many items it has."""
    focal_gamma: Annotated[float, Field(ge=0.0)] = 2.0
    """How strongly the `focal` loss turns away from what is classified well already."""

    augmentation: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Strength of random shifts, rotations, scaling and contrast of images; share of the tokens of texts that become
    the unknown one; 0: none."""
    rand_augment: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Strength of two random operations out of RandAugment's fourteen on each image; 0: none."""
    random_erasing: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Share of the images that lose a random rectangle."""
    mixup: Annotated[float, Field(ge=0.0)] = 0.0
    """Alpha of the Beta distribution that pairs of images are mixed by; with `cutmix`, too, each batch has one of both;
    0: none."""
    cutmix: Annotated[float, Field(ge=0.0)] = 0.0
    """Alpha of the Beta distribution of the area that one image gets from another; 0: none."""
    ema: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Decay per step, after a warm-up, of the moving average of the weights, which is measured and kept in their place;
    0: none."""

    teacher: str | None = None
    """Checkpoint (a file or a URL) of a network of the same task whose answers are learned, too."""
    temperature: Annotated[float, Field(gt=0.0)] = 2.0
    """By which the logits of teacher and student are divided before they are compared."""
    distillation: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """Weight of the teacher's answers; the true classes have the rest."""

    patience: Annotated[int, Field(ge=0)] = 0
    """Early stopping: epochs without an improvement of more than `min_change`; 0: never."""
    min_change: Annotated[float, Field(ge=0.0)] = 0.0
    """Smallest change of the objective that counts as an improvement."""

    def lasting(self) -> dict[str, JsonScalar]:
        """Return the settings that decide what is trained: those that a resumed training must not change."""
        return {name: value for name, value in self.model_dump().items() if name not in _PASSING}

    def micro_batch(self, ranks: int) -> int:
        """Most items that a rank computes at a time."""
        return -(-self.batch_size // (ranks * self.accumulate))


SEARCH_FIELDS = ("epochs", "metric", "direction", "precision", "parallel", "seed")
"""Fields that are no hyperparameters: they are the same for all trials of a search, or follow from it."""


_PASSING = frozenset(SEARCH_FIELDS) | {
    "accumulate",
    "compile",
    "gradient_compression",
    "loader_workers",
    "memory_format",
    "min_change",
    "patience",
}
"""Settings that belong to a search, say how something is computed, or when to end."""


class TrainTask(BaseModel):
    """One trial as a trainer sees it: a configuration, how to train it, and where its checkpoints live."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: str
    """Name of the search space that builds the network."""
    configuration: Mapping[str, JsonScalar]
    """The configuration, valid in that space: what builds the network."""
    stand_ins: tuple[str, ...] = ()
    """Its parameters whose values nobody has asked for: `training` has others, which the space does not know."""
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
    inherit: RelativePath | None = None
    """Checkpoint of another network, relative to `artifacts_root`, whose weights a training that starts anew begins
    with as far as they fit; None: all weights are drawn."""
    tensorboard: RelativePath | None = None
    """Folder for TensorBoard's files, relative to `artifacts_root`, which is no URL then; None: none are written."""
    profile: bool = False
    """Whether a few steps are profiled; the files go beside the checkpoints."""

    def asked_for(self) -> dict[str, JsonScalar]:
        """Return the configuration as it was asked for."""
        return {**self.configuration, **{name: getattr(self.training, name) for name in self.stand_ins}}

    def built_with(self) -> dict[str, JsonScalar]:
        """Return the values that the network is built with in the place of those that were asked for."""
        return {name: self.configuration[name] for name in self.stand_ins}


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
