"""Which trials are tried again that are not to blame."""

from dataclasses import replace
from typing import Any

import pytest

from automl.retries import facts_to_keep, is_tried_again, reason_to_give_up
from automl.worker import Failure
from studies.trial import Trial
from tests.helpers.trials import make_trial

LOST = Failure(cause="lost", error="ProcessLost", message="its machine is gone")
KILLED = Failure(cause="oom", error="ProcessKilled", message="the machine's memory was full", is_memory_kill=True)
FULL_DEVICE = replace(KILLED, is_memory_kill=False)
RAISED = Failure(cause="user_error", error="ValueError", message="no", traceback="Traceback ...")


def trial(losses: int = 0, **attributes: Any) -> Trial:
    return replace(make_trial(0), losses=losses, attributes=attributes)


@pytest.mark.parametrize(
    ("given", "failure", "expected"),
    [
        (trial(), LOST, True),
        (trial(losses=2), LOST, False),
        (trial(losses=2), KILLED, True),
        (trial(memory_kills=1), KILLED, False),
        (trial(memory_kills=1), LOST, True),
        (trial(), FULL_DEVICE, False),
        (trial(), RAISED, False),
    ],
)
def test_losses_and_kills_are_counted_apart_and_errors_are_final(
    given: Trial, failure: Failure, expected: bool
) -> None:
    assert is_tried_again(given, failure, max_retries=2) is expected


@pytest.mark.parametrize("failure", [LOST, KILLED])
def test_what_is_tried_again_is_not_given_up_when_it_is_taken_over(failure: Failure) -> None:
    tried, tries = trial(), 0
    while is_tried_again(tried, failure, max_retries=3):
        facts = facts_to_keep(tried, failure)
        tried = replace(tried, losses=tried.losses + (failure.cause == "lost"), attributes=facts)
        assert reason_to_give_up(tried, max_retries=3) is None
        tries += 1
    assert tries == (3 if failure is LOST else 1)


def test_reason_to_give_up_has_the_cause_and_the_number() -> None:
    lost = reason_to_give_up(trial(losses=3), max_retries=2)
    killed = reason_to_give_up(trial(memory_kills=2), max_retries=2)
    assert lost == ("lost", "its process or machine was lost 3 times (--max-retries 2)")
    assert killed is not None and killed[0] == "oom" and "2 times" in killed[1]


def test_only_a_kill_leaves_a_fact() -> None:
    assert facts_to_keep(trial(memory_kills=1), KILLED) == {"memory_kills": 2}
    assert facts_to_keep(trial(memory_kills=1), LOST) == {}
