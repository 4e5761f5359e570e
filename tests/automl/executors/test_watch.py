"""When a trial counts as standing still or too long, and which rank is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from automl.executors.ray.watch import Limits, Pulse, Watch
from automl.memory_kills import MemoryKills

HERE = Pulse(
    place=1,
    stack='  File "train.py", line 3, in fit\n    wait()\n',
    waits_for_peers=False,
    cpu_s=0.0,
    thread_cpu_s=0.0,
    memory_kills=MemoryKills(Path("/proc/vmstat"), 0),
)
THERE = replace(HERE, place=2)
AMONG_PEERS = replace(HERE, waits_for_peers=True, stack="")


def watch(ranks: int = 1, *, trial_s: float | None = None, stall_s: float | None = 10.0) -> Watch:
    made = Watch(limits=Limits(trial_s=trial_s, stall_s=stall_s), ranks=ranks, made_at=0.0)
    made.begin(0.0)
    return made


def reason_at(watched: Watch, now: float) -> str:
    verdict = watched.verdict(now)
    return "" if verdict is None else verdict.reason


def test_trial_that_stands_still_is_ended_and_its_place_named() -> None:
    watched = watch()
    for second in range(0, 12, 2):
        watched.note(0, HERE, float(second))
    assert watched.verdict(10.0) is None
    verdict = watched.verdict(10.1)
    assert verdict is not None
    assert verdict.reason == (
        'the trial has stood still for 10 s (--stall-timeout); rank 0 is at File "train.py", line 3, in fit'
    )
    assert verdict.stack == HERE.stack


def test_another_place_is_a_movement() -> None:
    watched = watch()
    watched.note(0, HERE, 0.0)
    watched.note(0, THERE, 8.0)
    assert reason_at(watched, 17.9) == ""
    assert "stood still" in reason_at(watched, 18.1)


@pytest.mark.parametrize("cpu_share, thread_share, moves", [(0.5, 0.0, True), (0.02, 0.02, True), (0.02, 0.0, False)])
def test_computing_in_one_place_is_a_movement(cpu_share: float, thread_share: float, moves: bool) -> None:
    watched = watch()
    for second in range(0, 31, 2):
        pulse = replace(HERE, cpu_s=second * cpu_share, thread_cpu_s=second * thread_share)
        watched.note(0, pulse, float(second))
    assert (watched.verdict(31.0) is None) == moves


def test_setting_up_may_take_longer() -> None:
    watched = Watch(limits=Limits(stall_s=10.0), ranks=1, made_at=0.0)
    assert watched.verdict(250.0) is None
    assert "stood still" in reason_at(watched, 301.0)


def test_one_rank_that_moves_is_enough() -> None:
    watched = watch(2)
    for second in range(0, 31, 2):
        watched.note(0, replace(HERE, place=second), float(second))
        watched.note(1, AMONG_PEERS, float(second))
    assert watched.verdict(31.0) is None


@pytest.mark.parametrize("culprit", [0, 1])
def test_rank_that_waits_for_no_peer_is_named(culprit: int) -> None:
    watched = watch(2)
    for second in range(0, 12, 2):
        watched.note(culprit, HERE, float(second))
        watched.note(1 - culprit, AMONG_PEERS, float(second))
    verdict = watched.verdict(11.0)
    assert verdict is not None
    assert verdict.rank == culprit


def test_rank_that_answers_no_more_is_named() -> None:
    watched = watch(2)
    watched.note(0, HERE, 0.0)
    for second in range(0, 12, 2):
        watched.note(1, HERE, float(second))
    verdict = watched.verdict(11.0)
    assert verdict is not None
    assert (verdict.rank, verdict.stack) == (0, "")
    assert verdict.reason.endswith("rank 0 does not answer")


def test_single_rank_that_answers_no_more_is_named() -> None:
    watched = watch()
    watched.note(0, HERE, 0.0)
    verdict = watched.verdict(11.0)
    assert verdict is not None
    assert verdict.reason.endswith("rank 0 does not answer")


def test_rank_is_not_silent_because_the_driver_did_not_listen() -> None:
    watched = watch()
    watched.note(0, HERE, 0.0)
    watched.excuse(20.0)
    watched.note(0, HERE, 25.0)
    assert reason_at(watched, 30.1).endswith("in fit")


def test_waiting_for_the_decision_is_no_time_of_the_trial() -> None:
    watched = watch(trial_s=10.0, stall_s=None)
    watched.report(5.0)
    assert watched.verdict(500.0) is None
    watched.decide(500.0)
    assert watched.verdict(504.9) is None
    assert "longer than 10 s (--trial-timeout)" in reason_at(watched, 505.1)


def test_waiting_for_the_decision_is_no_standstill() -> None:
    watched = watch()
    watched.note(0, HERE, 0.0)
    watched.report(0.0)
    assert watched.verdict(500.0) is None
    watched.decide(500.0)
    assert watched.verdict(509.0) is None
    assert "stood still" in reason_at(watched, 511.0)


def test_time_of_a_trial_is_counted_from_its_begin_and_without_the_drivers_absence() -> None:
    watched = Watch(limits=Limits(trial_s=10.0), ranks=1, made_at=0.0)
    assert watched.verdict(100.0) is None  # nothing has begun
    watched.begin(100.0)
    assert watched.verdict(109.9) is None
    watched.excuse(50.0)
    assert watched.verdict(159.9) is None
    assert "longer than 10 s (--trial-timeout)" in reason_at(watched, 160.1)


def test_waiting_for_a_place_is_no_standstill() -> None:
    watched = Watch(limits=Limits(stall_s=10.0), ranks=1, made_at=0.0)
    watched.place(500.0)
    assert watched.verdict(799.0) is None
    assert "stood still" in reason_at(watched, 801.0)


def test_without_limits_nothing_is_ended() -> None:
    watched = watch(stall_s=None)
    watched.note(0, HERE, 0.0)
    assert watched.verdict(1e9) is None
