"""The Sobol sequence: even, repeatable, and valid where parameters depend on each other."""

import numpy as np
import pytest

from automl.randomness import suggestion_generator
from automl.samplers.qmc import QmcSampler
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from tests.helpers.trials import make_trial

SPACE = SearchSpace(
    "plain",
    {
        "x": Float(low=0.0, high=1.0),
        "rate": Float(low=1e-4, high=1.0, log=True),
        "layers": Integer(low=1, high=4),
        "operation": Categorical(choices=("conv", "pool")),
    },
)


def sequence(count: int, seed: int = 0, space: SearchSpace = SPACE) -> list[Configuration]:
    sampler = QmcSampler("minimize")
    found: list[Configuration] = []
    for number in range(count):
        trials = [make_trial(place, each, value=0.0) for place, each in enumerate(found)]
        found.append(sampler.suggest(space, trials, suggestion_generator(seed, number)))
    return found


def test_points_are_spread_evenly() -> None:
    points = sequence(32)
    assert sorted(int(8 * float(str(point["x"]))) for point in points) == sorted([*range(8)] * 4)
    assert sorted(int(8 + 2 * np.log10(float(str(point["rate"])))) for point in points) == sorted([*range(8)] * 4)
    assert [sum(point["layers"] == layers for point in points) for layers in (1, 2, 3, 4)] == [8] * 4
    cells = [(point["layers"], point["operation"]) for point in points]
    assert {cells.count(cell) for cell in cells} == {4}  # also in two dimensions


def test_each_study_has_its_own_sequence() -> None:
    assert sequence(4) == sequence(4)
    assert sequence(4) != sequence(4, seed=1)


def test_what_depends_on_others_is_within_its_bounds() -> None:
    space = SearchSpace(
        "sum",
        {"a": Integer(low=0, high=100), "b": Integer(low=0, high=100, at_most="100 - a")},
    )
    points = sequence(64, space=space)
    assert all(space.validate(point) == point for point in points)
    assert len({point["b"] for point in points}) > 32  # not moved to an end


@pytest.mark.parametrize(
    "parameter",
    [
        Integer(low=1, high=5),
        Integer(low=1, high=1000, log=True),
        Integer(low=0, high=9, step=3),
        Float(low=0.0, high=1.0, step=0.25),
        Categorical(choices=("a", None, 3)),
    ],
)
def test_quantiles_are_as_frequent_as_draws(parameter: Integer | Float | Categorical) -> None:
    shares = (np.arange(3000) + 0.5) / 3000
    even = [parameter.quantile(float(share)) for share in shares]
    rng = np.random.default_rng(0)
    drawn = [parameter.sample(rng) for _ in range(3000)]
    for value in list(dict.fromkeys(drawn))[:5]:
        assert even.count(value) == pytest.approx(drawn.count(value), abs=4 * np.sqrt(drawn.count(value)) + 3)
    assert parameter.problem(parameter.quantile(0.0)) is None
    assert parameter.problem(parameter.quantile(np.nextafter(1.0, 0.0))) is None
