"""What a Tune program does to a study, without Ray: who gets which trial, and how each one ends."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

pytest.importorskip("ray")
from automl.integrations.ray_tune import StudySearcher, TuneStudy
from automl.scheduler import Done, Wait
from automl.worker import Failure
from search_spaces.configuration import Configuration
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.checkpoints import best_epoch
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, TrialState
from tests.automl.integrations.conftest import Joined
from tests.helpers.postgres import postgres_server, postgres_url
from trainers.reporting import Decision, Report

__all__ = ["postgres_server", "postgres_url"]


def report(epoch: int, loss: float = 0.5) -> Report:
    return Report(epoch=epoch, metrics={"loss": loss, "note": "text"})  # type: ignore[dict-item]  # people report anything


def opened(storage: str) -> Study:
    return Storage(storage).open_study("toy")


def refuse_high(configuration: Configuration) -> str | None:
    return "too high" if float(str(configuration["x"])) > 0.5 else None


def test_two_programs_share_the_budget_and_end_by_themselves(joined: Joined) -> None:
    with joined(trials=3) as one, joined() as other:
        assert not isinstance(one.asking.ask("a"), Wait | Done)
        assert not isinstance(other.asking.ask("b"), Wait | Done)
        assert not isinstance(one.asking.ask("c"), Wait | Done)
        assert isinstance(one.asking.ask("d"), Wait)  # one of ours may come back
        one.telling.complete("a", report(4))
        one.telling.complete("c", report(4))
        last = one.asking.ask("d")
        assert isinstance(last, Done) and "other processes" in last.reason
        other.telling.complete("b", report(4))
        assert isinstance(other.asking.ask("d"), Done)
        assert [trial.state for trial in one.all_trials()] == [TrialState.COMPLETE] * 3


@pytest.mark.postgres
def test_two_programs_share_a_study_on_postgresql_and_write_no_password(joined: Joined, postgres_url: str) -> None:
    from ray import cloudpickle

    address = make_url(postgres_url).set(password="hunter2").render_as_string(hide_password=False)
    with joined(storage=address, trials=2) as one, joined(storage=address) as other:
        first, second = one.asking.ask("a"), other.asking.ask("b")
        assert first != second and isinstance(other.asking.ask("c"), Wait)
        one.telling.complete("a", report(4, 0.25))
        assert other.telling.report("b", report(4, 0.5)) is Decision.STOP
        assert [trial.value for trial in one.all_trials()] == [0.25, 0.5]
        assert b"hunter2" not in cloudpickle.dumps(one)  # type: ignore[no-untyped-call]  # Ray's own


def test_defaults_come_first_then_the_queue_and_infeasible_proposals_are_replaced(joined: Joined, storage: str) -> None:
    space = SearchSpace("picky", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.25}, refuse=refuse_high)
    with joined(space=space) as study:
        assert study.asking.ask("a") == {"x": 0.25}
        opened(storage).enqueue([{"x": 0.125}, {"x": 0.75}], space.distributions())
        assert study.asking.ask("b") == {"x": 0.125}
        proposals = [study.asking.ask(name) for name in "cdef"]
        assert all(isinstance(one, Configuration) and refuse_high(one) is None for one in proposals)
        trials = study.all_trials()
    assert (trials[2].state, trials[2].attributes["error"]) == (TrialState.FAILED, "too high")
    assert TrialState.INFEASIBLE in {trial.state for trial in trials}


def test_complete_trial_has_its_best_epoch_and_only_numbers(joined: Joined, storage: str) -> None:
    with joined(epochs=3) as study:
        study.asking.ask("a")
        decisions = [study.telling.report("a", report(epoch, loss)) for epoch, loss in ((1, 0.5), (2, 0.2), (3, 0.4))]
        (trial,) = study.all_trials()
    assert decisions == [Decision.CONTINUE, Decision.CONTINUE, Decision.STOP]
    assert (trial.state, trial.value, trial.attributes["best_epoch"]) == (TrialState.COMPLETE, 0.2, 2)
    assert best_epoch(trial, "minimize") == 2
    assert opened(storage).reports(trial)[2] == {"loss": 0.2}


def test_training_without_a_report_fails(joined: Joined) -> None:
    with joined() as study:
        study.asking.ask("a")
        study.telling.complete("a", None)
        (trial,) = study.all_trials()
    assert (trial.state, trial.cause) == (TrialState.FAILED, "user_error")
    assert "without a report" in str(trial.attributes["error"])


def test_failures_in_a_row_end_the_program(joined: Joined) -> None:
    failure = Failure(cause="user_error", error="ValueError", message="no")
    with joined(max_failures=2) as study:
        for name in "ab":
            study.asking.ask(name)
            study.telling.fail(name, failure)
        end = study.asking.ask("c")
    assert isinstance(end, Done) and "last 2 trials failed" in end.reason


def test_full_disk_is_no_fault_of_the_trial(joined: Joined) -> None:
    with joined() as study:
        study.asking.ask("a")
        study.telling.fail("a", Failure(cause="disk_full", error="OSError", message="no space left", host="node"))
        end = study.asking.ask("b")
        assert [trial.state for trial in study.all_trials()] == [TrialState.PAUSED]
    assert isinstance(end, Done) and "disk of node is full" in end.reason


def test_process_killed_for_memory_is_tried_again_once(joined: Joined) -> None:
    kill = Failure(cause="oom", error="OutOfMemoryError", message="the machine was full", is_memory_kill=True)
    with joined(trials=1, max_retries=0) as study:
        first = study.asking.ask("a")
        study.telling.fail("a", kill)
        (killed,) = study.all_trials()
        assert (killed.state, killed.losses, killed.attributes["memory_kills"]) == (TrialState.PAUSED, 0, 1)
        assert study.asking.ask("b") == first
        study.telling.fail("b", kill)
        (failed,) = study.all_trials()
    assert (failed.state, failed.cause, failed.attempt) == (TrialState.FAILED, "oom", 2)


def test_process_killed_for_memory_is_left_to_tunes_retries_once(joined: Joined) -> None:
    kill = Failure(cause="oom", error="OutOfMemoryError", message="the machine was full", is_memory_kill=True)
    with joined(trials=1) as study:
        study.asking.ask("a")
        assert study.telling.begin("a")
        outcomes = []
        for _ in range(2):
            study.telling.note_failure("a", kill)
            assert not study.telling.begin("a")  # Tune wants to train it again
            outcomes.append(study.asking.go_on("a"))
        (trial,) = study.all_trials()
    assert outcomes == [True, False]
    assert (trial.state, trial.cause, trial.attempt) == (TrialState.FAILED, "oom", 3)
    assert "ended 2 times" in str(trial.attributes["error"])


def test_full_memory_of_a_device_is_no_kill(joined: Joined) -> None:
    full = Failure(cause="oom", error="OutOfMemoryError", message="CUDA out of memory", traceback="Traceback ...")
    with joined() as study:
        study.asking.ask("a")
        study.telling.fail("a", full)
        (trial,) = study.all_trials()
    assert (trial.state, trial.cause) == (TrialState.FAILED, "oom")
    assert "memory_kills" not in trial.attributes


def test_limits_of_the_study_are_obeyed(joined: Joined, storage: str) -> None:
    with joined(target_value=0.3) as study:
        study.asking.ask("a")
        study.asking.ask("b")
        study.telling.complete("a", report(4, 0.25))
        assert study.telling.report("b", report(1, 0.9)) is Decision.STOP
        assert [trial.state for trial in study.all_trials()] == [TrialState.COMPLETE, TrialState.PAUSED]
        assert isinstance(study.asking.ask("c"), Done)
    with joined() as study:
        study.asking.ask("d")
        opened(storage).stop()
        assert isinstance(study.asking.ask("e"), Done)


def test_trial_of_a_closed_program_goes_on_in_another_and_its_later_epochs_are_forgotten(joined: Joined) -> None:
    with joined() as study:
        first = study.asking.ask("a")
        study.telling.report("a", report(1))
        study.telling.report("a", report(2))
    with joined() as study:
        assert study.all_trials()[0].state is TrialState.PAUSED
        assert study.asking.ask("b") == first
        study.telling.report("b", report(1, 0.75))
        (trial,) = study.all_trials()
    assert (trial.attempt, trial.losses, dict(trial.reports)) == (2, 0, {1: 0.75})


def test_trial_that_another_process_has_taken_is_left_alone(joined: Joined, storage: str) -> None:
    with joined() as study:
        study.asking.ask("a")
        lease = next(iter(study.held.names().values()))
        study.telling.leave("a")
        other = opened(storage)
        other.tell(other.claim(lease, owner="other"), TrialState.FAILED, cause="user_error")
        assert not study.asking.go_on("a")
        assert "a" not in study.held


def test_lost_lease_stops_the_trial(joined: Joined, storage: str) -> None:
    with joined() as study:
        study.asking.ask("a")
        (trial,) = study.all_trials()
        other = opened(storage)
        held = study.held["a"]
        other.pause(held)
        other.claim(trial.id, owner="other")
        assert study.telling.report("a", report(1)) is Decision.STOP
        assert "a" not in study.held
        assert study.all_trials()[0].reports == {}


def test_trial_with_a_checkpoint_of_a_search_is_left_to_it(joined: Joined, storage: str) -> None:
    with joined(trials=1) as study:
        study.asking.ask("a")
        record = CheckpointRecord(path="a/b.pt", epoch=1, attempt=1, digest="0" * 64, size_bytes=1)
        opened(storage).report(study.held["a"], 1, 0.5, checkpoint=record)
    with joined() as study:
        end = study.asking.ask("b")
        assert isinstance(end, Done)
        assert study.all_trials()[0].state is TrialState.PAUSED


def test_names_survive_tunes_checkpoint_and_another_study_is_refused(joined: Joined, tmp_path: Path) -> None:
    file = str(tmp_path / "searcher.json")
    with joined() as study:
        study.asking.ask("a")
        StudySearcher(study).save(file)
        (trial,) = study.all_trials()
    with joined() as study:
        StudySearcher(study).restore(file)
        assert study.held.knows("a") and "a" not in study.held
        assert study.asking.go_on("a")
        assert study.all_trials()[0].attempt == 2
        assert dict(study.held.names()) == {"a": trial.id}
    with joined(study="other") as study, pytest.raises(ValueError, match="'other' is not the one"):
        StudySearcher(study).restore(file)


def test_pickled_study_is_the_joined_one_or_is_joined_again(joined: Joined, storage: str) -> None:
    from ray import cloudpickle

    with joined(epochs=5) as study:
        pickled = cloudpickle.dumps(study)  # type: ignore[no-untyped-call]  # Ray's own
        assert cloudpickle.loads(pickled) is study
    again = cloudpickle.loads(pickled)
    assert isinstance(again, TuneStudy) and again is not study
    assert again.settings.epochs == 5
    again.close()
