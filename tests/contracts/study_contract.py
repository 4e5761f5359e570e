"""What every database of studies must do: subclass `StudyContract` and give it the address of an empty one."""

import math
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from sqlalchemy import NullPool, Table, event, select

from studies.errors import (
    BudgetSpentError,
    DirectionMismatchError,
    IncompatibleDistributionError,
    LeaseLostError,
    NotClaimableError,
    NumberTakenError,
    StudyNotFoundError,
    TrialNotFoundError,
)
from studies.identity import process_identity
from studies.schema import optuna_tables
from studies.schema.clock import epoch_now
from studies.schema.tables import automl_studies
from studies.standing import Limits
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, JsonScalar, Lease, TrialState

SPACE: Mapping[str, BaseDistribution] = {
    "learning_rate": FloatDistribution(1e-320, 1.0, log=True),
    "width": IntDistribution(1, 2**60),
    "operation": CategoricalDistribution(["conv3", "skip", None, True, 0.5]),
    "depth": IntDistribution(1, 8),
}
CONFIGURATION: Mapping[str, JsonScalar] = {
    "learning_rate": 0.1234567890123456,
    "width": 2**53 + 1,
    "operation": None,
}
ELSEWHERE = "other-machine/00000000-0000-0000-0000-000000000000/1/1/1"
FORK = multiprocessing.get_context("fork")


def begin(study: Study, *, owner: str = ELSEWHERE, ttl_s: float = 60.0, budget: int | None = None) -> Lease:
    if budget is not None:
        study.set_limits(Limits(trials=budget))
    return study.create_trial(len(study.trials()), CONFIGURATION, SPACE, owner=owner, ttl_s=ttl_s)


def complete(study: Study, value: float) -> Lease:
    lease = begin(study)
    study.report(lease, 1, value)
    study.tell(lease, TrialState.COMPLETE, value=value)
    return lease


def claim_places(study: Study, budget: int) -> list[int]:
    """Create trials until the budget is spent; the numbers that were ours."""
    study.set_limits(Limits(trials=budget))
    mine: list[int] = []
    while True:
        try:
            mine.append(begin(study).number)
        except NumberTakenError:
            continue
        except BudgetSpentError:
            return mine


def claim_places_of(url: str, budget: int) -> list[int]:
    with Storage(url) as storage:
        return claim_places(storage.create_study("shared", direction="minimize"), budget)


def create_and_count(url: str, name: str) -> tuple[int, int]:
    with Storage(url) as storage:
        return storage.create_study(name, direction="minimize").id, len(storage.studies())


@contextmanager
def counted(storage: Storage) -> Iterator[list[str]]:
    """Collect the statements, and `COMMIT` for each transaction."""
    seen: list[str] = []

    def statement(connection: Any, cursor: Any, text: str, *others: Any) -> None:
        if not text.startswith("BEGIN"):
            seen.append(text)

    def commit(connection: Any) -> None:
        seen.append("COMMIT")

    event.listen(storage.engine, "before_cursor_execute", statement)
    event.listen(storage.engine, "commit", commit)
    try:
        yield seen
    finally:
        event.remove(storage.engine, "before_cursor_execute", statement)
        event.remove(storage.engine, "commit", commit)


