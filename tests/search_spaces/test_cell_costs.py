import os
from pathlib import Path

import numpy as np
import pytest

from search_spaces.catalog import nas_bench_201
from search_spaces.cell_costs import cell_network_costs
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.genotype import EDGES, OPERATIONS, CellGenotype
from search_spaces.networks import CellNetwork
from search_spaces.shapes import ImageShape
from tests.search_spaces.cells import cell, uniform_cell


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 1, 1), (2, 5, 3), (1, 2, 128), (3, 97, 64)], ids=str)
def test_costs_are_those_of_the_network(shape: ImageShape) -> None:
    for genotype in (
        uniform_cell("conv3x3"),
        cell(e01="conv3x3", e02="conv1x1", e23="skip", e13="none", e03="avg_pool"),
    ):
        costs = cell_network_costs(genotype, shape, 7, channels=4, cells_per_stage=2)
        model = CellNetwork(genotype, shape, 7, channels=4, cells_per_stage=2)
        assert costs.parameters == count_parameters(model)
        assert costs.multiply_adds == count_multiply_adds(model, shape)


def test_dead_edges_are_declared_only() -> None:
    dead = cell(e01="conv3x3", e03="conv1x1")
    costs = cell_network_costs(dead, (1, 8, 8), 10, channels=4, cells_per_stage=1)
    alive = cell_network_costs(dead.pruned(), (1, 8, 8), 10, channels=4, cells_per_stage=1)
    assert costs.parameters == alive.parameters == alive.declared_parameters
    assert costs.multiply_adds == alive.multiply_adds
    # a 3x3 convolution with normalisation at 4 channels on 8x8, and at 8 channels on 4x4
    assert costs.declared_parameters - costs.parameters == (144 + 8) + (576 + 16)
    assert costs.declared_multiply_adds - costs.multiply_adds == 144 * 64 + 576 * 16


def test_best_cell_of_the_benchmark_costs_what_was_published() -> None:
    defaults = nas_bench_201.SPACE.defaults
    assert defaults is not None
    costs = nas_bench_201.costs(defaults)
    assert costs.declared_parameters == costs.parameters == 1_073_466
    assert costs.declared_multiply_adds + 10 == 153_272_970


@pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA names no folder of data sets")
def test_declared_costs_are_those_of_the_table() -> None:
    with np.load(Path(os.environ["AUTOML_BENCH_DATA"]) / "nb201.npz") as table:
        rows = table["ops"]
        weights = {
            (32, 10): 1e6 * table["params_M_c10"].astype(float),
            (32, 100): 1e6 * table["params_M_c100"].astype(float),
            (16, 120): 1e6 * table["params_M_in16"].astype(float),
        }
        multiply_adds = 1e6 * table["flops_M"].astype(float)
    sample = np.random.default_rng(0).choice(len(rows), size=300, replace=False)
    different = 0
    for row in sample:
        genotype = CellGenotype({edge: OPERATIONS[digit] for edge, digit in zip(EDGES, rows[row], strict=True)})
        values = genotype.to_configuration()
        costs = {(side, classes): nas_bench_201.costs(values, (3, side, side), classes) for side, classes in weights}
        assert costs[32, 10].declared_multiply_adds + 10 == pytest.approx(multiply_adds[row], abs=10)  # float32
        equal = [abs(costs[key].declared_parameters - column[row]) < 1 for key, column in weights.items()]
        assert len(set(equal)) == 1
        different += not equal[0]
    # 204 of the 15,625 rows are means of three numbers, of which one or two are another cell's.
    assert different <= 12


def test_live_costs_are_smaller_exactly_where_a_dead_edge_has_weights() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        genotype = CellGenotype({edge: str(rng.choice(OPERATIONS)) for edge in EDGES})
        costs = cell_network_costs(genotype, (3, 32, 32), 10, channels=16, cells_per_stage=5)
        assert costs.parameters <= costs.declared_parameters
        assert costs.multiply_adds <= costs.declared_multiply_adds
        assert (costs.parameters == costs.declared_parameters) == (
            not {genotype.operations[edge] for edge in EDGES if edge not in genotype.live_edges()}
            & {"conv1x1", "conv3x3"}
        )
