"""Which methods a configuration switches on."""

from trainers.config import TrainTask
from trainers.distributed import Ranks
from trainers.methods.method import Method
from trainers.problem import Problem

__all__ = ["build_methods"]


def build_methods(task: TrainTask, problem: Problem, ranks: Ranks) -> tuple[Method, ...]:
    """Return the methods of a task, in the order in which their hooks are called."""
    return ()
