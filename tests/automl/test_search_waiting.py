"""Searches in which one trial waits for the database, slots come and go, and others go on meanwhile."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from automl import session
from automl.events import EpochReported, Event, SlotsChanged, TrialEnded, TrialStarted
from automl.executors.base import Event as Happened
from automl.executors.base import Failed, Reported
from automl.executors.inline import InlineExecutor
from automl.observer import Observer
from automl.worker import Failure
from studies.study import Study
from studies.trial import TrialState
from tests.automl.conftest import Recorder, Search
from tests.automl.test_trouble import check_whole
from tests.helpers.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

EPOCHS = 5


class RowLock(Observer):
    """Another session locks the row of trial 0 after its first epoch, and lets it go at the end of trial 1."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("postgresql+psycopg", "postgresql")
        self._connection: psycopg.Connection[Any] | None = None
        self._study: Study | None = None
        self.seen: list[tuple[int, str]] = []

    def begin(self, spec: Any, study: Study, slots: int) -> None:
        self._study = study

    def notify(self, event: Event) -> None:
        match event:
            case EpochReported():
                self.seen.append((event.number, str(event.epoch)))
                if (event.number, event.epoch) == (0, 1):
                    self._lock()
            case TrialEnded():
                self.seen.append((event.number, event.state.value))
                if event.number == 1:
                    assert self._connection is not None
                    self._connection.close()

    def _lock(self) -> None:
        assert self._study is not None
        self._connection = psycopg.connect(self._url)
        key = self._study.trials()[0].id
        self._connection.execute("SELECT 1 FROM automl_trials WHERE trial_id = %s FOR UPDATE", [key])


@pytest.mark.postgres
def test_trial_whose_row_is_locked_holds_up_no_other_and_goes_on_after(
    postgres_url: str, toy_search: Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(InlineExecutor, "slots", 2)
    lock = RowLock(postgres_url)
    outcome = toy_search(
        space="tests.helpers.steady_toy",
        storage=postgres_url,
        artifacts=str(tmp_path / "artifacts"),
        trials=2,
        epochs=EPOCHS,
        observer=lock,
    )
    for trial in outcome.study.trials():
        check_whole(trial, EPOCHS)
        assert (trial.attempt, trial.losses) == (1, 0)
    end_of_other = lock.seen.index((1, "complete"))
    assert (0, "1") in lock.seen[:end_of_other]
    assert lock.seen[end_of_other + 1 :] == [*((0, str(epoch)) for epoch in range(2, EPOCHS + 1)), (0, "complete")]


class ChangingSlots(InlineExecutor):
    """Has no slot until it was asked a few times, then two, then a machine leaves."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked = 0
        self.slots = 0
        self.concurrency = 2

    def events(self, timeout_s: float) -> Sequence[Happened]:
        self.asked += 1
        self.concurrency = 2 if self.asked < 20 else 1
        self.slots = 0 if self.asked < 5 else self.concurrency
        return super().events(timeout_s)


def test_slots_that_come_and_go_are_used_and_shown(toy_search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    executors: list[ChangingSlots] = []

    def make(spec: Any, data: Any, check: object) -> InlineExecutor:
        executors.append(ChangingSlots(spec.make_trainer(), data))
        return executors[0]

    monkeypatch.setattr(session, "make_executor", make)
    recorder = Recorder()
    outcome = toy_search(trials=8, epochs=2, observer=recorder, space="tests.helpers.steady_toy")
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 8
    assert [event for event in recorder.events if isinstance(event, SlotsChanged)] == [SlotsChanged(slots=1)]
    assert executors[0].asked >= 20
    assert most_at_once(recorder.events) == 2
    changed = recorder.events.index(SlotsChanged(slots=1))
    assert most_at_once(recorder.events[changed:]) == 1, "those that ran may end, and one at a time follows"


def test_search_without_a_place_ends_when_others_have_used_up_the_budget(
    toy_search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {"trials": 2, "epochs": 2, "space": "tests.helpers.steady_toy"}

    class NoPlace(InlineExecutor):
        slots = 0

        def events(self, timeout_s: float) -> Sequence[Happened]:
            if not others:
                others.append(toy_search(**fields).exit_code)
            return super().events(timeout_s)

    others: list[int] = []
    kinds = iter([NoPlace, InlineExecutor])
    monkeypatch.setattr(session, "make_executor", lambda spec, data, check: next(kinds)(spec.make_trainer(), data))
    outcome = toy_search(**fields)
    assert others == [0]
    assert outcome.reason == "all 2 trials ended"


def most_at_once(events: Sequence[Event]) -> int:
    running, most = 0, 0
    for event in events:
        running += isinstance(event, TrialStarted)
        running = max(0, running - isinstance(event, TrialEnded))
        most = max(most, running)
    return most


class LosesWhileStoring(InlineExecutor):
    """Loses the process of a training right after its report of the second epoch, before anybody could answer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.answered: list[int] = []
        self._is_lost = False

    def events(self, timeout_s: float) -> Sequence[Happened]:
        happened = super().events(timeout_s)
        for event in happened:
            if isinstance(event, Reported) and event.report.epoch == 2 and not self._is_lost:
                self._is_lost = True
                self.cancel(event.job)
                failure = Failure(cause="lost", error="ProcessLost", message="it has gone")
                return [event, Failed(job=event.job, failure=failure)]
        return happened


def test_end_of_a_trial_follows_its_last_report_into_the_database(
    toy_search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "make_executor", lambda spec, data, _: LosesWhileStoring(spec.make_trainer(), data))
    recorder = Recorder()
    outcome = toy_search(trials=1, observer=recorder)
    (trial,) = outcome.study.trials()
    check_whole(trial, epochs=4)
    assert (trial.attempt, trial.losses) == (2, 1)
    assert [event.epoch for event in recorder.events if isinstance(event, EpochReported)] == [1, 2, 3, 4]
    assert [event.epoch for event in recorder.events if isinstance(event, TrialStarted)] == [0, 2]


def test_one_slot_takes_the_same_decisions_again_and_again(
    toy_search: Search, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def history(name: str) -> list[tuple[object, ...]]:
        outcome = toy_search(
            storage=f"sqlite:///{tmp_path}/{name}.db",
            artifacts=str(tmp_path / name),
            trials=15,
            epochs=6,
            sampler="tpe",
            pruner="asha",
        )
        return [(t.configuration["x"], t.state, dict(t.reports), t.attempt) for t in outcome.study.trials()]

    assert history("first") == history("second")
