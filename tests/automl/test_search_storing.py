"""What becomes of trials is told and stored whatever else is slow or broken: files, leases, the executor itself."""

import threading
from pathlib import Path
from typing import Any

import pytest

from automl import search_loop, session
from automl.events import Event, TrialEnded, TrialStarted
from automl.executors.base import Job
from automl.executors.inline import InlineExecutor
from studies.checkpoint_files import CheckpointFiles
from studies.errors import CheckpointStoreError
from studies.leases import LeaseKeeper
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, TrialState
from tests.automl.conftest import Recorder, Search
from tests.automl.test_trouble import check_whole
from tests.helpers.commands import until
from trainers.reporting import Decision

WAIT_S = 20.0
SHORT_LEASE_S = 0.6


class Watcher(Recorder):
    """Keeps the events, and says when so many trials have ended."""

    def __init__(self, ends: int) -> None:
        super().__init__()
        self._left = ends
        self.have_ended = threading.Event()

    def notify(self, event: Event) -> None:
        super().notify(event)
        if isinstance(event, TrialEnded) and event.state.is_ended:
            self._left -= 1
            if self._left == 0:
                self.have_ended.set()

    def started(self, number: int) -> list[int]:
        """The epochs from which this trial went on."""
        return [event.epoch for event in self.events if isinstance(event, TrialStarted) and event.number == number]


def test_end_that_a_renewal_sees_before_its_answer_is_there_is_told_once(
    toy_search: Search, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keepers: list[LeaseKeeper] = []

    class Known(LeaseKeeper):
        def __enter__(self) -> LeaseKeeper:
            keepers.append(self)
            return super().__enter__()

    class Counting(InlineExecutor):
        asked = 0

        def events(self, timeout_s: float) -> Any:
            Counting.asked += 1
            return super().events(timeout_s)

    tell = Study.tell

    def slowly_answered(study: Study, lease: Lease, state: TrialState, **fields: Any) -> None:
        tell(study, lease, state, **fields)
        until(lambda: lease in keepers[0].lost(), WAIT_S, "a renewal that finds the trial ended")
        before = Counting.asked
        until(lambda: Counting.asked >= before + 2, WAIT_S, "the loop to look for lost leases")

    for module in (search_loop, session):
        monkeypatch.setattr(module, "LEASE_S", SHORT_LEASE_S)
    monkeypatch.setattr(session, "LeaseKeeper", Known)
    monkeypatch.setattr(session, "make_executor", lambda spec, data, *others: Counting(spec.make_trainer(), data))
    monkeypatch.setattr(Study, "tell", slowly_answered)
    recorder = Recorder()
    outcome = toy_search(trials=2, epochs=2, observer=recorder)
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 2
    assert [event.number for event in recorder.events if isinstance(event, TrialEnded)] == [0, 1]
    assert "elsewhere" not in caplog.text


class FailsAtSecondEpoch(InlineExecutor):
    """A mistake of ours in the middle of a search."""

    decided = 0

    def decide(self, job: Job, decision: Decision) -> None:
        self.decided += 1
        if self.decided == 2:
            raise ZeroDivisionError("the first error")
        super().decide(job, decision)


class CancelsBadly(FailsAtSecondEpoch):
    def cancel(self, job: Job) -> None:
        super().cancel(job)
        raise ConnectionError("the second error")


def test_executor_that_cannot_cancel_hides_no_error_and_keeps_no_trial(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CancelsBadly, "slots", 2)
    monkeypatch.setattr(session, "make_executor", lambda spec, data, *others: CancelsBadly(spec.make_trainer(), data))
    with pytest.raises(ZeroDivisionError, match="the first error"):
        toy_search(trials=2)
    assert [trial.state for trial in Storage(storage).open_study("toy").trials()] == [TrialState.PAUSED] * 2
    for number in (0, 1):
        assert f"trial={number} its training cannot be ended: ConnectionError: the second error" in caplog.text


def test_file_that_takes_long_to_remove_holds_up_no_trial(
    toy_search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(ends=2)
    waited: list[bool] = []
    remove = CheckpointFiles.remove

    def slowly(files: CheckpointFiles, path: str) -> None:
        waited.append(watcher.have_ended.wait(WAIT_S))
        remove(files, path)

    monkeypatch.setattr(CheckpointFiles, "remove", slowly)
    monkeypatch.setattr(InlineExecutor, "slots", 2)
    outcome = toy_search(
        space="tests.helpers.steady_toy", trials=2, epochs=6, artifacts=str(tmp_path / "artifacts"), observer=watcher
    )
    assert waited and all(waited)
    for trial in outcome.study.trials():
        check_whole(trial, epochs=6)
    best = outcome.study.best_trial()
    assert best is not None
    (left,) = (tmp_path / "artifacts").glob("*/trial-*/*/epoch-*")
    assert f"trial-{best.number:05d}" in str(left) and "epoch-0006" in left.name


def interrupted_trial(toy_search: Search, **fields: Any) -> Study:
    """A study whose trial 0 rests after its second epoch."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(session, "make_executor", lambda spec, data, *_: FailsAtSecondEpoch(spec.make_trainer(), data))
        toy_search(trials=1, **fields)
    study = Storage(fields["storage"]).open_study("toy")
    (trial,) = study.trials()
    assert (trial.state, trial.last_epoch) == (TrialState.PAUSED, 2)
    return study


@pytest.mark.parametrize("is_reached", [False, True], ids=["goes on", "rests as the target is reached"])
def test_checkpoint_that_takes_long_to_read_holds_up_no_trial(
    toy_search: Search, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_reached: bool
) -> None:
    fields: dict[str, Any] = {
        "space": "tests.helpers.steady_toy",
        "storage": storage,
        "artifacts": str(tmp_path / "artifacts"),
    }
    interrupted_trial(toy_search, **fields)
    watcher = Watcher(ends=1)
    waited: list[bool] = []
    fault = CheckpointFiles.fault

    def slowly(files: CheckpointFiles, record: CheckpointRecord) -> str | None:
        waited.append(watcher.have_ended.wait(WAIT_S))
        return fault(files, record)

    monkeypatch.setattr(CheckpointFiles, "fault", slowly)
    monkeypatch.setattr(InlineExecutor, "slots", 2)
    outcome = toy_search(trials=2, observer=watcher, target_value=10.0 if is_reached else None, **fields)
    assert waited and all(waited)
    first, second = outcome.study.trials()
    check_whole(second, epochs=4)
    assert (first.attempt, first.losses) == (2, 0)
    if is_reached:
        assert first.state is TrialState.PAUSED
        assert watcher.started(0) == []
    else:
        check_whole(first, epochs=4)
        assert watcher.started(0) == [2]


def test_trial_whose_checkpoint_cannot_be_reached_is_given_back(
    toy_search: Search, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {"storage": storage, "artifacts": str(tmp_path / "artifacts")}
    study = interrupted_trial(toy_search, **fields)

    def unreachable(files: CheckpointFiles, record: CheckpointRecord) -> str | None:
        raise CheckpointStoreError("the store is away")

    monkeypatch.setattr(CheckpointFiles, "fault", unreachable)
    with pytest.raises(CheckpointStoreError, match="the store is away"):
        toy_search(trials=1, **fields)
    (trial,) = study.trials()
    assert (trial.state, trial.attempt, trial.last_epoch) == (TrialState.PAUSED, 2, 2)
