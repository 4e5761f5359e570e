"""Settings of samplers and pruners, as they come from a command line, a file, or a study."""

from typing import Any

import pytest

from automl import api
from automl.errors import InvalidSpecError
from automl.plugin_options import make_pruner, make_sampler
from automl.pruners.asha_promote import AshaPromotePruner
from automl.samplers.evolution import EvolutionSampler
from automl.spec import SearchSpec
from studies.storage import Storage
from tests.automl.conftest import Search

TOY: dict[str, Any] = {"space": "tests.helpers.toy", "metric": "loss", "study": "toy"}


def spec(**fields: Any) -> SearchSpec:
    return SearchSpec.from_mapping({**TOY, **fields}, "a test")


def test_text_is_read_as_the_number_that_it_spells() -> None:
    sampler = make_sampler("evolution", "minimize", {"population_size": "20", "architecture_share": "0.25"})
    assert isinstance(sampler, EvolutionSampler)
    assert (sampler.population_size, sampler.tournament_size, sampler.architecture_share) == (20, 10, 0.25)
    pruner = make_pruner("asha_promote", "minimize", 27, {"min_epochs": "none", "eta": 4})
    assert isinstance(pruner, AshaPromotePruner)
    assert (pruner.rungs, pruner.eta) == ((5, 20), 4)


def test_every_mistake_is_named_at_once_and_what_there_is() -> None:
    with pytest.raises(InvalidSpecError) as error:
        spec(sampler="evolution", sampler_option={"population": 3, "tournament_size": "x"}, pruner_option={"eta": 1})
    text = str(error.value)
    assert "evolution has no option 'population'; did you mean 'population_size'?" in text
    assert "options: population_size=20, tournament_size=None" in text
    assert "tournament_size='x' is not allowed: Input should be a valid integer" in text
    assert "eta=1 must be at least 2" in text


@pytest.mark.parametrize("size", [0, 1])
def test_population_of_nobody_or_one_is_refused(size: int) -> None:
    with pytest.raises(InvalidSpecError, match=f"population_size={size} must be at least 2"):
        spec(sampler="evolution", sampler_option={"population_size": size, "tournament_size": 1})


def test_sampler_without_options_says_so() -> None:
    with pytest.raises(InvalidSpecError, match="random has no option 'a'; it has none"):
        spec(sampler="random", sampler_option={"a": 1})


def test_options_are_kept_with_the_study_and_go_with_their_sampler(toy_search: Search, storage: str) -> None:
    toy_search(trials=1, sampler="evolution", sampler_option={"population_size": 6}, pruner_option={})

    def stored() -> Any:
        specification = Storage(storage).open_study("toy").specification
        assert specification is not None
        return specification["sampler"], specification["sampler_option"]

    assert stored() == ("evolution", {"population_size": 6})
    api.resume("toy", storage=storage, trials=2)
    assert stored() == ("evolution", {"population_size": 6})
    api.resume("toy", storage=storage, trials=3, sampler_option={"population_size": 8})
    assert stored() == ("evolution", {"population_size": 8})
    api.resume("toy", storage=storage, trials=4, sampler="random")
    assert stored() == ("random", {})
