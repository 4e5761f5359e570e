"""Which trials are tried again because they are not to blame, and when it is enough; pure questions.

A process or machine that is lost counts in `Trial.losses`. A process that the system has ended for want of memory is
counted in a fact about the trial: it can be helped by nothing but luck, and so is tried again once.
"""

from collections.abc import Mapping

from automl.memory import MEMORY_KILLS, MOST_KILLS, kept_number
from automl.worker import Failure
from studies.trial import Trial
from trainers.errors import FailureCause

__all__ = ["facts_to_keep", "is_tried_again", "reason_to_give_up"]


def is_tried_again(trial: Trial, failure: Failure, max_retries: int) -> bool:
    """Whether a trial rests after a failure instead of ending.

    Args:
        trial: as it stands, without this failure.
        failure: why its training ended.
        max_retries: how often a trial is started again after its process or machine was lost.
    """
    if failure.cause == "lost":
        return trial.losses < max_retries
    return failure.is_memory_kill and kept_number(trial, MEMORY_KILLS, 0) < MOST_KILLS


def facts_to_keep(trial: Trial, failure: Failure) -> Mapping[str, object]:
    """What is stored on a trial that rests after a failure, for whoever goes on with it."""
    return {MEMORY_KILLS: kept_number(trial, MEMORY_KILLS, 0) + 1} if failure.is_memory_kill else {}


def reason_to_give_up(trial: Trial, max_retries: int) -> tuple[FailureCause, str] | None:
    """Why a trial that rests is not tried again, as a cause and in words; None: it is.

    Args:
        trial: as it stands when it is taken over; the loss that came to light by that is counted.
        max_retries: how often a trial is started again after its process or machine was lost.
    """
    if trial.losses > max_retries:
        return "lost", f"its process or machine was lost {trial.losses} times (--max-retries {max_retries})"
    if (kills := kept_number(trial, MEMORY_KILLS, 0)) > MOST_KILLS:
        return "oom", f"its process was ended {kills} times because the machine's memory was full"
    return None
