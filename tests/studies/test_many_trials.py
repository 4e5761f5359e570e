"""A study of 5,000 trials among many small ones is looked at in seconds, in as many statements as one of 100."""

import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from automl.cli.export import export
from automl.cli.studies import best, status
from studies.storage import Storage
from tests.helpers.commands import Command, environment_of
from tests.helpers.many_trials import fill_study

MANY = 5_000
SMALL_STUDIES = 50
SPECIFICATION = {"metric": "loss"}
LOOKS: Mapping[str, Callable[[str], int]] = {
    "status": lambda url: status(None, url),
    "status of one": lambda url: status("many", url),
    "best": lambda url: best("many", 3, url),
    "export": lambda url: export("many", "csv", None, url),
    "export with reports": lambda url: export("many", "json", None, url),
}


@pytest.fixture(scope="module")
def crowded_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('crowded')}/studies.db"
    with Storage(url) as storage:
        many = storage.create_study("many", direction="minimize", specification=SPECIFICATION)
        fill_study(storage, many, MANY, parameters=10, steps=5)
        for number in range(SMALL_STUDIES):
            fill_study(storage, storage.create_study(f"small {number}", direction="minimize"), 20, seed=number)
    return url


def cpu_s_of(folder: Path, *arguments: str) -> tuple[float, str]:
    """CPU time of a command, to which other work on the machine does not count, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Command(*arguments, folder=folder, environment=environment_of(folder)) as command:
        ended = command.ended()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.code == 0, ended
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended.out


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        pytest.param(("status",), "3500 complete, 1000 pruned, 500 failed", id="status"),
        pytest.param(("status", "many"), "3500 complete, 1000 pruned, 500 failed", id="status of one"),
        pytest.param(("best", "many"), "complete, value 0.2", id="best"),
        pytest.param(("best", "many", "-k", "100", "--json"), '"state": "complete"', id="best hundred"),
    ],
)
def test_looking_at_many_trials_takes_less_than_two_seconds(
    crowded_url: str, tmp_path: Path, arguments: tuple[str, ...], shown: str
) -> None:
    seconds, out = cpu_s_of(tmp_path, *arguments, "--storage", crowded_url)
    assert shown in out
    assert seconds < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("report", "--output", "report.html"), id="report"),
        pytest.param(("export", "--output", "trials.csv"), id="csv"),
        pytest.param(("export", "--output", "trials.json"), id="json"),
        pytest.param(("export", "--output", "trials.parquet"), id="parquet"),
    ],
)
def test_writing_many_trials_takes_less_than_thirty_seconds(
    crowded_url: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    seconds, out = cpu_s_of(tmp_path, arguments[0], "many", *arguments[1:], "--storage", crowded_url)
    assert (tmp_path / out.strip()).stat().st_size > 100_000
    assert seconds < 30


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are executed in the `with` block."""
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


def check_statements_do_not_grow(url: str) -> None:
    with Storage(url) as storage:
        study = storage.create_study("many", direction="minimize", specification=SPECIFICATION)
        numbers: list[dict[str, int]] = []
        for more in (100, MANY - 100):
            fill_study(storage, study, more, steps=5)
            numbers.append({})
            for name, look in LOOKS.items():
                # An engine belongs to its address, so that the command's statements pass through this one.
                with counted(storage.engine) as statements:
                    assert look(url) == 0
                numbers[-1][name] = len(statements)
        few, many = numbers
        assert few == many
        assert all(0 < number < 30 for number in few.values()), few


def test_statements_do_not_grow_with_the_trials(tmp_path: Path) -> None:
    check_statements_do_not_grow(f"sqlite:///{tmp_path}/studies.db")


@pytest.mark.postgres
def test_statements_do_not_grow_with_the_trials_on_postgres(postgres_url: str) -> None:
    check_statements_do_not_grow(postgres_url)


@pytest.mark.mysql
def test_statements_do_not_grow_with_the_trials_on_mariadb(mariadb_url: str) -> None:
    check_statements_do_not_grow(mariadb_url)


def test_study_filled_in_bulk_is_the_one_that_calls_would_have_left(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        whole = storage.create_study("whole", direction="minimize")
        fill_study(storage, whole, 30)
        parts = storage.create_study("parts", direction="minimize")
        fill_study(storage, parts, 10)
        fill_study(storage, parts, 20)
        facts = [
            [(t.number, t.state, t.configuration, t.reports, t.value, t.cause, t.attributes) for t in study.trials()]
            for study in (whole, parts)
        ]
        assert facts[0] == facts[1]
        seen = whole.as_optuna().get_trials(deepcopy=False)
        assert [trial.params for trial in seen] == [dict(trial.configuration) for trial in whole.trials()]
        assert all(set(whole.reports(trial)) == set(trial.reports) for trial in whole.trials())
