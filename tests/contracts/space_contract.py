"""The laws of every search space, whoever wrote it: subclass `SpaceContract` and give it a `module`."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import numpy as np
import optuna
import pytest
import torch

from search_spaces import (
    Configuration,
    InfeasibleArchitectureError,
    InvalidConfigurationError,
    SearchSpace,
    catalog,
)
from search_spaces.catalog import SpaceModule
from search_spaces.cost import count_multiply_adds_of, count_parameters
from search_spaces.example_inputs import example_inputs
from search_spaces.shapes import InputShape, TableShape, TextShape
from search_spaces.versions import changes_between

NUM_CLASSES = 5
DRAWS = 40
MUTATIONS = 1000


class SpaceContract:
    input_shapes: ClassVar[dict[str, InputShape]] = {
        "image_classification": (1, 8, 8),
        "text_classification": TextShape(length=24, vocabulary=50),
        "tabular": TableShape(numbers=3, categories=(4, 7)),
    }

    @pytest.fixture
    def module(self) -> SpaceModule:
        raise NotImplementedError("give the contract the module of a search space")

    @pytest.fixture
    def space(self, module: SpaceModule) -> SearchSpace:
        return module.SPACE

    @pytest.fixture
    def samples(self, space: SearchSpace) -> list[Configuration]:
        rng = np.random.default_rng(7)
        return [space.sample(rng) for _ in range(DRAWS)]

    @pytest.fixture
    def feasible(self, space: SearchSpace, samples: list[Configuration]) -> list[Configuration]:
        kept = [configuration for configuration in samples if space.refusal(configuration) is None]
        assert kept, "no random configuration is feasible; a search would find nothing to train"
        return kept

    def test_sample_same_seed_gives_same_configurations(self, space: SearchSpace, samples: list[Configuration]) -> None:
        rng = np.random.default_rng(7)
        assert [space.sample(rng) for _ in range(DRAWS)] == samples

    def test_sample_is_valid_and_already_normal(self, space: SearchSpace, samples: list[Configuration]) -> None:
        for configuration in samples:
            assert _spelling(space.validate(configuration)) == _spelling(configuration)

    def test_validate_lists_missing_and_unknown_names_together(
        self, space: SearchSpace, samples: list[Configuration]
    ) -> None:
        name, *others = space.parameters
        broken = {other: samples[0][other] for other in others if other in samples[0]} | {f"{name}x": samples[0][name]}
        with pytest.raises(InvalidConfigurationError) as caught:
            space.validate(broken)
        assert f"{name} is missing" in caught.value.problems
        assert any(f"did you mean {name!r}" in problem for problem in caught.value.problems)

    def test_mutate_changes_one_parameter_and_what_depends_on_it(
        self, space: SearchSpace, samples: list[Configuration]
    ) -> None:
        rng = np.random.default_rng(1)
        for parent in samples:
            for _ in range(MUTATIONS // DRAWS):
                child = space.mutate(parent, rng)
                assert _is_one_change(space, parent, child)
                assert space.validate(child) == child
                parent = child

    def test_mutate_named_parameter_changes_it(self, space: SearchSpace, samples: list[Configuration]) -> None:
        rng = np.random.default_rng(2)
        for name, parameter in space.parameters.items():
            if name in samples[0] and parameter.size() != 1:
                child = space.mutate(samples[0], rng, names=[name])
                assert name in _changes(samples[0], child)
                assert _is_one_change(space, samples[0], child)

    def test_crossover_has_values_of_its_parents(self, space: SearchSpace, samples: list[Configuration]) -> None:
        rng = np.random.default_rng(4)
        for first, second in pairwise(samples):
            child = space.crossover(first, second, rng)
            assert space.validate(child) == child
            for name in child:
                inherited = [parent[name] for parent in (first, second) if name in parent]
                assert not inherited or child[name] in inherited or space.is_conditional

    def test_decode_reads_what_encode_has_written(self, space: SearchSpace, samples: list[Configuration]) -> None:
        for configuration in samples:
            assert _spelling(space.decode(space.encode(configuration))) == _spelling(configuration)

    def test_neighbours_differ_in_one_parameter_and_are_distinct(
        self, space: SearchSpace, samples: list[Configuration]
    ) -> None:
        neighbours = list(space.neighbours(samples[0]))
        assert neighbours
        assert len(set(neighbours)) == len(neighbours)
        for neighbour in neighbours:
            assert _is_one_change(space, samples[0], neighbour)
            assert space.validate(neighbour) == neighbour

    def test_canonical_is_idempotent_and_keeps_key_and_refusal(
        self, space: SearchSpace, samples: list[Configuration]
    ) -> None:
        for configuration in samples:
            canonical = space.canonical(configuration)
            assert space.canonical(canonical) == canonical
            assert space.key(canonical) == space.key(configuration)
            assert space.refusal(canonical) == space.refusal(configuration)

    def test_key_differs_where_canonical_forms_differ(self, space: SearchSpace, samples: list[Configuration]) -> None:
        forms = {space.canonical(configuration) for configuration in samples}
        assert len({space.key(configuration) for configuration in samples}) == len(forms)

    def test_configuration_json_round_trip_keeps_key(self, space: SearchSpace, samples: list[Configuration]) -> None:
        for configuration in samples:
            read = json.loads(json.dumps(configuration.as_dict()))
            assert space.key(read) == space.key(configuration)

    def test_space_json_round_trip_keeps_parameters(self, space: SearchSpace) -> None:
        description = json.loads(json.dumps(space.to_json(), allow_nan=False))
        read = SearchSpace.from_json(description)
        assert changes_between(read, space) == ()
        assert read.names() == space.names()
        assert read.defaults == space.defaults

    def test_optuna_suggestions_validate(self, space: SearchSpace) -> None:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
        for _ in range(DRAWS):
            suggested = study.ask(space.distributions()).params
            valid = space.complete(suggested, np.random.default_rng(0))
            for name, value in suggested.items():
                if space.is_conditional and valid.get(name, ...) != value:
                    continue  # it is not there, or was moved into its bounds
                assert valid[name] == (pytest.approx(value) if isinstance(value, float) else value)

    def test_samples_lie_in_optuna_distributions(self, space: SearchSpace, samples: list[Configuration]) -> None:
        distributions = space.distributions()
        for configuration in samples:  # create_trial refuses a value outside its distribution
            own = {name: distributions[name] for name in configuration}
            trial = optuna.trial.create_trial(params=configuration.as_dict(), distributions=own, value=0.0)
            assert trial.params == configuration.as_dict()

    def test_training_parameters_are_fields_of_the_train_config(self, space: SearchSpace) -> None:
        from trainers.config import TrainConfig

        assert set(space.names("training")) <= set(TrainConfig.model_fields)

    def test_training_values_are_accepted_by_the_train_config(
        self, space: SearchSpace, samples: list[Configuration]
    ) -> None:
        from trainers.config import TrainConfig

        for configuration in samples:
            values = {name: configuration[name] for name in space.names("training") if name in configuration}
            assert TrainConfig.model_validate(values).model_dump(include=set(values)) == values

    def test_build_model_every_weight_receives_a_gradient(
        self, module: SpaceModule, feasible: list[Configuration]
    ) -> None:
        for configuration, model in self._models(module, feasible):
            logits_NK = model(*example_inputs(self._shape(module), 4))
            assert logits_NK.shape == (4, NUM_CLASSES)
            assert torch.isfinite(logits_NK).all()
            logits_NK.square().mean().backward()
            idle = [name for name, weight in model.named_parameters() if weight.grad is None]
            assert idle == [], configuration

    def test_build_model_has_weights_and_costs_something(
        self, module: SpaceModule, feasible: list[Configuration]
    ) -> None:
        for _, model in self._models(module, feasible[:5]):
            assert count_parameters(model) > 0
            assert count_multiply_adds_of(model, *example_inputs(self._shape(module), 1)) > 0

    def test_graph_is_drawn_when_the_space_offers_one(self, module: SpaceModule, feasible: list[Configuration]) -> None:
        drawn = catalog.graph(module, feasible[0])
        if hasattr(module, "graph"):
            assert drawn is not None
            assert drawn.nodes
        else:
            assert drawn is None

    def _shape(self, module: SpaceModule) -> InputShape:
        return self.input_shapes[module.SPACE.task]

    def _models(
        self, module: SpaceModule, configurations: list[Configuration]
    ) -> Iterator[tuple[Configuration, torch.nn.Module]]:
        built = 0
        for configuration in configurations:
            try:
                model = module.build_model(configuration, self._shape(module), NUM_CLASSES)
            except InfeasibleArchitectureError:
                continue  # with this shape, of which the space itself knows nothing
            built += 1
            yield configuration, model
        assert built, "nothing that the space allows can be built"


def _is_one_change(space: SearchSpace, before: Configuration, after: Configuration) -> bool:
    """Whether one parameter has changed, and besides it only what depends on it."""
    changed = set(_changes(before, after))
    return any(changed - {name} <= space.dependents(name) for name in changed)


def _changes(before: Configuration, after: Configuration) -> list[str]:
    return [name for name in {**before, **after} if _is_other(before.get(name, ...), after.get(name, ...))]


def _is_other(first: object, second: object) -> bool:
    return type(first) is not type(second) or first != second


def _spelling(configuration: Configuration) -> str:
    return json.dumps(configuration.as_dict(), allow_nan=False)
