"""The statistics against known values, and the suites on what needs no tables, or where the tables are."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import search_quality
from benchmarks.quality import tables
from benchmarks.quality.frozen import frozen_peers
from benchmarks.quality.methods import PEERS, course_of
from benchmarks.quality.package_tables import _places
from benchmarks.quality.statistics import holm, paired_interval, suite_score
from search_spaces.configuration import Configuration

HAS_TABLES = pytest.mark.skipif(not os.environ.get("AUTOML_BENCH_DATA"), reason="AUTOML_BENCH_DATA is not set")


def test_holm_corrects_for_the_number_of_tests() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


def test_pairs_are_those_of_both_seeds() -> None:
    found = paired_interval({0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 7: 99.0})
    assert (found.mean, found.low, found.high) == (-1.0, -1.0, -1.0)
    assert found.excludes_zero


def test_score_is_the_mean_share_of_random_searchs_regret() -> None:
    assert suite_score({"a": 1.0, "b": 0.0}, {"a": 2.0, "b": 5.0}) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "method", ["random", "evolution:population_size=4", "surrogate_evolution+none", *sorted(PEERS)]
)
def test_every_method_runs_and_repeats_itself(method: str) -> None:
    problem = tables.branches(0)
    first, again = (course_of(problem, method, 3, trials=8) for _ in range(2))
    assert first.steps == again.steps
    regrets = [first.at_ended(count) for count in range(1, 9)]
    assert np.isfinite(regrets).all()
    assert len(first.steps) == 8


def test_best_on_average_counts_where_the_best_are_trained_again() -> None:
    problem = tables.branches(1)
    course = course_of(problem, "surrogate_evolution:repeat_from=12:repeat_best=2", 0, trials=16)
    assert len(course.steps) == 16
    assert len({step.regret for step in course.steps[12:]}) <= 3


def test_branches_have_their_best_values() -> None:
    problem = tables.branches(0)
    rng = np.random.default_rng(0)
    values = {branch: [] for branch in ("first", "second", "third")}  # type: ignore[var-annotated]
    for _ in range(3000):
        configuration = problem.space.sample(rng)
        values[str(configuration["branch"])].append(problem.regret(configuration, 0.0))
    assert [min(found) > best for found, best in zip(values.values(), (0.25, 0.1, 0.0), strict=True)] == [True] * 3
    assert min(values["first"]) < 0.27


def test_command_prints_tables_and_goes_on_with_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plots = tmp_path / "runs.jsonl", tmp_path / "plots.html"
    arguments = ["--suite", "branches", "--methods", "random,optuna_tpe", "--seeds", "2", "--processes", "1"]
    for _ in range(2):
        assert search_quality.main([*arguments, "--out", str(out), "--plots", str(plots), "--json"]) == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 2 * 2 * 4  # not run again
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["goals_met"] is True
    assert set(printed["suites"]["branches"]) == {"random", "optuna_tpe"}
    assert plots.read_text().startswith("<!doctype html>")


def test_quoted_peers_have_as_many_values_as_the_suite_has_checkpoints() -> None:
    for suite, found in search_quality.SUITES.items():
        for task in found.problems:
            for peer in frozen_peers(suite, task):
                assert list(peer.checkpoints) == list(found.checkpoints)
                assert len(peer.regrets[task]) == len(found.checkpoints)
                assert peer.peer in peer.line(task)


def test_points_of_a_package_are_in_the_order_of_a_table() -> None:
    assert _places({"a": [1, 2], "b": ["x", "y", "z"]}) == ["00", "01", "02", "10", "11", "12"]


@HAS_TABLES
def test_best_cell_has_no_regret() -> None:
    best = ("conv3x3", "conv3x3", "conv1x1", "skip", "conv3x3", "conv3x3")  # official index 6111, by validation
    problems = [tables.nas_bench_201("c10"), tables.nats("c10"), tables.two_fidelities("c10")]
    regrets = []
    for problem in problems:
        configurations = [problem.space.sample(np.random.default_rng(seed)) for seed in range(50)]
        assert all(problem.regret(each, 0.0) >= 0.0 for each in configurations)
        regrets.append(problem.regret(Configuration(dict(zip(problem.space.parameters, best, strict=True))), 0.0))
    assert regrets[0] == regrets[1] == regrets[2]


@HAS_TABLES
def test_two_fidelities_cost_what_they_cost() -> None:
    problem = tables.two_fidelities("c10")
    measure, configuration = problem.measure(0), problem.space.sample(np.random.default_rng(0))
    short, long = (measure(configuration, 0, epoch) for epoch in (1, 2))
    assert short.seconds == pytest.approx(long.seconds * 12 / 200)
    course = course_of(problem, "random+asha_promote", 0, units=10)
    assert course.steps[-1].spent <= 10 * problem.unit
