"""Which method suits which space, and that it is said."""

import numpy as np
import pytest

from automl.registry import sampler_class
from automl.samplers.auto import AutoSampler
from search_spaces.parameters import Categorical, Float, Parameter
from search_spaces.space import SearchSpace
from tests.helpers.trials import make_trial


def space(count: int, parameter: Parameter) -> SearchSpace:
    return SearchSpace("many", {f"p{i}": parameter for i in range(count)})


NUMBER = Float(low=0.0, high=1.0)
OPERATION = Categorical(choices=("conv", "pool"), role="architecture")


@pytest.mark.parametrize(
    ("count", "parameter", "method", "reason"),
    [
        (1, NUMBER, "surrogate_evolution", "one parameter is few enough"),
        (50, OPERATION, "surrogate_evolution", "50 parameters are few enough"),
        (51, NUMBER, "tpe", "51 parameters are too many for a model"),
        (51, OPERATION, "evolution", "51 parameters are too many for a model, and networks evolve"),
    ],
)
def test_choice_is_that_methods_proposals_and_is_told(
    count: int, parameter: Parameter, method: str, reason: str
) -> None:
    searched = space(count, parameter)
    rng = np.random.default_rng(0)
    trials = [make_trial(number, searched.sample(rng), value=float(number)) for number in range(24)]
    auto, own = AutoSampler("minimize"), sampler_class(method)("minimize")
    proposed = auto.suggest(searched, trials, np.random.default_rng(5))
    assert proposed == own.suggest(searched, trials, np.random.default_rng(5))
    assert auto.parents(searched, trials) == own.parents(searched, trials)
    assert auto.parent(searched, proposed, trials) == own.parent(searched, proposed, trials)
    first, *others = auto.notes(searched, 10)
    assert first.startswith(f"configurations are proposed by {method}, since {reason}")
    assert others == list(own.notes(searched, 10))
