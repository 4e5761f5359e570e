"""The benchmark of zero-cost scores reads the table and the images as it says, and correlates ranks."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.zero_cost import Figures, Row, built, goals, measure, read_images, spearman
from search_spaces.cost import count_parameters

needs_data = pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA is not set")


def figures(synflow: float, naswot: float, cpu_minutes: float) -> Figures:
    rows = [
        Row(score=name, all_cells=value, cells_with_path=0.0, published=None, network_ms=1.0)
        for name, value in (("synflow", synflow), ("naswot", naswot))
    ]
    return Figures(rows=rows, cells=500, cells_with_path=480, batch=32, cpu_minutes=cpu_minutes)


def test_goals_at_their_limits_are_met_and_beyond_them_missed() -> None:
    assert list(goals(figures(0.7, 0.7, 15.0)).values()) == [True, True, True]
    assert list(goals(figures(0.69, 0.69, 15.1)).values()) == [False, False, False]


def test_correlation_is_that_of_ranks() -> None:
    truth = np.array([10.0, 20.0, 30.0, 40.0], dtype=np.float32)
    assert spearman(np.array([-math.inf, 1.0, 1e9, 1e90]), truth) == pytest.approx(1.0)
    assert spearman(np.array([4.0, 3.0, 2.0, -math.inf]), truth) == pytest.approx(-1.0)
    assert spearman(np.array([1.0, 1.0, 2.0, 2.0]), truth) == pytest.approx(2 / math.sqrt(5))


@needs_data
def test_networks_are_those_of_the_table() -> None:
    folder = Path(os.environ["AUTOML_BENCH_DATA"])
    with np.load(folder / "nb201.npz") as tables:
        operations, millions = tables["ops"], tables["params_M_c10"]
    best = int(np.dot([3, 3, 3, 1, 2, 3], 5 ** np.arange(5, -1, -1)))  # no dead edge: ours has all weights of the table
    network = built(operations[best], seed=0)
    assert network is not None
    assert count_parameters(network) == pytest.approx(1e6 * millions[best], abs=0.5)
    assert built(operations[0], seed=0) is None


@needs_data
def test_images_are_normalised_and_of_all_kinds() -> None:
    file = Path(os.environ["AUTOML_BENCH_DATA"]) / "cifar10_12k_jpeg.npz"
    images_NCHW, classes_N = read_images(file, 40, np.random.default_rng(0))
    assert images_NCHW.shape == (40, 3, 32, 32)
    assert images_NCHW.mean(dim=(0, 2, 3)).abs().max() < 1e-4
    assert len(set(classes_N.tolist())) > 5


@needs_data
def test_a_few_cells_are_scored_whole() -> None:
    found = measure(Path(os.environ["AUTOML_BENCH_DATA"]), ["parameters", "synflow"], cells=4, batch=2, seed=0)
    assert (found.cells, found.batch) == (4, 2)
    assert 1 <= found.cells_with_path <= 4
    assert {row.score for row in found.rows} == {"parameters", "synflow"}
    assert all(-1.0 <= row.all_cells <= 1.0 for row in found.rows)
