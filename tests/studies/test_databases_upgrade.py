"""Databases of other times: refused with what to do, upgraded without a loss, and a copy of them is kept."""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import optuna
import pytest
from alembic import command
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from sqlalchemy import NullPool, text

from studies.errors import StorageError
from studies.schema.forms import our_migrations, ours_config
from studies.schema.optuna_tables import OPTUNA_REVISION
from studies.sqlite_file import copy_beside
from studies.storage import Storage, Upgrade
from studies.trial import TrialState
from tests.contracts.study_contract import ELSEWHERE

ASSETS = Path(__file__).parent / "assets"
HEAD = our_migrations().get_current_head()
OLDER_OPTUNA = "v3.0.0.d"


@pytest.fixture
def first_form(tmp_path: Path) -> Path:
    """A database that the first form of this program wrote: trials in every state."""
    return Path(shutil.copy(ASSETS / "automl-0001.db", tmp_path / "studies.db"))


@pytest.fixture
def optuna_4(tmp_path: Path) -> Path:
    """A database that Optuna 4.4 wrote, on a machine nine hours east of UTC."""
    return Path(shutil.copy(ASSETS / "optuna-4.db", tmp_path / "optuna.db"))


@pytest.fixture
def older_optuna(tmp_path: Path) -> Path:
    """A database with Optuna's tables as they were one revision ago, and a complete trial."""
    file = tmp_path / "older.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}", engine_kwargs={"poolclass": NullPool})
    optuna.create_study(study_name="older", storage=storage).add_trial(optuna.trial.create_trial(value=0.5))
    # Optuna's own downgrade fails on a new database: what it made has another name for the index.
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP INDEX ix_trials_study_id")
        connection.execute("UPDATE alembic_version SET version_num = ?", [OLDER_OPTUNA])
    return file


