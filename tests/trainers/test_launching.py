import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

from tests.helpers.commands import until
from trainers import launching
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


def _tell_threads(ranks: Ranks, reporter: Reporter) -> TrialResult:
    return TrialResult(
        outcome="completed", epoch=1, facts={"threads": list(ranks.gather_objects(torch.get_num_threads()))}
    )


def _kill_the_second(ranks: Ranks, reporter: Reporter) -> TrialResult:
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ranks.gather_objects(0)
    raise AssertionError("unreachable")


def _fail_beside_one_that_hangs(pid_file: Path, ranks: Ranks, reporter: Reporter) -> TrialResult:
    """Rank 0 starts a process and never comes back; rank 1 fails."""
    if ranks.rank == 1:
        until(pid_file.exists, 60.0, "the process of rank 0")
        raise NonFiniteLossError("loss is nan at step 3")
    program = subprocess.Popen(["sleep", "600"])
    pid_file.with_suffix(".new").write_text(str(program.pid))
    pid_file.with_suffix(".new").rename(pid_file)
    while True:
        time.sleep(600.0)


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


@pytest.mark.slow
def test_rank_that_is_killed_is_named_with_the_signal() -> None:
    with pytest.raises(RankDiedError, match="rank 1 was ended by SIGKILL: from outside, or because"):
        run_on_ranks(_kill_the_second, 2, _goes_on, device="cpu")


def test_rank_that_hangs_while_another_has_failed_is_ended_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "PEERS_GRACE_S", 0.5)
    pid_file = tmp_path / "pid"
    before = _rank_processes()
    with pytest.raises(NonFiniteLossError):
        run_on_ranks(partial(_fail_beside_one_that_hangs, pid_file), 2, _goes_on, device="cpu")
    assert _rank_processes() == before
    pid = int(pid_file.read_text())
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", 10.0, "the end of `sleep`")


@pytest.mark.slow
def test_ranks_share_the_threads_of_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert run_on_ranks(_tell_threads, 2, _goes_on, device="cpu").facts == {"threads": [3, 3]}
