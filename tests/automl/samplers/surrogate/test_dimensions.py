"""Configurations as rows: there and back, drawn and changed in bulk, with conditions and bounds kept."""

import numpy as np
import pytest

from automl.samplers.surrogate.dimensions import Dimensions
from automl.samplers.surrogate.embedding import Embedding
from search_spaces import catalog
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from tests.contracts.sampler_contract import DEPENDENT_SPACE, MIXED_SPACE

KINDS = SearchSpace(
    "kinds",
    {
        "choice": Categorical(choices=("a", "b", "c")),
        "ordered": Categorical(choices=(16, 32, 64), ordered=True),
        "coarse": Integer(low=1, high=5),
        "fine": Integer(low=1, high=10**6, log=True),
        "stepped": Float(low=0.0, high=0.9, step=0.1),
        "real": Float(low=1e-5, high=1e-1, log=True),
        "constant": 3,
    },
)
SPACES = [KINDS, MIXED_SPACE, DEPENDENT_SPACE, *(catalog.load(name).SPACE for name in catalog.available())]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_row_and_configuration_are_one(space: SearchSpace) -> None:
    dimensions, rng = Dimensions(space), np.random.default_rng(0)
    for _ in range(20):
        configuration = space.sample(rng)
        row = dimensions.row(configuration)
        again = space.complete(dimensions.part(row), rng)
        for name, value in configuration.items():
            if isinstance(value, float):
                assert again[name] == pytest.approx(value, rel=1e-9)
            else:
                assert again[name] == value
        np.testing.assert_allclose(dimensions.row(again), row, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_rows_that_were_drawn_or_changed_are_valid(space: SearchSpace) -> None:
    dimensions, rng = Dimensions(space), np.random.default_rng(1)
    drawn = dimensions.drawn(30, rng)
    mutated = dimensions.mutated(drawn, rng.integers(1, 4, size=30), np.full(30, 0.3), rng)
    neighbours = dimensions.neighbours(drawn[0], rng, most=5)
    for row in np.concatenate([drawn, mutated, neighbours[:30]]):
        part = dimensions.part(row)
        configuration = space.complete(part, rng)
        assert part.keys() <= configuration.keys()
        for name, value in part.items():  # nothing had to be mended
            assert configuration[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_mutation_changes_as_many_numbers_as_it_should() -> None:
    dimensions, rng = Dimensions(KINDS), np.random.default_rng(2)
    rows = dimensions.drawn(200, rng)
    changed = dimensions.mutated(rows, np.full(200, 2), np.full(200, 0.2), rng) != rows
    assert set(changed.sum(axis=1)) == {2}


def test_neighbours_are_every_other_choice_and_the_next_values() -> None:
    dimensions = Dimensions(KINDS)
    row = dimensions.row({"choice": "a", "ordered": 16, "coarse": 3, "fine": 9, "stepped": 0.9, "real": 1e-3})
    found = [dimensions.part(near) for near in dimensions.neighbours(row, np.random.default_rng(0), most=20)]
    changes = [(name, part[name]) for part in found for name in part if part[name] != dimensions.part(row)[name]]
    assert changes == [
        ("choice", "b"), ("choice", "c"), ("ordered", 32), ("coarse", 2), ("coarse", 4), ("stepped", 0.8)
    ]  # fmt: skip


def test_equal_choices_of_a_cell_have_a_share_each() -> None:
    space = SearchSpace("cell", {f"edge_{at}": Categorical(choices=("none", "skip", "conv")) for at in range(4)})
    dimensions = Dimensions(space)
    assert dimensions.cells == [[0, 1, 2, 3]]
    points = Embedding(dimensions).points(np.array([[0.0, 1.0, 1.0, 2.0]]))
    assert points[0, -3:].tolist() == [0.25, 0.5, 0.25]


def test_distances_are_one_between_choices_and_squared_between_numbers() -> None:
    space = SearchSpace(
        "two",
        {
            "operation": Categorical(choices=("conv", "pool")),
            "width": Float(low=0.0, high=1.0, when={"operation": "conv"}),
        },
    )
    dimensions = Dimensions(space)
    embedding = Embedding(dimensions)
    rows = np.array([[0.0, 0.25], [0.0, 0.75], [1.0, np.nan], [1.0, np.nan]])
    distances = embedding.distances(embedding.points(rows))
    np.testing.assert_allclose(distances[0], [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
    assert distances[1, 0, 1] == pytest.approx(0.25)
    assert distances[1, 2, 3] == 0.0
    assert 0.16 < distances[1, 0, 2] < 0.42
