"""Searches whose trials need more memory than there is."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from automl.executors import inline
from automl.memory import more_parts
from automl.worker import Failure, Outcome, run_task
from search_spaces.configuration import JsonScalar
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.conftest import Recorder, Search
from tests.helpers.hungry_toy import SPACE, HungryTrainer
from tests.helpers.toy import SPACE as TOY
from tests.helpers.toy import loss_after
from trainers.config import TrainConfig, TrainTask
from trainers.errors import NetworkMemoryError

HUNGRY = "tests.helpers.hungry_toy"


@pytest.fixture(autouse=True)
def tried() -> Iterator[list[tuple[int, int]]]:
    """Epoch and micro-batch of everything that was begun."""
    HungryTrainer.tried.clear()
    yield HungryTrainer.tried
    HungryTrainer.tried.clear()


def queued(storage: str, *configurations: Mapping[str, JsonScalar]) -> Study:
    study = Storage(storage).create_study("toy", direction="minimize")
    study.enqueue([SPACE.validate({"x": 0.5, **one}) for one in configurations], SPACE.distributions())
    return study


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 64, 65])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_more_parts_always_make_the_micro_batch_smaller_and_end_at_one(batch_size: int, ranks: int) -> None:
    training = TrainConfig(batch_size=batch_size)
    while (parts := more_parts(training, ranks)) is not None:
        smaller = training.model_copy(update={"accumulate": parts})
        assert smaller.micro_batch(ranks) < training.micro_batch(ranks)
        assert parts <= 2 * training.accumulate
        training = smaller
    assert training.micro_batch(ranks) == 1
    assert training.accumulate == max(1, -(-batch_size // ranks))


def test_trial_that_does_not_fit_goes_on_at_once_with_half_the_micro_batch(
    toy_search: Search, storage: str, tried: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    queued(storage, {"room": 7, "batch_size": 24})
    with caplog.at_level(logging.WARNING):
        outcome = toy_search(space=HUNGRY, trials=1, epochs=3)
    (trial,) = outcome.study.trials()
    # From the checkpoint of the first epoch, each time.
    assert tried == [(1, 24), (2, 24), (2, 12), (2, 6), (3, 6)]
    assert (trial.state, trial.attempt, trial.losses) == (TrialState.COMPLETE, 1, 0)
    assert dict(trial.reports) == {epoch: loss_after(epoch, 0.5) for epoch in (1, 2, 3)}
    assert (trial.attributes["micro_batch"], trial.attributes["accumulate"]) == (6, 4)
    lines = [record.message for record in caplog.records if "trying again" in record.message]
    assert [line.partition("trying again ")[2] for line in lines] == [
        "micro_batch=12 before=24 accumulate=2",
        "micro_batch=6 before=12 accumulate=4",
    ]


def test_trial_that_fits_in_no_way_fails_and_the_next_one_is_clean(
    toy_search: Search, storage: str, tried: list[tuple[int, int]]
) -> None:
    queued(storage, {"room": 0, "batch_size": 3}, {"room": 64, "batch_size": 3})
    outcome = toy_search(space=HUNGRY, trials=2, epochs=3)
    failed, complete = outcome.study.trials()
    assert (failed.state, failed.cause, failed.attempt) == (TrialState.FAILED, "oom", 1)
    assert failed.attributes["micro_batch"] == 1
    assert "DeviceMemoryError" in str(failed.attributes["error"])
    assert complete.state is TrialState.COMPLETE
    assert "accumulate" not in complete.attributes
    assert tried == [(1, 3), (2, 3), (2, 2), (2, 1), (1, 3), (2, 3), (3, 3)]
    assert outcome.exit_code == 0


def test_trial_that_goes_on_later_begins_with_the_micro_batch_that_fitted(
    toy_search: Search, storage: str, tried: list[tuple[int, int]]
) -> None:
    queued(storage, {"room": 8, "batch_size": 16})
    outcome = toy_search(space=HUNGRY, trials=1, epochs=4, pruner="tests.helpers.pruners:PauseAtTwo")
    (trial,) = outcome.study.trials()
    assert (trial.state, trial.attempt) == (TrialState.COMPLETE, 2)
    assert tried == [(1, 16), (2, 16), (2, 8), (3, 8), (4, 8)]


def test_trial_of_a_lost_machine_begins_with_the_micro_batch_that_fitted(
    toy_search: Search, storage: str, tried: list[tuple[int, int]]
) -> None:
    study = Storage(storage).create_study("toy", direction="minimize")
    configuration = SPACE.validate({"x": 0.5, "room": 4, "batch_size": 16})
    lease = study.create_trial(0, configuration, SPACE.distributions(), owner="another machine", ttl_s=0.0)
    watcher = Storage(storage).open_study("toy")
    watcher.look()  # it has seen the trial before the fact came
    study.note(lease, {"accumulate": 4})
    outcome = toy_search(space=HUNGRY, trials=1, epochs=2)
    assert tried == [(1, 4), (2, 4)]
    assert outcome.study.trials()[0].losses == 1
    assert watcher.trials()[0].attributes["accumulate"] == 4


def test_trainer_that_cuts_no_batches_is_not_tried_again(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch, tried: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(HungryTrainer, "hyperparameters", frozenset({"x", "batch_size"}))
    queued(storage, {"room": 4, "batch_size": 16})
    (trial,) = toy_search(space=HUNGRY, trials=1, epochs=2).study.trials()
    assert (trial.state, trial.cause) == (TrialState.FAILED, "oom")
    assert tried == [(1, 16), (2, 16)]
    assert "micro_batch" not in trial.attributes


def test_network_that_is_too_large_by_itself_is_not_tried_again(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch, tried: list[tuple[int, int]]
) -> None:
    def refuse(trainer: HungryTrainer, task: TrainTask, *others: Any) -> None:
        tried.append((1, task.training.micro_batch(1)))
        raise NetworkMemoryError("the weights alone need 149 GiB")

    monkeypatch.setattr(HungryTrainer, "fit", refuse)
    queued(storage, {"room": 4, "batch_size": 16})
    (trial,) = toy_search(space=HUNGRY, trials=1, epochs=2).study.trials()
    assert (trial.state, trial.cause, tried) == (TrialState.FAILED, "oom", [(1, 16)])
    assert "accumulate" not in trial.attributes
    assert "NetworkMemoryError" in str(trial.attributes["error"])


class Killer:
    """Stands between executor and trainer: the processes of some trials are ended for want of the machine's memory."""

    def __init__(self, x: float, times: int) -> None:
        self.kills = 0
        self._x = x
        self._times = times
        self._run = run_task

    def __call__(self, task: TrainTask, *others: Any) -> Outcome | Failure:
        if task.configuration["x"] == self._x and self.kills < self._times:
            self.kills += 1
            full = "the machine's memory was full"
            return Failure(cause="oom", error="ProcessKilled", message=full, rank=0, is_memory_kill=True)
        return self._run(task, *others)


