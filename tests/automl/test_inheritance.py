"""Searches whose trials begin with their parents' weights."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from automl import api
from automl.errors import InvalidSpecError
from automl.executors.inline import InlineExecutor
from automl.inheritance import INHERITED_FROM, find_origin, nearest, parent_number
from automl.pruners.none import NoPruner
from automl.samplers.evolution import EvolutionSampler
from automl.scheduler import Scheduler, Start
from automl.session import SearchOutcome
from automl.spec import SearchSpec
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from studies.checkpoints import CheckpointLedger
from studies.study import Study
from studies.trial import Lease, Trial, TrialState
from tests.helpers.trials import make_trial
from trainers.config import TrainTask

POPULATION = 2
SPACE = SearchSpace(
    "cell",
    {
        "a": Categorical(choices=("none", "skip", "conv"), role="architecture"),
        "b": Categorical(choices=("none", "skip", "conv"), role="architecture"),
        "rate": Float(low=0.0, high=1.0),
    },
)


class SmallEvolution(EvolutionSampler):
    """Its first trials are few, so that tests need few."""

    def __init__(self, direction: Any) -> None:
        super().__init__(direction, population_size=POPULATION, tournament_size=POPULATION)


def configuration(a: str, b: str, rate: float) -> Configuration:
    return Configuration({"a": a, "b": b, "rate": rate})


def with_parent(trial: Trial, number: int) -> Trial:
    return dataclasses.replace(trial, attributes={INHERITED_FROM: number})


# Which trial is the parent


def test_nearest_trial_differs_least_in_the_architecture_then_in_the_rest_then_is_the_best() -> None:
    child = configuration("conv", "skip", 0.5)
    trials = [
        make_trial(0, configuration("conv", "conv", 0.5), value=0.9),
        make_trial(1, configuration("conv", "skip", 0.1), value=0.1),
        make_trial(2, configuration("conv", "skip", 0.2), value=0.3),
        make_trial(3, configuration("conv", "skip", 0.3), value=0.3),
    ]
    assert nearest(SPACE, child, trials, "maximize") is trials[2]
    assert nearest(SPACE, child, trials, "minimize") is trials[1]
    assert nearest(SPACE, child, trials[:1], "maximize") is trials[0]
    assert nearest(SPACE, child, [], "maximize") is None


def test_parameter_that_only_one_of_two_trials_has_counts_as_a_difference() -> None:
    trials = [make_trial(0, {"a": "conv", "b": "skip"}, value=1.0), make_trial(1, {"a": "conv"}, value=0.0)]
    assert nearest(SPACE, Configuration({"a": "conv"}), trials, "maximize") is trials[1]


def scheduler(**fields: Any) -> Scheduler:
    sampler = EvolutionSampler("maximize", population_size=4, tournament_size=4)
    return Scheduler(
        space=SPACE, sampler=sampler, pruner=NoPruner("maximize", 3), seed=0, **{"inherits": True, **fields}
    )


def history(count: int) -> list[Trial]:
    rng = np.random.default_rng(0)
    return [make_trial(number, SPACE.sample(rng), value=number / 10) for number in range(count)]


def test_children_have_parents_of_the_population_and_what_is_drawn_has_none() -> None:
    for count in range(4):
        action = scheduler().next_action(history(count), [])
        assert isinstance(action, Start)
        assert action.parent is None
    for count in range(4, 12):
        action, again = (scheduler().next_action(history(count), []) for _ in range(2))
        assert isinstance(action, Start)
        assert action == again
        assert action.parent in range(count - 4, count)
        off = scheduler(inherits=False).next_action(history(count), [])
        assert isinstance(off, Start)
        assert (off.parent, off.configuration) == (None, action.configuration)


def test_weights_are_needed_of_the_population_and_of_parents_whose_children_run() -> None:
    trials = history(8)
    child = make_trial(8, configuration("conv", "conv", 0.1), state=TrialState.RUNNING)
    assert scheduler().weights_needed([*trials, with_parent(child, 1)]) == {1001, 1004, 1005, 1006, 1007}
    ended = make_trial(8, configuration("conv", "conv", 0.1), value=0.2)
    assert scheduler().weights_needed([*trials, with_parent(ended, 1)]) == {1005, 1006, 1007, 1008}
    assert scheduler(inherits=False).weights_needed(trials) == frozenset()


# What is refused


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"space": "nas_small", "sampler": "tpe"}, "what --sampler tpe proposes has no parents; use auto or evolution"),
        ({"space": "tests.helpers.toy", "sampler": "evolution"}, "builds its networks itself"),
        (
            {"space": "nas_small", "sampler": "evolution", "script": "echo 1", "metric": "accuracy"},
            "'script' builds its networks",
        ),
    ],
    ids=["tpe", "toy", "script"],
)
def test_inheritance_without_parents_or_networks_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSpecError, match=f"inherit-weights: .*{sentence}"):
        SearchSpec.from_mapping({**fields, "inherit_weights": True}, "a test")
    SearchSpec.from_mapping({**fields, "inherit_weights": False}, "a test")


# Whole searches


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[TrainTask]:
    """What the executor was given."""
    given: list[TrainTask] = []
    submit = InlineExecutor.submit

    def watched(self: InlineExecutor, task: Any) -> Any:
        if isinstance(task, TrainTask):
            given.append(task)
        return submit(self, task)

    monkeypatch.setattr(InlineExecutor, "submit", watched)
    return given


def search(tmp_path: Path, **fields: Any) -> SearchOutcome:
    return api.search(
        **{
            "space": "tests.trainers.tiny_space",
            "trainer": "image_classification",
            "study": "tiny",
            "storage": f"sqlite:///{tmp_path}/studies.db",
            "sampler": f"{__name__}:SmallEvolution",
            "inherit_weights": True,
            "pruner": "none",
            "epochs": 1,
            "executor": "inline",
            "max_failures": 100,
            **fields,
        }
    )


def checkpoints(tmp_path: Path) -> set[int]:
    """The numbers of the trials that have left a checkpoint."""
    return {int(path.parts[-3].removeprefix("trial-")) for path in tmp_path.rglob("epoch-*.pt")}


def test_search_in_pieces_gives_children_the_same_weights_and_keeps_those_of_the_population(
    tmp_path: Path, tasks: list[TrainTask]
) -> None:
    search(tmp_path, trials=4)
    outcome = search(tmp_path, trials=6)
    trials, given = outcome.study.trials(), list(tasks)
    completed = [trial.number for trial in trials if trial.state is TrialState.COMPLETE]
    assert outcome.best is not None
    assert checkpoints(tmp_path) == {outcome.best.number, *completed[-POPULATION:]}
    for trial, task in zip([trial for trial in trials if trial.attempt], given, strict=True):
        parent = parent_number(trial)
        assert (task.inherit is None) == (parent is None)
        assert parent is None or (f"trial-{parent:05d}/" in str(task.inherit) and parent < trial.number)
        if parent is not None and trial.state is TrialState.COMPLETE:
            assert 0.0 <= float(str(trial.attributes["inherited_share"])) <= 1.0
    unbroken = search(tmp_path / "unbroken", trials=6).study.trials()
    assert [parent_number(trial) for trial in trials] == [parent_number(trial) for trial in unbroken]
    assert [trial.value for trial in trials] == [trial.value for trial in unbroken]
    assert sum(parent_number(trial) is not None for trial in trials if trial.state is TrialState.COMPLETE) >= 2


def test_attempt_without_a_checkpoint_of_its_own_begins_with_the_same_weights(
    tmp_path: Path, tasks: list[TrainTask]
) -> None:
    study = search(tmp_path, trials=4).study
    parent = next(trial for trial in reversed(study.trials()) if trial.state is TrialState.COMPLETE)
    number = len(study.trials())
    space = SearchSpec.from_mapping({"space": "tests.trainers.tiny_space"}, "a test").search_space
    lease = study_with_room(study).create_trial(
        number,
        Configuration(parent.configuration),
        space.distributions(),
        owner="another",
        attributes={INHERITED_FROM: parent.number},
    )
    study.pause(lease)
    tasks.clear()
    resumed = search(tmp_path, trials=number + 1).study.trials()[number]
    assert (resumed.state, resumed.attempt) == (TrialState.COMPLETE, 2)
    assert f"trial-{parent.number:05d}/" in str(tasks[0].inherit)
    assert resumed.attributes["inherited_share"] == 1.0


def study_with_room(study: Study) -> Study:
    study.raise_trials(100)
    return study


def test_parent_whose_weights_are_gone_leaves_the_trial_with_weights_of_its_own(tmp_path: Path) -> None:
    search(tmp_path, trials=3, inherit_weights=False, sampler="random")
    (left,) = checkpoints(tmp_path)
    trials = search(tmp_path, trials=6).study.trials()
    parents = {parent_number(trial) for trial in trials} - {None}
    assert parents
    assert parents & {0, 1, 2} <= {left}


def test_origin_is_the_own_checkpoint_then_the_parents_then_nothing(tmp_path: Path) -> None:
    study = search(tmp_path, trials=2, inherit_weights=False).study
    best = study.best_trial()
    assert best is not None
    ledger = CheckpointLedger(study, tmp_path / "artifacts")
    own = Lease(trial_id=best.id, number=best.number, attempt=1, owner="me")
    new = Lease(trial_id=10**6, number=99, attempt=1, owner="me")
    record = study.checkpoints(best)[0]
    assert (find_origin(ledger, study, own, best.number).own, find_origin(ledger, study, own, 0).parent) == (
        record,
        None,
    )
    assert find_origin(ledger, study, new, best.number).parent == record
    assert find_origin(ledger, study, new, None) == find_origin(ledger, study, new, 1 - best.number)
