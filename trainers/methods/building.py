"""Makes the methods that a configuration switches on; which of them fit a task is told by `trainers.method_choice`."""

from collections.abc import Iterator

from trainers.config import TrainConfig, TrainTask
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.method_choice import ITEM_CHANGES, method_mistakes
from trainers.methods.distillation import Distillation, load_teacher
from trainers.methods.l1 import L1Penalty
from trainers.methods.method import Method
from trainers.methods.mixing import Mixing
from trainers.methods.moving_average import MovingAverage
from trainers.precision import MixedPrecision, resolve_precision
from trainers.problem import Problem

__all__ = ["build_methods"]


def build_methods(task: TrainTask, problem: Problem, ranks: Ranks) -> tuple[Method, ...]:
    """Return the methods of a task, in the order in which their hooks are called.

    Raises:
        UserCodeError: something is switched on that this task cannot do, or the teacher cannot be learned from.
    """
    training = task.training
    changes = ITEM_CHANGES if problem.has_images else problem.own_changes
    if mistakes := method_mistakes(training, changes, tells_classes=_tells_classes(problem)):
        raise UserCodeError("; ".join(mistakes))
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


def _tells_classes(problem: Problem) -> bool:
    targets = problem.example().targets
    return targets.dim() == 1 and not targets.is_floating_point()
