"""The benchmark of trial starts measures what it says: the trials are trained, proposed and counted as told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

from automl.executors.inline import InlineExecutor
from benchmarks import trial_startup
from benchmarks.startup.ours import Proposals, equal_tasks, run_trials
from benchmarks.startup.parts import Fits, Many, Sizes, Trivial, Warm, _trivial
from benchmarks.startup.ray_tools import SEED, SPACE
from benchmarks.startup.trainings import InstantTrainer, TimedTrainer, toy_data, train_toy
from benchmarks.trial_startup import Figures, goals, main

ROOT = Path(__file__).parents[2]
EPOCHS = 3


def figures(*, gap_ms: float, to_first_step_s: float, ours_ms: float, reused_ms: float, growth: float) -> Figures:
    return Figures(
        a=Warm(
            trials=9, gap_ms=gap_ms, gap_p90_ms=gap_ms, trial_ms=20.0, reach_ms=1.0, build_ms=1.0, train_ms=17.0,
            return_ms=1.0, ask_ms=1.0,
        ),
        b=Fits(fits=3, to_first_step_s=to_first_step_s, to_return_s=4.0, total_s=20.0),
        c=[
            Trivial(side="ours", trials=200, trial_ms=ours_ms, trial_with_start_ms=20.0),
            Trivial(side="reuse_actors", trials=200, trial_ms=reused_ms, trial_with_start_ms=50.0),
        ],
        d=Many(trials=2000, first_hundred_ms=3.0, last_hundred_ms=3.0 * growth, growth=growth, memory_mb=99.0),
    )  # fmt: skip


def test_goals_at_their_limits_are_met() -> None:
    met = goals(figures(gap_ms=25.0, to_first_step_s=12.5, ours_ms=10.0, reused_ms=50.0, growth=1.3))
    assert len(met) == 6
    assert all(met.values())


def test_goals_beyond_their_limits_are_missed() -> None:
    met = goals(figures(gap_ms=25.1, to_first_step_s=12.5, ours_ms=10.1, reused_ms=50.0, growth=1.31))
    assert [goal for goal, is_met in met.items() if is_met] == ["(d) memory grows by less than 100 MB"]


def test_goals_of_parts_that_were_left_out_are_not_judged() -> None:
    whole = figures(gap_ms=25.0, to_first_step_s=12.5, ours_ms=10.0, reused_ms=50.0, growth=1.3)
    assert list(goals(Figures(a=whole.a))) == ["(a) at most 25 ms"]
    assert goals(Figures(b=whole.b)) == {}


def test_trivial_trials_are_measured_without_the_start_of_either_series() -> None:
    slow_start = [0, 10_000_000_000, *(10_000_000_000 + 2_000_000 * trial for trial in range(1, 10))]
    steady = [1_000_000 * moment for moment in range(11)]
    row = _trivial("ours", slow_start, steady)
    assert (row.trials, row.trial_ms, row.trial_with_start_ms) == (20, 1.5, 501.4)


def test_unknown_part_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "a,z"])
    assert "no part 'z'; there are a, b, c, d" in capsys.readouterr().err


def test_sizes_stay_large_enough_to_be_measured() -> None:
    assert Sizes().scaled(1.0) == Sizes()
    smallest = Sizes().scaled(0.0)
    assert (smallest.rounds, smallest.warm, smallest.unreused) == (1, 3, 3)


def test_training_measures_its_moments_in_order_and_learns() -> None:
    losses: list[float] = []

    def go_on(epoch: int, loss: float) -> bool:
        losses.append(loss)
        return epoch < 9

    moments = train_toy(toy_data(), None, 20, go_on)
    assert moments["entered_ns"] < moments["first_step_ns"] < moments["trained_ns"]
    assert 0 < moments["asking_ns"] < moments["trained_ns"] - moments["first_step_ns"]
    assert len(losses) == 9
    assert losses[-1] < losses[0]


def test_runs_follow_one_another_and_hold_their_moments() -> None:
    with InlineExecutor(TimedTrainer(), toy_data()) as executor:
        runs = run_trials(executor, equal_tasks(4, EPOCHS), at_once=1)
    assert len(runs) == 4
    for before, run in zip([None, *runs], runs, strict=False):
        facts: Any = run.result.facts
        moments = (run.submitted_ns, facts["entered_ns"], facts["first_step_ns"], facts["trained_ns"], run.ended_ns)
        assert list(moments) == sorted(moments)
        assert before is None or before.ended_ns <= run.submitted_ns


def test_proposals_are_those_of_the_random_sampler_and_each_is_told() -> None:
    proposals = Proposals(EPOCHS)
    with InlineExecutor(InstantTrainer(), toy_data()) as executor:
        run_trials(executor, proposals.tasks(5), 1, proposals.observe)
    told = proposals._study.trials
    plain = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=SEED))
    assert [trial.params for trial in told] == [plain.ask(SPACE).params for _ in range(5)]
    for trial in told:
        assert trial.state is optuna.trial.TrialState.COMPLETE
        assert list(trial.intermediate_values) == [1, 2, 3]
        assert trial.value == pytest.approx((trial.params["x"] - 0.3) ** 2 + 1 / 3)


def test_failed_trial_ends_the_benchmark() -> None:
    with (
        InlineExecutor(TimedTrainer(), "no data") as executor,
        pytest.raises(RuntimeError, match="a trial of the benchmark failed: user_error on rank 0"),
    ):
        run_trials(executor, equal_tasks(1, EPOCHS), at_once=1)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_all_parts_run_small_and_their_figures_are_there() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", trial_startup.__name__, "--json", "--scale", "0"],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=380,
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stderr  # small sizes measure too little for the goals
    last = json.loads(ended.stdout.splitlines()[-1])
    assert last["figures"].keys() == {"a", "b", "c", "d"}
    assert len(last["goals_met"]) == 6
    assert [row["trials"] for row in last["figures"]["c"]] == [12, 12, 12, 3]
    assert (last["figures"]["a"]["trials"], last["figures"]["b"]["fits"], last["figures"]["d"]["trials"]) == (3, 1, 20)
    assert 10 * last["figures"]["a"]["gap_ms"] < 1000 * last["figures"]["b"]["to_first_step_s"]