@pytest.mark.parametrize("kills", [1, 2])
def test_process_killed_for_memory_is_tried_again_once_however_often_machines_are_lost(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    killer = Killer(x=0.25, times=kills)
    monkeypatch.setattr(inline, "run_task", killer)
    study = Storage(storage).create_study("toy", direction="minimize")
    study.enqueue([{"x": 0.25}], TOY.distributions())
    outcome = toy_search(trials=3, max_retries=0)
    killed, *others = outcome.study.trials()
    assert killer.kills == kills
    assert (killed.attempt, killed.losses) == (2, 0)
    assert (killed.state, killed.cause) == ((TrialState.COMPLETE, None) if kills == 1 else (TrialState.FAILED, "oom"))
    assert killed.attributes["memory_kills"] == 1
    assert [trial.state for trial in others] == [TrialState.COMPLETE] * 2


def test_search_over_architectures_that_do_not_fit_ends_as_every_other(toy_search: Search) -> None:
    recorder = Recorder()
    outcome = toy_search(space=HUNGRY, trials=12, epochs=2, sampler="tpe", max_failures=99, observer=recorder)
    trials = outcome.study.trials()
    assert {(trial.state, trial.cause) for trial in trials} <= {(TrialState.COMPLETE, None), (TrialState.FAILED, "oom")}
    for trial in trials:
        assert (trial.state is TrialState.FAILED) == (trial.configuration["room"] == 0)
    assert outcome.exit_code == 0
    assert outcome.reason == "all 12 trials ended"
