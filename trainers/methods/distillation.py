"""Distillation: a student learns the answers of a teacher beside the true classes.

Source: Hinton et al. 2015, Distilling the Knowledge in a Neural Network, arXiv 1503.02531, section 2.
"""

import logging
from collections.abc import Mapping
from reprlib import repr as shown

import torch
from torch import nn
from torch.nn import functional

from search_spaces.errors import UnknownSearchSpaceError
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.errors import DamagedCheckpointError, UserCodeError
from trainers.methods.method import Method
from trainers.networks import build_network
from trainers.precision import MixedPrecision
from trainers.problem import Batch, Problem
from trainers.reporting import JsonValue

__all__ = ["Distillation", "distillation_losses", "load_teacher"]

logger = logging.getLogger(__name__)

_FORMS = ("input_shape", "target_kind", "class_names")
"""What is said of data that have another form: nothing else of them can be the same then."""


def distillation_losses(student_NK: torch.Tensor, teacher_NK: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return for each item how far a student's answer is from the teacher's.

    It is `T**2 * KL(softmax(teacher / T) || softmax(student / T))`: the factor keeps gradients of the same size
    whatever the temperature (section 2.1; there without the teacher's entropy, which moves no gradient).

    Args:
        student_NK: logits.
        teacher_NK: logits.
        temperature: T, above 0.

    Returns:
        (N,) float32, 0 for equal answers.
    """
    student_NK = functional.log_softmax(student_NK.float() / temperature, dim=1)
    teacher_NK = functional.log_softmax(teacher_NK.float() / temperature, dim=1)
    divergence_NK = functional.kl_div(student_NK, teacher_NK, reduction="none", log_target=True)
    return divergence_NK.sum(dim=1) * temperature**2


class Distillation(Method):
    """Adds the answers of a frozen teacher to the losses; it sees the very inputs of the student, mixed or not.

    Args:
        teacher: in evaluation mode, on the student's device.
        temperature: above 0.
        weight: of the teacher's answers, in [0, 1]; the true classes have the rest.
        precision: in which the teacher answers.
    """

    def __init__(self, teacher: nn.Module, temperature: float, weight: float, precision: MixedPrecision) -> None:
        self._teacher, self._temperature, self._weight, self._precision = teacher, temperature, weight, precision

    def losses(self, batch: Batch, answers: torch.Tensor, losses_N: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean of both losses of each item.

        Raises:
            UserCodeError: the answers are not one logit for each class.
        """
        with torch.no_grad(), self._precision.autocast():
            teacher_NK = self._teacher(*batch.inputs)
        _check_answers(answers, teacher_NK)
        return torch.lerp(losses_N, distillation_losses(answers, teacher_NK, self._temperature), self._weight)


def load_teacher(location: str, problem: Problem, device: torch.device) -> nn.Module:
    """Build the network of a checkpoint with the weights that were measured, frozen.

    Args:
        location: the file or the URL.
        problem: what the student learns; the teacher must have learned the same.
        device: where it answers.

    Raises:
        UserCodeError: the teacher has learned something else, names no search space, or one that does not build it any
            more; or its checkpoint is missing, damaged, or does not fit the network that it names.
        ArtifactStoreError: the store of a URL does not give it.
    """
    try:
        checkpoint = read_checkpoint(location)
    except DamagedCheckpointError as error:
        raise UserCodeError(f"teacher: {error}; give the checkpoint of a training of the same data") from error
    _check_fits(checkpoint.blueprint, problem, location)
    network = _built(checkpoint, problem, location)
    try:
        network.load_state_dict(checkpoint.network)
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserCodeError(f"teacher {location} does not fit the network that it names: {error}") from error
    return network.to(device).requires_grad_(False).eval()


def _built(checkpoint: Checkpoint, problem: Problem, location: str) -> nn.Module:
    space, configuration = checkpoint.blueprint.get("space"), checkpoint.blueprint.get("configuration")
    stand_ins = checkpoint.blueprint.get("built_with", {})  # older releases had them in the configuration
    if not isinstance(space, str) or not isinstance(configuration, dict):
        raise UserCodeError(
            f"teacher {location} does not say by which search space its network is built (space {shown(space)}, "
            f"configuration {shown(configuration)}); give the checkpoint of a network that a search space builds"
        )
    try:
        return build_network(space, {**configuration, **stand_ins}, problem)  # type: ignore[dict-item]  # by its making
    except (UnknownSearchSpaceError, ValueError) as error:
        raise UserCodeError(f"teacher {location}: {error}") from error


def _check_answers(student: torch.Tensor, teacher: torch.Tensor) -> None:
    if student.dim() != 2 or student.shape != teacher.shape:
        raise UserCodeError(
            f"a student's answers of shape {tuple(student.shape)} cannot be compared with its teacher's of "
            f"{tuple(teacher.shape)}; needed: one logit for each class from both, (items, classes)"
        )


def _check_fits(theirs: Mapping[str, JsonValue], problem: Problem, location: str) -> None:
    """Refuse a teacher of other inputs or classes, and of other splits: it may know what students are measured on.

    Only what tells most is said; with other inputs, all that is known of the data differs.
    """
    ours = {"fingerprint": problem.fingerprint, **problem.blueprint()}
    differing = {
        name: f"{name}: teacher {shown(theirs.get(name))}, student {shown(value)}"
        for name, value in ours.items()
        if theirs.get(name) != value
    }
    if not differing:
        return
    kinds = (_FORMS, ("fingerprint",), tuple(differing))
    told = next(found for names in kinds if (found := [name for name in names if name in differing]))
    left_out = [name for name in differing if name not in told]
    logger.debug(
        "the teacher's data differ in more teacher=%s: %s", location, "; ".join(differing[n] for n in left_out)
    )
    raise UserCodeError(
        f"teacher {location} has learned from other data; {'; '.join(differing[name] for name in told)}; "
        "give the checkpoint of a training with the same data, splits and data options"
    )
