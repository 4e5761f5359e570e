"""Which losses fit which kind of target; loads no torch, so that a plan can be refused before anything is trained."""

from typing import Literal, TypeAlias

from trainers.config import LossName, TrainConfig
from trainers.errors import UserCodeError

__all__ = [
    "CLASS_LOSSES",
    "NUMBER_LOSSES",
    "OF_CLASSES",
    "TargetKind",
    "check_loss",
    "fitting_losses",
    "loss_mistakes",
]

TargetKind: TypeAlias = Literal["classes", "numbers"]

CLASS_LOSSES: tuple[LossName, ...] = ("auto", "cross_entropy", "focal", "binary")
NUMBER_LOSSES: tuple[LossName, ...] = ("auto", "mse", "smooth_l1", "huber")

OF_CLASSES = frozenset({"label_smoothing", "class_weights", "focal_gamma"})
"""Training parameters of the losses for classes."""


def fitting_losses(kind: TargetKind) -> tuple[LossName, ...]:
    """Return the losses for one kind of target."""
    return CLASS_LOSSES if kind == "classes" else NUMBER_LOSSES


def loss_mistakes(training: TrainConfig, kind: TargetKind) -> list[str]:
    """Return what in a configuration does not fit a kind of target, one sentence each; empty: all fits."""
    mistakes = []
    allowed = fitting_losses(kind)
    if training.loss not in allowed:
        mistakes.append(f"loss {training.loss!r} is not for {kind}; give one of {', '.join(allowed)}")
    if kind == "numbers":
        if training.label_smoothing > 0.0:
            mistakes.append(f"label_smoothing={training.label_smoothing:g}: numbers have no labels to smooth; give 0")
        if training.class_weights != "none":
            mistakes.append(f"class_weights={training.class_weights!r}: numbers have no classes; give 'none'")
    return mistakes


def check_loss(training: TrainConfig, kind: TargetKind) -> None:
    """Refuse a configuration whose loss does not fit.

    Raises:
        UserCodeError: with all of `loss_mistakes`.
    """
    if mistakes := loss_mistakes(training, kind):
        raise UserCodeError("; ".join(mistakes))