def revisions(file: Path) -> tuple[str | None, str | None]:
    """The forms of Optuna's tables and of ours."""
    with closing(sqlite3.connect(file)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        found = [
            connection.execute(f"SELECT version_num FROM {table}").fetchone()[0] if table in tables else None
            for table in ("alembic_version", "automl_alembic_version")
        ]
    return found[0], found[1]


class TestRefusal:
    @pytest.mark.parametrize(
        "use",
        [
            lambda storage: storage.studies(),
            lambda storage: storage.open_study("old"),
            lambda storage: storage.create_study("old", direction="minimize"),
        ],
        ids=["studies", "open", "create"],
    )
    def test_tables_of_an_older_form_are_left_alone_until_they_are_upgraded(
        self, first_form: Path, use: Callable[[Storage], object]
    ) -> None:
        before = first_form.read_bytes()
        wanted = (
            rf"automl's tables in form 0001.*needs {HEAD}.*automl storage upgrade --storage 'sqlite:///{first_form}'"
        )
        with Storage(f"sqlite:///{first_form}") as storage, pytest.raises(StorageError, match=wanted):
            use(storage)
        assert first_form.read_bytes() == before

    def test_older_optuna_is_named_with_both_forms_and_the_command(self, older_optuna: Path) -> None:
        wanted = rf"Optuna's tables in form {OLDER_OPTUNA}.*needs {OPTUNA_REVISION}.*automl storage upgrade"
        with Storage(f"sqlite:///{older_optuna}") as storage, pytest.raises(StorageError, match=wanted):
            storage.open_study("older")

    def test_program_of_another_and_its_database_stay_as_they_are(self, tmp_path: Path) -> None:
        file = tmp_path / "tracker.db"
        with closing(sqlite3.connect(file)) as other:
            other.executescript(
                "CREATE TABLE alembic_version (version_num VARCHAR(32)); CREATE TABLE runs (id INTEGER);"
                "INSERT INTO alembic_version VALUES ('0a1b2c3d4e5f')"
            )
        before = file.read_bytes()
        with (
            Storage(f"sqlite:///{file}") as storage,
            pytest.raises(StorageError, match="its tables: alembic_version, runs"),
        ):
            storage.upgrade()
        assert file.read_bytes() == before
        assert list(tmp_path.iterdir()) == [file]

    def test_tables_of_others_without_ours_are_no_hindrance(self, tmp_path: Path) -> None:
        file = tmp_path / "shared.db"
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE customers (id INTEGER)")
        with Storage(f"sqlite:///{file}") as storage:
            storage.create_study("study", direction="minimize")
        with closing(sqlite3.connect(file)) as other:
            assert other.execute("SELECT count(*) FROM customers").fetchone() == (0,)


class TestUpgrade:
    def test_everything_is_still_there(self, first_form: Path) -> None:
        with Storage(f"sqlite:///{first_form}") as storage:
            result = storage.upgrade()
            study = storage.open_study("old")
            trials = study.trials()
        assert result.done == (f"automl's tables from form 0001 to {HEAD}",)
        assert [trial.state.value for trial in trials] == [
            "complete", "complete", "complete", "pruned", "failed", "paused", "running", "queued", "infeasible",
        ]  # fmt: skip
        assert [trial.configuration["x"] for trial in trials[3:]] == [0.9, 0.8, 0.1, 0.2, 0.25, 0.99]
        assert (trials[0].value, trials[0].attributes) == (0.3418170686525076, {"world_size": 1, "best_epoch": 3})
        assert (trials[4].cause, trials[4].attributes["error"]) == ("oom", "out of memory")
        assert (trials[6].attempt, trials[6].reports) == (2, {1: 1.01, 2: 0.51})
        assert [record.path for record in study.checkpoints(trials[6])] == [
            "old/trial-00006/attempt-2/epoch-0002.json", "old/trial-00006/attempt-1/epoch-0001.json",
        ]  # fmt: skip
        assert study.reports(trials[0])[1] == {"loss": 1.0084837353191742, "accuracy": -1.0084837353191742}
        assert study.attributes["note"] == {"text": "é😀"}
        assert (study.specification["space"], study.specification["seed"]) == ("tests.helpers.toy", 7)

    def test_upgraded_study_goes_on(self, first_form: Path) -> None:
        with Storage(f"sqlite:///{first_form}") as storage:
            storage.upgrade()
            study = storage.open_study("old")
            assert {trial.number for trial in study.claimable()} == {5, 6}  # the owner of 6 is gone
            lease = study.claim(study.trials()[6].id, owner=ELSEWHERE)
            study.report(lease, 3, 0.25)
            study.tell(lease, TrialState.COMPLETE, value=0.25)
            best = study.best_trial()
        assert best is not None
        assert (best.number, best.attempt) == (6, 3)

    def test_copy_is_the_database_as_it_was_and_is_never_overwritten(self, first_form: Path) -> None:
        first_form.with_name("studies.db.0001.bak").write_text("somebody's own")
        with Storage(f"sqlite:///{first_form}") as storage:
            copy = storage.upgrade().copy
        assert copy == first_form.with_name("studies.db.0002.bak")
        assert copy is not None
        assert revisions(copy) == (OPTUNA_REVISION, "0001")
        assert first_form.with_name("studies.db.0001.bak").read_text() == "somebody's own"

    def test_copy_holds_what_is_still_in_the_log(self, first_form: Path) -> None:
        with closing(sqlite3.connect(first_form)) as writer:
            writer.execute("PRAGMA wal_autocheckpoint=0")
            with writer:
                writer.execute("INSERT INTO studies (study_name) VALUES ('late')")
            assert first_form.with_name("studies.db-wal").stat().st_size > 0
            copy = copy_beside(first_form)
        with closing(sqlite3.connect(copy)) as reader:
            assert ("late",) in reader.execute("SELECT study_name FROM studies").fetchall()
        assert not copy.with_name(f"{copy.name}-wal").exists()

    def test_second_time_there_is_nothing_to_do(self, first_form: Path) -> None:
        with Storage(f"sqlite:///{first_form}") as storage:
            storage.upgrade()
            before = sorted(first_form.parent.iterdir())
            again = storage.upgrade()
        assert (again.done, again.copy) == ((), None)
        assert sorted(path for path in before if path.suffix == ".bak") == [first_form.with_name("studies.db.0001.bak")]

    @pytest.mark.parametrize("is_there", [True, False], ids=["empty file", "no file"])
    def test_database_without_anything_gets_all_tables(self, tmp_path: Path, is_there: bool) -> None:
        file = tmp_path / "folder" / "studies.db"
        if is_there:
            file.parent.mkdir()
            file.touch()
        with Storage(f"sqlite:///{file}") as storage:
            assert storage.upgrade().done == ("made all tables",)
            assert storage.studies() == ()
            assert storage.upgrade().done == ()
        assert revisions(file) == (OPTUNA_REVISION, HEAD)

    def test_older_optuna_is_upgraded_by_optuna(self, older_optuna: Path) -> None:
        with Storage(f"sqlite:///{older_optuna}") as storage:
            result = storage.upgrade()
            assert result.done[0] == f"Optuna's tables from form {OLDER_OPTUNA} to {OPTUNA_REVISION}"
            assert storage.open_study("older").trials()[0].value == 0.5
        assert revisions(older_optuna) == (OPTUNA_REVISION, HEAD)
        assert result.copy is not None
        assert revisions(result.copy) == (OLDER_OPTUNA, None)


class TestServers:
    """The same on a server, where no copy is made: that is the work of the server's own tools."""

    @pytest.fixture(
        params=[
            pytest.param("postgres_url", marks=pytest.mark.postgres),
            pytest.param("mariadb_url", marks=pytest.mark.mysql),
        ]
    )
    def url(self, request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(request.param)).replace("postgresql://", "postgresql+psycopg://")

    def test_first_form_with_rows_is_upgraded(self, url: str) -> None:
        theirs = optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool})
        optuna.create_study(study_name="old", storage=theirs).add_trial(optuna.trial.create_trial(value=0.5))
        with theirs.engine.begin() as connection:
            config = ours_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.execute(text('INSERT INTO automl_studies VALUES (1, \'{"space": "toy", "trials": 4}\')'))
            connection.execute(
                text("INSERT INTO automl_trials VALUES (1, 1, '{\"x\": 0.25}', 1, NULL, NULL, :no)"), {"no": False}
            )
        with Storage(url) as storage:
            with pytest.raises(StorageError, match="form 0001"):
                storage.open_study("old")
            assert storage.upgrade() == Upgrade(done=(f"automl's tables from form 0001 to {HEAD}",), copy=None)
            study = storage.open_study("old")
            assert study.specification["space"] == "toy"
            assert (study.trials()[0].configuration, study.trials()[0].value) == ({"x": 0.25}, 0.5)
            assert storage.upgrade().done == ()

    @pytest.mark.postgres
    def test_older_optuna_is_upgraded_by_optuna(self, postgres_url: str) -> None:
        url = postgres_url.replace("postgresql://", "postgresql+psycopg://")
        theirs = optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool})
        optuna.create_study(study_name="older", storage=theirs)
        with theirs.engine.begin() as connection:
            connection.execute(text("DROP INDEX ix_trials_study_id"))
            connection.execute(text("UPDATE alembic_version SET version_num = :older"), {"older": OLDER_OPTUNA})
        with Storage(url) as storage:
            assert storage.upgrade().done[0] == f"Optuna's tables from form {OLDER_OPTUNA} to {OPTUNA_REVISION}"
            assert [summary.name for summary in storage.studies()] == ["older"]


