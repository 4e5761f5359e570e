import os
import time

import psutil
import pytest

from trainers.distributed import Ranks
from trainers.errors import NonFiniteLossError
from trainers.launching import RankDiedError, run_on_ranks
from trainers.reporting import Decision, Report, Reporter, TrialResult


def _rank_processes() -> set[int]:
    children = psutil.Process().children()
    return {child.pid for child in children if "spawn_main" in " ".join(child.cmdline())}


def _goes_on(report: Report) -> Decision:
    return Decision.CONTINUE


def _count_ranks(ranks: Ranks, reporter: Reporter) -> TrialResult:
    answer = reporter(Report(epoch=1, metrics={"rank": float(ranks.rank)})) if ranks.is_first else None
    decision = ranks.broadcast_decision(answer)
    places = ranks.gather_objects(ranks.rank)
    return TrialResult(outcome="stopped", epoch=1, facts={"places": list(places), "decision": decision.value})


def _fail_on_the_second(ranks: Ranks, reporter: Reporter) -> TrialResult:
    if ranks.rank == 1:
        raise NonFiniteLossError("loss is nan at step 3")
    ranks.gather_objects(0)  # waits for a peer that does not come
    raise AssertionError("unreachable")


def _vanish_on_the_second(ranks: Ranks, reporter: Reporter) -> TrialResult:
    if ranks.rank == 1:
        os._exit(7)
    ranks.gather_objects(0)
    raise AssertionError("unreachable")


def test_every_rank_works_and_rank_0_is_answered_by_this_process() -> None:
    before = _rank_processes()
    reports: list[Report] = []

    def stop(report: Report) -> Decision:
        reports.append(report)
        return Decision.STOP

    result = run_on_ranks(_count_ranks, 2, stop, device="cpu")
    assert result.facts == {"places": [0, 1], "decision": "stop"}
    assert [dict(report.metrics) for report in reports] == [{"rank": 0.0}]
    assert _rank_processes() == before


def test_a_single_rank_works_in_this_process() -> None:
    assert run_on_ranks(lambda ranks, _: TrialResult(outcome="completed", epoch=os.getpid()), 1, _goes_on).epoch == (
        os.getpid()
    )


def test_the_error_of_the_rank_that_failed_first_is_raised_and_no_peer_waits_for_long() -> None:
    began = time.monotonic()
    with pytest.raises(NonFiniteLossError, match="loss is nan at step 3") as caught:
        run_on_ranks(_fail_on_the_second, 2, _goes_on, device="cpu")
    assert "_fail_on_the_second" in "".join(caught.value.__notes__)
    assert time.monotonic() - began < 60.0


def test_a_rank_that_vanishes_is_named_with_its_exit_code() -> None:
    with pytest.raises(RankDiedError, match="rank 1 has ended with exit code 7"):
        run_on_ranks(_vanish_on_the_second, 2, _goes_on, device="cpu")
