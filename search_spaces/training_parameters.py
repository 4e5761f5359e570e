"""All that can be chosen of a training, as parameters of a search: for spaces whose network stays the same.

Left out is what has no bearing on what is learned (precision, micro-batches, the order of pixels), what needs a file (a
teacher), what belongs to the search (epochs, early stopping), and the scaling of the learning rate, as it is searched.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameters import Categorical, Float, Integer, Parameter

__all__ = ["TRAINED_TASKS", "training_parameters", "usual_training"]


def training_parameters(task: str | None) -> dict[str, Parameter]:
    """Return the parameters by name; what only some optimizers, schedules or losses have is there with those only.

    The range of the learning rate has room for all optimizers: `sgd` learns in its upper half, `lion` in its lower one,
    the others in the middle. To narrow it, or to leave something out, change what is returned.

    Args:
        task: one of `TRAINED_TASKS`; `tabular` may be classes or numbers, and has what both have. None: a training with
            a loss or with data of one's own, and only what every training has.

    Raises:
        ValueError: the task is none of them.

    Example:
        >>> parameters = training_parameters("tabular_regression") | {"batch_size": Integer(low=16, high=64)}
        >>> parameters["momentum"].condition.holds({"optimizer": "adamw"})
        False
    """
    _check(task)
    found = {**_optimization(), **_schedule()}
    for group in () if task is None else _GROUPS[task]:
        found |= group()
    return found


def usual_training(task: str | None, learning_rate: float = 2e-3) -> dict[str, JsonScalar]:
    """Return defaults of these parameters, with which most networks learn something: AdamW, cosine, little else.

    Args:
        task: as for `training_parameters`.
        learning_rate: in [1e-4, 0.1].

    Raises:
        ValueError: the task is none of `TRAINED_TASKS`.
    """
    loss = "mse" if task == "tabular_regression" else "cross_entropy"
    usual: dict[str, JsonScalar] = {**_USUAL, "learning_rate": learning_rate, "loss": loss}
    return {name: usual[name] for name in training_parameters(task) if name in usual}


def _optimization() -> dict[str, Parameter]:
    return {
        "optimizer": Categorical(choices=("sgd", "adam", "adamw", "rmsprop", "lion", "muon")),
        "momentum": Float(low=0.5, high=0.99, when={"optimizer": ("sgd", "rmsprop", "muon")}),
        "learning_rate": Float(low=1e-4, high=1e-1, log=True),
        "weight_decay": Float(low=1e-6, high=1e-1, log=True),
        "l1": Categorical(choices=(0.0, 1e-6, 1e-5, 1e-4), ordered=True),
        "batch_size": Categorical(choices=(32, 64, 128, 256), ordered=True),
        "gradient_clip": Categorical(choices=(0.5, 1.0, 5.0, 0.0), ordered=True),  # 0 is no limit: the loosest
        "ema": Categorical(choices=(0.0, 0.9, 0.99, 0.999), ordered=True),
    }


def _schedule() -> dict[str, Parameter]:
    return {
        "schedule": Categorical(choices=("constant", "step", "cosine", "one_cycle", "linear", "polynomial")),
        "schedule_drops": Integer(low=1, high=4, when={"schedule": "step"}),
        "schedule_factor": Float(low=0.1, high=0.5, step=0.1, when={"schedule": "step"}),
        "schedule_power": Float(low=0.5, high=3.0, step=0.5, when={"schedule": "polynomial"}),
        "warmup_fraction": Float(low=0.0, high=0.3, step=0.05),
    }


def _class_loss() -> dict[str, Parameter]:
    return {
        "loss": Categorical(choices=("cross_entropy", "focal", "binary")),
        "focal_gamma": Float(low=0.5, high=4.0, step=0.5, when={"loss": "focal"}),
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "class_weights": Categorical(choices=("none", "balanced")),
    }


def _number_loss() -> dict[str, Parameter]:
    return {"loss": Categorical(choices=("mse", "smooth_l1", "huber"))}


def _image_changes() -> dict[str, Parameter]:
    return {
        "augmentation": Float(low=0.0, high=1.0, step=0.1),
        "rand_augment": Float(low=0.0, high=1.0, step=0.25),
        "random_erasing": Float(low=0.0, high=0.4, step=0.1),
        "mixup": Float(low=0.0, high=0.4, step=0.1),
        "cutmix": Float(low=0.0, high=1.0, step=0.25),
    }


def _text_changes() -> dict[str, Parameter]:
    return {"augmentation": Float(low=0.0, high=0.4, step=0.1)}


def _check(task: str | None) -> None:
    if task is not None and task not in _GROUPS:
        raise ValueError(
            f"no task {task!r} with training parameters;{did_you_mean(task, TRAINED_TASKS)} "
            f"tasks: {', '.join(TRAINED_TASKS)}, or None for a loss or data of your own"
        )


_GROUPS: Final[Mapping[str, tuple[Callable[[], dict[str, Parameter]], ...]]] = MappingProxyType(
    {
        "image_classification": (_class_loss, _image_changes),
        "text_classification": (_class_loss, _text_changes),
        "tabular": (),
        "tabular_classification": (_class_loss,),
        "tabular_regression": (_number_loss,),
    }
)
TRAINED_TASKS: Final = tuple(_GROUPS)
"""The tasks whose training parameters are known."""

_USUAL: Final[Mapping[str, JsonScalar]] = MappingProxyType(
    {
        "optimizer": "adamw",
        "weight_decay": 1e-2,
        "l1": 0.0,
        "batch_size": 64,
        "gradient_clip": 1.0,
        "ema": 0.0,
        "schedule": "cosine",
        "warmup_fraction": 0.1,
        "label_smoothing": 0.05,
        "class_weights": "none",
        "augmentation": 0.2,
        "rand_augment": 0.0,
        "random_erasing": 0.0,
        "mixup": 0.0,
        "cutmix": 0.0,
    }
)