class TestOptuna4:
    SPACE: ClassVar[Mapping[str, BaseDistribution]] = {
        "x": FloatDistribution(0.0, 1.0),
        "operation": CategoricalDistribution(["conv3", "skip", None]),
    }

    def test_study_opens_and_is_read_as_it_is(self, optuna_4: Path) -> None:
        with Storage(f"sqlite:///{optuna_4}") as storage:
            trials = storage.open_study("from optuna 4").trials()
        assert [trial.state.value for trial in trials] == [
            "complete", "complete", "complete", "pruned", "failed", "running", "queued",
        ]  # fmt: skip
        assert trials[1].configuration == {"x": 0.14675589081711304, "operation": None}
        assert trials[1].reports == {0: 1.1467558908171132, 1: 0.14675589081711304}
        assert trials[6].configuration == {"x": 0.25, "operation": "skip"}

    def test_study_goes_on_and_optuna_reads_it(self, optuna_4: Path) -> None:
        with Storage(f"sqlite:///{optuna_4}") as storage:
            study = storage.create_study("from optuna 4", direction="minimize")
            queued = study.trials()[6]
            lease = study.start_queued(queued.id, queued.configuration, self.SPACE, owner=ELSEWHERE)
            study.report(lease, 1, 0.125)
            study.tell(lease, TrialState.COMPLETE, value=0.125)
            lease = study.create_trial(7, {"x": 0.5, "operation": "conv3"}, self.SPACE, owner=ELSEWHERE)
            study.tell(lease, TrialState.COMPLETE, value=0.5)
            reread = optuna.load_study(
                study_name="from optuna 4",
                storage=optuna.storages.RDBStorage(f"sqlite:///{optuna_4}", engine_kwargs={"poolclass": NullPool}),
            )
            assert (reread.best_trial.number, reread.best_value) == (6, 0.125)
            assert len(reread.trials) == 8
            assert reread.user_attrs["team"] == "vision"
