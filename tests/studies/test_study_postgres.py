from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from studies.errors import BudgetSpentError
from studies.schema import optuna_tables
from studies.schema.tables import automl_trials
from studies.standing import Limits
from studies.storage import Storage
from tests.contracts.study_contract import StudyContract, begin
from tests.helpers.commands import until

_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'automl'"


@pytest.mark.postgres
class TestStudyOnPostgres(StudyContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def test_budget_is_the_one_that_holds_after_the_wait_for_the_lock(self, url: str, storage: Storage) -> None:
        study = storage.create_study("study", direction="minimize", limits=Limits(trials=9))
        begin(study)
        with Storage(f"{url}%20-cwork_mem%3D1MB") as other, ThreadPoolExecutor(1) as thread:
            with other.engine.connect().execution_options(isolation_level="READ COMMITTED") as holder:
                holder.execute(select(optuna_tables.studies).with_for_update())
                birth = thread.submit(begin, study)
                with other.engine.connect() as watcher:
                    until(lambda: watcher.scalar(text(_WAITS)), 10.0, "the birth to wait for the lock")
                holder.execute(text("UPDATE automl_studies SET max_trials = 1"))
                holder.commit()
            with pytest.raises(BudgetSpentError, match="1 of 1"):
                birth.result(30.0)

    def test_locked_row_of_one_trial_holds_up_neither_the_leases_nor_the_reports_of_others(
        self, url: str, storage: Storage
    ) -> None:
        study = storage.create_study("study", direction="minimize")
        locked, free = begin(study, ttl_s=0.0), begin(study, ttl_s=0.0)
        with (
            Storage(url) as other,
            other.engine.connect().execution_options(isolation_level="READ COMMITTED") as holder,
        ):
            row = select(automl_trials).where(automl_trials.c.trial_id == locked.trial_id)
            holder.execute(row.with_for_update())
            with ThreadPoolExecutor(1) as thread:
                waiting = thread.submit(study.report, locked, 1, 0.5)
                assert study.renew([locked, free], patience_s=0.0) == ()
                assert [trial.id for trial in study.claimable()] == [locked.trial_id]
                assert study.report(free, 1, 0.5).trials[free.number].reports == {1: 0.5}
                assert not waiting.done()
                holder.rollback()
                assert waiting.result(30.0).trials[locked.number].reports == {1: 0.5}
        assert study.renew([locked, free]) == ()
        assert study.claimable() == ()