class StudyContract:
    """Laws of `Storage` and `Study`, the same on every kind of database."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        with Storage(url) as storage:
            yield storage

    @pytest.fixture
    def study(self, storage: Storage) -> Study:
        return storage.create_study("study", direction="maximize", specification={"space": "toy", "trials": 4})

    # Studies

    def test_create_study_twice_gives_the_same_study_and_keeps_its_specification(self, storage: Storage) -> None:
        first = storage.create_study("a/b é😀'; drop table studies;--", direction="minimize", specification={"seed": 1})
        again = storage.create_study(first.name, direction="minimize", specification={"seed": 2})
        assert (again.id, again.name, again.specification) == (first.id, first.name, {"seed": 1})
        again.update_specification({"seed": 3})
        assert storage.open_study(first.name).specification == {"seed": 3}

    def test_create_study_with_other_direction_names_both(self, storage: Storage, study: Study) -> None:
        with pytest.raises(DirectionMismatchError, match=r"'maximize'.*'minimize'"):
            storage.create_study("study", direction="minimize")

    def test_names_of_512_characters_fit(self, storage: Storage) -> None:
        study = storage.create_study("é" * 512, direction="minimize")
        study.set_attribute("k" * 512, "x" * 100_000)
        assert storage.open_study("é" * 512).attributes == {"k" * 512: "x" * 100_000}

    def test_open_study_that_is_missing_names_the_nearest(self, storage: Storage, study: Study) -> None:
        with pytest.raises(StudyNotFoundError, match=r"no study 'stuby' .* did you mean 'study'\? existing: study"):
            storage.open_study("stuby")

    def test_open_study_in_an_empty_database_finds_nothing(self, storage: Storage) -> None:
        assert storage.studies() == ()
        with pytest.raises(StudyNotFoundError, match="there is no study in it yet"):
            storage.open_study("study")

    def test_attributes_are_what_was_set_last(self, study: Study) -> None:
        study.set_attribute("test", {"accuracy": 0.5})
        study.set_attribute("test", {"accuracy": 0.75})
        assert study.attributes == {"test": {"accuracy": 0.75}}
        assert study.as_optuna().user_attrs == {"test": {"accuracy": 0.75}}

    def test_delete_study_leaves_the_others(self, storage: Storage, study: Study) -> None:
        lease = complete(storage.create_study("other", direction="minimize"), 1.0)
        doomed = begin(study)
        study.report(doomed, 1, 0.5, {"loss": 1.0}, _record("a.pt", 1))
        storage.delete_study("study")
        assert [summary.name for summary in storage.studies()] == ["other"]
        assert storage.open_study("other").trials()[0].id == lease.trial_id
        with pytest.raises(LeaseLostError, match="deleted"):
            study.report(doomed, 2, 0.5)

    def test_studies_sums_up_each(self, storage: Storage, study: Study) -> None:
        storage.create_study("empty", direction="minimize")
        for value in (0.25, 0.75, 0.5):
            complete(study, value)
        pruned = begin(study)
        study.report(pruned, 1, 0.99)
        study.tell(pruned, TrialState.PRUNED)
        first, second = storage.studies()
        assert (first.name, first.direction, first.best_value) == ("study", "maximize", 0.75)
        assert (first.counts[TrialState.COMPLETE], first.counts[TrialState.PRUNED]) == (3, 1)
        assert first.last_activity == study.trials()[-1].ended_at
        assert (second.name, second.best_value, second.last_activity) == ("empty", None, None)
        assert sum(second.counts.values()) == 0

    # The life of a trial

    def test_life_of_a_trial(self, study: Study) -> None:
        lease = begin(study)
        (trial,) = study.trials()
        assert (trial.number, trial.state, trial.attempt, trial.owner) == (0, TrialState.RUNNING, 1, ELSEWHERE)
        assert trial.started_at is not None
        assert trial.started_at.utcoffset() is not None
        study.report(lease, 1, 0.25, {"loss": 2.0, "accuracy": 0.25})
        study.report(lease, 2, 0.5, {"loss": math.inf, "accuracy": 0.5})
        study.tell(lease, TrialState.COMPLETE, value=0.5, attributes={"precision": "fp32", "parameters": 7})
        (trial,) = study.trials()
        assert (trial.state, trial.value, trial.owner) == (TrialState.COMPLETE, 0.5, None)
        assert trial.reports == {1: 0.25, 2: 0.5}
        assert trial.last_epoch == 2
        assert trial.attributes == {"precision": "fp32", "parameters": 7}
        assert trial.started_at is not None
        assert trial.ended_at is not None
        assert trial.ended_at >= trial.started_at
        assert study.reports(trial) == {1: {"loss": 2.0, "accuracy": 0.25}, 2: {"loss": math.inf, "accuracy": 0.5}}

    @pytest.mark.parametrize(
        "configuration",
        [CONFIGURATION, {"learning_rate": 1e-300}, {"operation": True}, {"operation": 0.5}, {"width": 2**60}, {}],
    )
    def test_configuration_comes_back_bit_for_bit(self, study: Study, configuration: dict[str, JsonScalar]) -> None:
        study.create_trial(0, configuration, SPACE, owner=ELSEWHERE)
        (trial,) = study.trials()
        assert trial.configuration == configuration
        assert [type(value) for value in trial.configuration.values()] == [type(v) for v in configuration.values()]

    def test_largest_float_comes_back_bit_for_bit(self, study: Study) -> None:
        largest = 1.7976931348623157e308
        lease = study.create_trial(0, {"x": largest}, {"x": FloatDistribution(0.0, largest)}, owner=ELSEWHERE)
        study.report(lease, 1, -largest)
        study.tell(lease, TrialState.COMPLETE, value=largest)
        assert (study.trials()[0].value, study.trials()[0].reports) == (largest, {1: -largest})
        assert study.as_optuna().best_value == largest

    def test_wrong_configuration_lists_every_mistake(self, study: Study) -> None:
        wrong: dict[str, JsonScalar] = {"learning_rates": 0.1, "width": 0, "operation": "conv5", "depth": 3}
        with pytest.raises(ValueError, match=r"did you mean 'learning_rate'.*width=0.*operation='conv5'") as error:
            study.create_trial(0, wrong, SPACE, owner=ELSEWHERE)
        assert "depth" not in str(error.value)
        assert study.trials() == ()

    def test_failed_trial_tells_its_cause(self, study: Study) -> None:
        study.tell(begin(study), TrialState.FAILED, cause="oom", attributes={"error": "out of memory"})
        (trial,) = study.trials()
        assert (trial.state, trial.cause, trial.value) == (TrialState.FAILED, "oom", None)
        assert trial.attributes == {"error": "out of memory"}

    def test_infeasible_trial_takes_a_number_and_no_place(self, study: Study) -> None:
        study.add_infeasible(0, CONFIGURATION, SPACE, "needs 9 GiB, allowed are 8")
        assert begin(study, budget=1).number == 1
        first = study.trials()[0]
        assert (first.state, first.cause) == (TrialState.INFEASIBLE, "infeasible")
        assert first.attributes == {"error": "needs 9 GiB, allowed are 8"}
        frozen = study.as_optuna().trials[0]
        assert frozen.state is optuna.trial.TrialState.FAIL
        assert all(value > 0 for value in frozen.constraints.values())
        assert frozen.constraints

    def test_best_trial_is_the_best_complete_one(self, storage: Storage) -> None:
        study = storage.create_study("down", direction="minimize")
        complete(study, 0.5)
        for value in (0.3, 0.3, 0.3, 0.3):
            pruned = begin(study)
            study.report(pruned, 1, value)
            study.tell(pruned, TrialState.PRUNED)
        best = study.best_trial()
        assert best is not None
        assert (best.number, best.value) == (0, 0.5)
        assert study.best_trial(2) is None

    def test_best_trials_of_equal_value_come_in_order_of_their_numbers(self, study: Study) -> None:
        for value in (0.5, 0.75, 0.75, 0.25):
            complete(study, value)
        assert [trial.number for trial in study.best_trials(3)] == [1, 2, 0]
        second = study.best_trial(2)
        assert second is not None
        assert second.number == 2

    def test_trials_are_filtered_by_state(self, study: Study) -> None:
        complete(study, 0.5)
        begin(study)
        assert [trial.number for trial in study.trials([TrialState.RUNNING])] == [1]
        assert study.counts()[TrialState.RUNNING] == 1

    def test_ended_trial_never_changes(self, study: Study) -> None:
        lease = complete(study, 0.5)
        late_calls: tuple[Callable[[], object], ...] = (
            lambda: study.report(lease, 2, 0.75),
            lambda: study.tell(lease, TrialState.COMPLETE, value=0.75),
            lambda: study.tell(lease, TrialState.FAILED, cause="lost"),
            lambda: study.pause(lease),
        )
        for late in late_calls:
            with pytest.raises(LeaseLostError, match="the trial is complete"):
                late()
        assert (study.trials()[0].value, study.trials()[0].reports) == (0.5, {1: 0.5})
        assert study.renew([lease]) == (lease,)

    def test_changed_kind_of_parameter_is_refused_and_other_changes_are_not(
        self, storage: Storage, study: Study
    ) -> None:
        begin(study)
        wider = {"depth": IntDistribution(1, 9, log=True), "operation": CategoricalDistribution(["conv3", "avg"])}
        study.create_trial(1, {"depth": 9, "operation": "avg"}, wider, owner=ELSEWHERE)
        other = storage.open_study("study")
        changed = {"depth": FloatDistribution(1, 8), "operation": FloatDistribution(0, 1)}
        with pytest.raises(IncompatibleDistributionError, match="new study") as error:
            other.create_trial(2, {"depth": 2.0, "operation": 0.5}, changed, owner=ELSEWHERE)
        assert all(name in str(error.value) for name in changed)
        assert len(study.trials()) == 2

    # The budget

    def test_budget_counts_ended_and_paused_trials(self, study: Study) -> None:
        complete(study, 0.5)
        study.pause(begin(study))
        study.tell(begin(study), TrialState.FAILED, cause="oom")
        with pytest.raises(BudgetSpentError, match="3 of 3"):
            begin(study, budget=3)
        assert begin(study, budget=4).number == 3

    def test_number_that_is_taken_is_refused(self, study: Study) -> None:
        begin(study)
        for number in (0, 2):
            with pytest.raises(NumberTakenError, match="the next number is 1"):
                study.create_trial(number, CONFIGURATION, SPACE, owner=ELSEWHERE)
            with pytest.raises(NumberTakenError):
                study.add_infeasible(number, CONFIGURATION, SPACE, "too big")

    def test_budget_is_exact_with_8_threads(self, storage: Storage, study: Study) -> None:
        with ThreadPoolExecutor(8) as threads:
            claims = list(threads.map(lambda _: claim_places(storage.open_study("study"), 24), range(8)))
        assert sorted(number for claim in claims for number in claim) == list(range(24))
        assert [trial.number for trial in study.trials()] == list(range(24))

    def test_budget_is_exact_with_4_processes_on_a_new_database(self, url: str, storage: Storage) -> None:
        with ProcessPoolExecutor(4, mp_context=FORK) as processes:
            claims = list(processes.map(claim_places_of, [url] * 4, [20] * 4))
        assert sorted(number for claim in claims for number in claim) == list(range(20))
        assert [trial.number for trial in storage.open_study("shared").trials()] == list(range(20))

    def test_processes_that_meet_a_new_database_make_it_once(self, url: str) -> None:
        with ProcessPoolExecutor(4, mp_context=FORK) as processes:
            same = list(processes.map(create_and_count, [url] * 4, ["same"] * 4))
            apart = list(processes.map(create_and_count, [url] * 4, ["a", "b", "c", "d"]))
        assert len({study_id for study_id, _ in same}) == 1
        assert len({study_id for study_id, _ in apart}) == 4

    def test_limits_are_replaced_one_by_one(self, storage: Storage, study: Study) -> None:
        study.set_limits(Limits(trials=5, timeout_s=60.0))
        other = storage.open_study("study")
        other.set_limits(Limits(trials=50), ["trials"])
        study.set_limits(Limits(timeout_s=600.0, target_value=0.5), ["timeout_s", "target_value"])
        assert study.limits == Limits(trials=50, timeout_s=600.0, target_value=0.5)
        other.raise_trials(40)
        assert study.limits.trials == 50
        other.raise_trials(60)
        assert study.look().standing.limits == Limits(trials=60, timeout_s=600.0, target_value=0.5)

    def test_searched_time_counts_the_signs_of_life_and_no_rest(self, storage: Storage, study: Study) -> None:
        def searched(since_last_sign_s: float) -> None:
            values = {"searched_s": 50.0, "searched_until": epoch_now() - since_last_sign_s}
            with storage.engine.begin() as connection:
                connection.execute(automl_studies.update().values(values))

        searched(20.0)
        assert study.standing.searched_s == pytest.approx(70.0, abs=5.0)
        searched(60.0)
        assert study.standing.searched_s == 50.0, "nobody knows yet whether that was a rest"
        study.renew(())
        assert study.standing.searched_s == pytest.approx(110.0, abs=5.0)
        searched(100.0)
        study.renew(())
        assert study.standing.searched_s == pytest.approx(50.0, abs=5.0)
        searched(20.0)
        study.renew((), is_last=True)
        at_the_end = study.standing.searched_s
        assert at_the_end == pytest.approx(70.0, abs=5.0)
        assert study.standing.searched_s == at_the_end

    def test_limits_and_stop_hold_for_a_study_of_plain_optuna(self, url: str, storage: Storage) -> None:
        if storage.file is not None:
            storage.file.parent.mkdir()
        _make_plain_study(_driver_url(url))
        study = storage.open_study("plain")
        study.set_limits(Limits(trials=3))
        study.stop()
        assert study.limits == Limits(trials=3)
        assert study.standing.stopped_at is not None
        assert study.specification == {}

    # Leases

    def test_owner_of_a_deleted_studys_trial_writes_to_no_other(self, storage: Storage) -> None:
        gone = storage.create_study("gone", direction="minimize")
        old = begin(gone)
        gone.trials()
        storage.delete_study("gone")
        fresh = storage.create_study("gone", direction="minimize")
        new = begin(fresh, owner=process_identity())
        late_calls: tuple[Callable[[], object], ...] = (
            lambda: gone.report(old, 1, 0.111),
            lambda: gone.tell(old, TrialState.COMPLETE, value=0.111),
            lambda: gone.pause(old),
        )
        for late in late_calls:
            with pytest.raises(LeaseLostError):
                late()
        assert gone.renew([old]) == (old,)
        with pytest.raises(StudyNotFoundError):
            gone.create_trial(1, CONFIGURATION, SPACE, owner=ELSEWHERE)
        with pytest.raises(StudyNotFoundError):
            gone.look()
        (trial,) = fresh.trials()
        assert (trial.id, trial.state, trial.reports) == (new.trial_id, TrialState.RUNNING, {})

    def test_many_new_and_many_queued_trials_are_all_seen(self, storage: Storage, study: Study) -> None:
        other = storage.open_study("study")
        study.look()
        other.enqueue([CONFIGURATION] * 120, SPACE)
        assert len(study.trials()) == 120
        other.enqueue([CONFIGURATION] * 450, SPACE)
        lease = begin(other)
        assert [trial.number for trial in study.trials()] == list(range(571))
        other.tell(lease, TrialState.FAILED, cause="oom")
        assert study.trials()[570].state is TrialState.FAILED

    def test_what_optuna_writes_to_our_trial_is_seen(self, study: Study) -> None:
        begin(study)
        study.report(begin(study), 1, 0.25)
        study.as_optuna().tell(0, 0.75)
        assert (study.trials()[0].state, study.trials()[0].value) == (TrialState.COMPLETE, 0.75)
        assert study.trials()[1].reports == {1: 0.25}

    def test_running_trial_of_a_living_owner_is_not_claimable(self, study: Study) -> None:
        lease = begin(study, owner=process_identity())
        assert study.claimable() == ()
        with pytest.raises(NotClaimableError, match=f"{process_identity()} holds it for another"):
            study.claim(lease.trial_id, owner=ELSEWHERE)

    def test_owner_that_was_replaced_is_refused(self, study: Study) -> None:
        old = begin(study, ttl_s=0.0)
        study.report(old, 1, 0.25)
        assert [trial.id for trial in study.claimable()] == [old.trial_id]
        new = study.claim(old.trial_id, owner=process_identity())
        assert (new.trial_id, new.number, new.attempt) == (old.trial_id, 0, 2)
        late_calls: tuple[Callable[[], object], ...] = (
            lambda: study.report(old, 2, 0.5),
            lambda: study.tell(old, TrialState.COMPLETE, value=0.5),
            lambda: study.pause(old),
        )
        for late in late_calls:
            with pytest.raises(LeaseLostError, match="works on it in attempt 2"):
                late()
        assert study.renew([old, new]) == (old,)
        study.report(new, 2, 0.75)
        study.tell(new, TrialState.COMPLETE, value=0.75)
        (trial,) = study.trials()
        assert (trial.value, trial.reports, trial.attempt) == (0.75, {1: 0.25, 2: 0.75}, 2)

    def test_owner_that_comes_back_before_anyone_noticed_goes_on(self, study: Study) -> None:
        lease = begin(study, ttl_s=0.0)
        study.report(lease, 1, 0.25)
        assert study.renew([lease], ttl_s=60.0) == ()
        assert study.claimable() == ()

    def test_paused_trial_goes_on_elsewhere(self, study: Study) -> None:
        lease = begin(study)
        started_at = study.trials()[0].started_at
        study.report(lease, 1, 0.25)
        study.pause(lease)
        (trial,) = study.trials()
        assert (trial.state, trial.owner, trial.reports) == (TrialState.PAUSED, None, {1: 0.25})
        assert study.claimable() == (trial,)
        with pytest.raises(LeaseLostError, match="the trial is paused"):
            study.report(lease, 2, 0.5)
        again = study.claim(trial.id, owner=process_identity())
        assert (again.attempt, study.trials()[0].state) == (2, TrialState.RUNNING)
        assert study.trials()[0].started_at == started_at
        with pytest.raises(NotClaimableError):
            study.claim(trial.id, owner=ELSEWHERE)

    def test_fact_on_a_running_trial_is_found_by_whoever_goes_on_with_it(self, url: str, study: Study) -> None:
        with Storage(url) as elsewhere:
            watcher = elsewhere.open_study("study")
            lease = begin(study, ttl_s=0.0)
            watcher.look()
            study.report(lease, 1, 0.25)
            study.note(lease, {"accumulate": 2})
            study.note(lease, {"accumulate": 4})
            study.report(lease, 2, 0.5)
            assert study.trials()[0].attributes == {"accumulate": 4}
            assert study.trials()[0].reports == {1: 0.25, 2: 0.5}
            taken = watcher.claim(lease.trial_id, owner=process_identity())
            assert watcher.trials()[0].attributes == {"accumulate": 4}
            with pytest.raises(LeaseLostError):
                study.note(lease, {"accumulate": 8})
            watcher.tell(taken, TrialState.COMPLETE, value=0.5, attributes={"best_epoch": 2})
        assert study.trials()[0].attributes == {"accumulate": 4, "best_epoch": 2}

    def test_report_after_a_fact_was_noted_is_in_the_view(self, study: Study) -> None:
        lease = begin(study)
        study.report(lease, 1, 0.5)
        study.note(lease, {"accumulate": 2})
        study.look()
        for epoch in (2, 3):
            (trial,) = study.report(lease, epoch, 0.5 * epoch).trials
            assert dict(trial.reports) == {one: 0.5 * one for one in range(1, epoch + 1)}
            assert trial.attributes == {"accumulate": 2}
        assert dict(study.trials()[0].reports) == {1: 0.5, 2: 1.0, 3: 1.5}

    def test_report_is_in_its_view_however_late_older_looks_come(self, study: Study) -> None:
        study.pause(begin(study))
        lease = study.claim(study.trials()[0].id, owner=process_identity())  # from now on reports are read back
        ended = threading.Event()

        def look() -> None:
            while not ended.is_set():
                study.look()

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(3) as threads:
                lookers = [threads.submit(look) for _ in range(3)]
                try:
                    for epoch in range(1, 41):
                        (trial,) = study.report(lease, epoch, float(epoch)).trials
                        assert trial.last_epoch == epoch
                finally:
                    ended.set()
                for looker in lookers:
                    looker.result()
        finally:
            sys.setswitchinterval(interval)

    def test_threads_that_report_at_once_see_their_own_reports(self, url: str, study: Study) -> None:
        leases = [begin(study) for _ in range(6)]
        epochs = range(1, 16)
        stopped = threading.Event()

        def train(lease: Lease) -> None:
            for epoch in epochs:
                reports = study.report(lease, epoch, epoch / 100).trials[lease.number].reports
                assert list(reports) == list(range(1, epoch + 1))
            study.tell(lease, TrialState.COMPLETE, value=0.5)
            assert study.look().trials[lease.number].state is TrialState.COMPLETE

        def look() -> None:
            while not stopped.is_set():
                assert [trial.number for trial in study.look().trials] == list(range(6))

        with ThreadPoolExecutor(7) as threads:
            watching = threads.submit(look)
            for ended in [threads.submit(train, lease) for lease in leases]:
                ended.result(60.0)
            stopped.set()
            watching.result(60.0)
        with Storage(url) as fresh:
            assert study.trials() == fresh.open_study("study").trials()

    def test_of_8_threads_that_claim_at_once_one_succeeds(self, storage: Storage, study: Study) -> None:
        lease = begin(study)
        study.pause(lease)
        barrier = threading.Barrier(8)

        def claim(_: int) -> int:
            barrier.wait()
            try:
                return storage.open_study("study").claim(lease.trial_id, owner=process_identity()).attempt
            except NotClaimableError:
                return 0

        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(claim, range(8))) == [0] * 7 + [2]

    def test_trial_of_a_killed_process_is_claimable_at_once(self, url: str, study: Study) -> None:
        ready = FORK.Event()
        owner = FORK.Process(target=_own_until_killed, args=(url, ready))
        owner.start()
        assert ready.wait(20.0)
        assert owner.pid is not None
        assert study.claimable() == ()
        os.kill(owner.pid, signal.SIGKILL)
        owner.join(20.0)
        (trial,) = study.claimable()
        assert study.claim(trial.id, owner=process_identity()).attempt == 2

    def test_only_trials_of_this_study_are_claimable(self, storage: Storage, study: Study) -> None:
        other = begin(storage.create_study("other", direction="minimize"), ttl_s=0.0)
        assert study.claimable() == ()
        with pytest.raises(TrialNotFoundError):
            study.claim(other.trial_id, owner=ELSEWHERE)
        with pytest.raises(LeaseLostError):
            study.report(other, 1, 0.5)

    def test_epoch_that_is_trained_again_has_one_value(self, study: Study) -> None:
        old = begin(study)
        for epoch, value in ((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)):
            study.report(old, epoch, value, {"accuracy": value})
        study.pause(old)
        new = study.claim(old.trial_id, owner=ELSEWHERE)
        study.report(new, 2, 0.25, {"accuracy": 0.25})
        (trial,) = study.trials()
        assert trial.reports == {1: 0.1, 2: 0.25}
        assert study.reports(trial) == {1: {"accuracy": 0.1}, 2: {"accuracy": 0.25}}
        study.report(new, 3, 0.35)
        study.report(new, 3, 0.36)
        study.tell(new, TrialState.PRUNED)
        assert study.trials()[0].reports == {1: 0.1, 2: 0.25, 3: 0.36}
        assert study.as_optuna().trials[0].value == 0.36

    # The queue

    def test_queued_trial_takes_its_place_when_it_is_started(self, study: Study) -> None:
        (queued,) = study.enqueue([CONFIGURATION], SPACE)
        (trial,) = study.trials()
        assert (trial.id, trial.state, trial.configuration) == (queued, TrialState.QUEUED, CONFIGURATION)
        assert trial.started_at is None
        assert study.claimable() == ()
        with pytest.raises(NotClaimableError, match="start it instead"):
            study.claim(queued, owner=ELSEWHERE)
        assert begin(study, budget=1).number == 1
        with pytest.raises(BudgetSpentError):
            study.start_queued(queued, owner=ELSEWHERE)
        study.set_limits(Limits(trials=2))
        lease = study.start_queued(queued, owner=ELSEWHERE)
        assert (lease.number, lease.attempt) == (0, 1)
        assert study.trials()[0].state is TrialState.RUNNING
        assert study.trials()[0].started_at is not None
        study.set_limits(Limits())
        with pytest.raises(NotClaimableError, match="it is running"):
            study.start_queued(queued, owner=ELSEWHERE)

    def test_enqueue_refuses_what_does_not_fit(self, study: Study) -> None:
        for wrong in ({"depth": 9}, {"dept": 3}):
            with pytest.raises(ValueError, match="depth"):
                study.enqueue([CONFIGURATION, wrong], SPACE)
        assert study.trials() == ()

    def test_queue_and_import_that_rest_on_an_older_look_are_refused(self, study: Study) -> None:
        begin(study)
        for number in (0, 2):
            with pytest.raises(NumberTakenError):
                study.enqueue([CONFIGURATION], SPACE, number=number)
            with pytest.raises(NumberTakenError):
                study.add_imported([(CONFIGURATION, 0.5)], SPACE, attributes=[{}], number=number)
        study.enqueue([CONFIGURATION, CONFIGURATION], SPACE, number=1)
        study.add_imported([(CONFIGURATION, 0.5)], SPACE, attributes=[{}], number=3)
        assert [trial.number for trial in study.trials()] == [0, 1, 2, 3]

    def test_imported_trial_is_complete_and_is_neither_counted_nor_the_best(
        self, storage: Storage, study: Study
    ) -> None:
        results = [({"depth": depth}, float(depth)) for depth in (1, 8)]
        assert study.add_imported(results, SPACE, attributes=[{"imported_from": "elsewhere"}] * 2) == 2
        complete(study, 0.5)
        first, _, own = study.trials()
        assert (first.state, first.value, first.attempt, first.reports) == (TrialState.COMPLETE, 1.0, 0, {})
        assert first.attributes == {"imported_from": "elsewhere"}
        assert [trial.is_imported for trial in study.trials()] == [True, True, False]
        assert study.look().claimed == 1
        assert study.best_trial() == own
        assert study.counts()[TrialState.COMPLETE] == 1
        (summary,) = storage.studies()
        assert (summary.imported, summary.best_value, summary.counts) == (2, 0.5, study.counts())
        assert [trial.value for trial in study.as_optuna().trials] == [1.0, 8.0, 0.5]

    def test_import_refuses_what_does_not_fit(self, study: Study) -> None:
        for configuration, value in (({"depth": 9}, 0.5), (CONFIGURATION, float("nan"))):
            with pytest.raises(ValueError):
                study.add_imported([(CONFIGURATION, 0.5), (configuration, value)], SPACE, attributes=[{}, {}])
        assert study.trials() == ()

    # Optuna on the same database

    def test_optuna_sees_every_trial(self, study: Study) -> None:
        complete(study, 0.5)
        pruned = begin(study)
        study.report(pruned, 1, 0.25)
        study.report(pruned, 3, 0.75)
        study.tell(pruned, TrialState.PRUNED, attributes={"parameters": 7})
        study.tell(begin(study), TrialState.FAILED, cause="oom")
        begin(study)
        study.pause(begin(study))
        study.enqueue([CONFIGURATION], SPACE)
        frozen = study.as_optuna().trials
        state = optuna.trial.TrialState
        assert [trial.state for trial in frozen] == [
            *(state.COMPLETE, state.PRUNED, state.FAIL, state.RUNNING, state.WAITING, state.WAITING)
        ]
        assert [trial.number for trial in frozen] == list(range(6))
        assert [trial.value for trial in frozen] == [0.5, 0.75, None, None, None, None]
        for trial in frozen:
            assert trial.params == {**CONFIGURATION, "width": 2**53}  # a column of doubles holds no more
            assert trial.distributions == {name: SPACE[name] for name in CONFIGURATION}
        assert frozen[1].intermediate_values == {1: 0.25, 3: 0.75}
        assert frozen[1].user_attrs == {"parameters": 7}
        assert frozen[2].user_attrs == {"cause": "oom"}
        assert frozen[0].duration is not None
        assert frozen[0].duration.total_seconds() >= 0.0

    def test_optuna_functions_work_on_the_study(self, study: Study) -> None:
        space: dict[str, BaseDistribution] = {"rate": FloatDistribution(1e-3, 1.0, log=True), "depth": SPACE["depth"]}
        for number in range(12):
            configuration: dict[str, JsonScalar] = {"rate": 0.01 * (number + 1), "depth": number % 8 + 1}
            lease = study.create_trial(number, configuration, space, owner=ELSEWHERE)
            study.report(lease, 1, 0.1 * number)
            study.tell(lease, TrialState.COMPLETE, value=0.1 * number)
        loaded = study.as_optuna()
        assert loaded.best_trial.number == 11
        assert len(loaded.trials_dataframe()) == 12
        assert set(optuna.importance.get_param_importances(loaded)) == {"rate", "depth"}
        assert loaded.ask(space).number == 12
        for plot in ("plot_optimization_history", "plot_parallel_coordinate", "plot_slice", "plot_timeline"):
            assert getattr(optuna.visualization, plot)(loaded).data

    def test_study_of_plain_optuna_is_read_and_goes_on(self, url: str, storage: Storage) -> None:
        if storage.file is not None:
            storage.file.parent.mkdir()
        made = _make_plain_study(_driver_url(url))
        study = storage.open_study("plain")
        assert (study.direction, study.specification, study.attributes) == ("minimize", {}, {"note": "mine"})
        trials = study.trials()
        assert [trial.state for trial in trials] == [
            *(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING, TrialState.QUEUED)
        ]
        assert [dict(trial.configuration) for trial in trials[:4]] == [trial.params for trial in made.trials[:4]]
        assert trials[4].configuration == {"x": 0.5}
        assert trials[0].value == made.trials[0].value
        assert math.isnan(trials[1].reports[0])
        assert trials[1].reports[1] == math.inf
        assert (trials[2].cause, trials[3].owner, study.claimable()) == (None, None, ())
        best = study.best_trial()
        assert best is not None
        assert best.number == 0
        study = storage.create_study("plain", direction="minimize")
        study.set_limits(Limits(trials=4))
        with pytest.raises(BudgetSpentError, match="4 of 4"):
            study.create_trial(5, {}, {}, owner=ELSEWHERE)
        study.set_limits(Limits(trials=5))
        with pytest.raises(ValueError, match="queued by Optuna"):
            study.start_queued(trials[4].id, owner=ELSEWHERE)
        space = made.trials[0].distributions
        started = study.start_queued(trials[4].id, {"x": 0.5, "op": "b"}, space, owner=ELSEWHERE)
        study.report(started, 1, 0.5)
        study.tell(started, TrialState.COMPLETE, value=0.125)
        assert made.best_value == 0.125
        assert made.trials[4].params == {"x": 0.5, "op": "b"}
        assert study.trials()[4].configuration == {"x": 0.5, "op": "b"}

    def test_optuna_takes_a_queued_trial_of_ours(self, study: Study) -> None:
        study.enqueue([{"learning_rate": 0.25}], SPACE)
        asked = study.as_optuna().ask()
        assert asked.suggest_float("learning_rate", 1e-320, 1.0, log=True) == 0.25
        (trial,) = study.trials()
        assert (trial.state, trial.owner, study.claimable()) == (TrialState.RUNNING, None, ())

    def test_trial_after_a_study_deleted_by_optuna_starts_clean(self, storage: Storage, study: Study) -> None:
        lease = begin(study)
        study.report(lease, 1, 0.5, {"loss": 1.0}, _record("a.pt", 1))
        loaded = study.as_optuna()
        optuna.delete_study(study_name=loaded.study_name, storage=loaded._storage)
        fresh = storage.create_study("fresh", direction="minimize")
        assert fresh.specification == {}
        begin(fresh)
        (trial,) = fresh.trials()
        assert (trial.attempt, fresh.reports(trial), fresh.checkpoints(trial)) == (1, {}, ())

    # What it costs

    def test_each_write_is_one_transaction_of_few_statements(self, storage: Storage, study: Study) -> None:
        space: dict[str, BaseDistribution] = {f"p{i}": FloatDistribution(0.0, 1.0) for i in range(10)}
        configuration: dict[str, JsonScalar] = dict.fromkeys(space, 0.5)
        study.create_trial(0, configuration, space, owner=ELSEWHERE)
        study.look()
        with counted(storage) as create:
            lease = study.create_trial(1, configuration, space, owner=ELSEWHERE, attributes={"parent": 0})
        with counted(storage) as report:
            study.report(lease, 1, 0.5, {"loss": 1.0}, _record("a.pt", 1))
        with counted(storage) as tell:
            study.tell(lease, TrialState.COMPLETE, value=0.5, attributes={"a": 1, "b": 2})
        with counted(storage) as look:
            study.look()
        assert "COMMIT" not in look
        for statements, most in ((create, 7), (report, 6), (tell, 5), (look, 1)):
            assert statements.count("COMMIT") <= 1
            assert len(statements) <= most, statements

    def test_reading_costs_the_same_for_10_and_500_trials(self, storage: Storage) -> None:
        costs = {}
        for size in (10, 500):
            study = storage.create_study(f"size {size}", direction="minimize")
            _insert_ended_trials(storage, study, size - 4)
            for _ in range(4):
                begin(study)
            with counted(storage) as cold:
                assert len(storage.open_study(study.name).trials()) == size
            with counted(storage) as warm:
                assert len(study.trials()) == size
            with counted(storage) as sums:
                storage.studies()
            costs[size] = (len(cold), len(warm), len(sums))
        assert costs[10] == costs[500]
        assert max(costs[500]) <= 10

    def test_ended_trials_are_read_once(self, study: Study) -> None:
        complete(study, 0.5)
        begin(study)
        first, second = study.trials(), study.trials()
        assert first[0] is second[0]
        assert first[1] == second[1]

    # Checkpoints

    def test_checkpoints_come_newest_first(self, study: Study) -> None:
        old = begin(study)
        for epoch in (1, 2, 3):
            study.report(old, epoch, 0.5, {}, _record(f"0/{epoch}.pt", epoch))
        study.pause(old)
        new = study.claim(old.trial_id, owner=ELSEWHERE)
        study.report(new, 2, 0.5, {}, _record("0/2-again.pt", 2))
        records = study.checkpoints(new)
        assert [(record.path, record.epoch, record.attempt) for record in records] == [
            ("0/2-again.pt", 2, 2),
            ("0/3.pt", 3, 1),
            ("0/2.pt", 2, 1),
            ("0/1.pt", 1, 1),
        ]
        study.forget_checkpoints(new, records[1:])
        assert study.checkpoints(study.trials()[0]) == records[:1]


def _record(path: str, epoch: int) -> CheckpointRecord:
    return CheckpointRecord(path=path, epoch=epoch, attempt=1, digest="0" * 64, size_bytes=2**40)


def _own_until_killed(url: str, ready: Any) -> None:
    with Storage(url) as storage:
        begin(storage.open_study("study"), owner=process_identity())
        ready.set()
        signal.pause()


def _driver_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def _insert_ended_trials(storage: Storage, study: Study, count: int) -> None:
    """Insert many trials as plain Optuna would have, in a few statements."""
    trials = [{"study_id": study.id, "number": number, "state": "COMPLETE"} for number in range(count)]
    distribution = distribution_to_json(FloatDistribution(0.0, 1.0))
    with storage.engine.begin() as connection:
        connection.execute(optuna_tables.trials.insert(), trials)
        where = optuna_tables.trials.c.study_id == study.id
        ids = connection.scalars(select(optuna_tables.trials.c.trial_id).where(where)).all()
        children: Mapping[Table, Mapping[str, object]] = {
            optuna_tables.trial_params: {"param_name": "x", "param_value": 0.5, "distribution_json": distribution},
            optuna_tables.trial_values: {"objective": 0, "value": 0.5, "value_type": "FINITE"},
            optuna_tables.trial_user_attributes: {"key": "a", "value_json": "1"},
        }
        for table, row in children.items():
            connection.execute(table.insert(), [{"trial_id": trial_id, **row} for trial_id in ids])


def _make_plain_study(url: str) -> optuna.Study:
    storage = optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool})
    made = optuna.create_study(study_name="plain", storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
    made.set_user_attr("note", "mine")
    for number in range(4):
        trial = made.ask()
        trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_categorical("op", ["a", "b"])
        match number:
            case 0:
                made.tell(trial, 0.25)
            case 1:
                trial.report(math.nan, 0)
                trial.report(math.inf, 1)
                made.tell(trial, state=optuna.trial.TrialState.PRUNED)
            case 2:
                made.tell(trial, state=optuna.trial.TrialState.FAIL)
    made.enqueue_trial({"x": 0.5})
    return made
