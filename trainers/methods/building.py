"""Which methods a configuration switches on, and which of them do not fit a task."""

from collections.abc import Iterator

from trainers.config import TrainConfig, TrainTask
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.methods.distillation import Distillation, load_teacher
from trainers.methods.l1 import L1Penalty
from trainers.methods.method import Method
from trainers.methods.mixing import Mixing
from trainers.methods.moving_average import MovingAverage
from trainers.precision import MixedPrecision, resolve_precision
from trainers.problem import Problem

__all__ = ["OF_IMAGES", "build_methods"]

OF_IMAGES = ("augmentation", "rand_augment", "random_erasing", "mixup", "cutmix")
"""Training parameters that change pixels."""
_OF_TEACHERS = ("temperature", "distillation")


def build_methods(task: TrainTask, problem: Problem, ranks: Ranks) -> tuple[Method, ...]:
    """Return the methods of a task, in the order in which their hooks are called.

    Raises:
        UserCodeError: something is switched on that this task cannot do, or the teacher has learned something else.
        DamagedCheckpointError: the teacher's checkpoint cannot be used.
    """
    training = task.training
    if misfits := list(_misfits(training, problem)):
        raise UserCodeError("; ".join(misfits))
    return tuple(_methods(training, problem, ranks))


def _methods(training: TrainConfig, problem: Problem, ranks: Ranks) -> Iterator[Method]:
    if training.mixup > 0.0 or training.cutmix > 0.0:
        yield Mixing(training, problem.num_outputs)
    if training.teacher is not None:
        precision = MixedPrecision(resolve_precision(training.precision, ranks.device), ranks.device)
        teacher = load_teacher(training.teacher, problem, ranks.device)
        yield Distillation(teacher, training.temperature, training.distillation, precision)
    if training.l1 > 0.0:
        yield L1Penalty(training.l1)
    if training.ema > 0.0:
        yield MovingAverage(training.ema)


def _misfits(training: TrainConfig, problem: Problem) -> Iterator[str]:
    foreign = [name for name in OF_IMAGES if name not in problem.own_changes]
    on = [f"{name}={getattr(training, name)}" for name in foreign if getattr(training, name) > 0.0]
    if on and not problem.has_images:
        yield f"{' and '.join(on)}: only images are changed or mixed, and this task has none; leave it at 0"
    if training.teacher is not None and not _tells_classes(problem):
        yield f"teacher={training.teacher!r}: a teacher's answers are shares of classes, and this task tells no classes"
    idle = [name for name in _OF_TEACHERS if getattr(training, name) != TrainConfig.model_fields[name].default]
    if training.teacher is None and idle:
        given = " and ".join(f"{name}={getattr(training, name)}" for name in idle)
        yield f"{given}: there is no teacher to learn from; give teacher=CHECKPOINT, or leave it out"


def _tells_classes(problem: Problem) -> bool:
    targets = problem.example().targets
    return targets.dim() == 1 and not targets.is_floating_point()
