"""Several processes that search one study at once, on a database that does not exist before."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from studies.storage import Storage
from studies.trial import TrialState
from tests.helpers.commands import environment_of
from tests.helpers.postgres import postgres_server, postgres_url
from tests.helpers.searches import ForkedSearch
from tests.helpers.toy import loss_after

__all__ = ["postgres_server", "postgres_url"]

TRIALS = 12
DRIVERS = 3


def search_at_once(storage: str, folder: Path) -> None:
    arguments = (
        "search", "--space", "tests.helpers.toy", "--storage", storage, "--artifacts", folder / "artifacts",
        "--study", "shared", "--metric", "loss", "--epochs", 3, "--trials", TRIALS, "--sampler", "random",
        "--pruner", "none", "--executor", "inline", "--quiet",
    )  # fmt: skip
    with ExitStack() as stack:
        commands = [
            stack.enter_context(ForkedSearch(*arguments, folder=folder, environment=environment_of(folder)))
            for _ in range(DRIVERS)
        ]
        for command in commands:
            ended = command.ended()
            assert ended.code == 0, str(ended)
            assert ended.err == "", "nothing went wrong, so nothing is said"


def check_every_trial_ended_once(storage: str) -> None:
    trials = Storage(storage).open_study("shared").trials()
    assert [trial.number for trial in trials] == list(range(TRIALS))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert {trial.attempt for trial in trials} == {1}
    assert len({trial.configuration["x"] for trial in trials}) == TRIALS
    for trial in trials:
        x = float(str(trial.configuration["x"]))
        assert dict(trial.reports) == {epoch: loss_after(epoch, x) for epoch in (1, 2, 3)}


def test_several_drivers_share_one_budget_on_sqlite(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    search_at_once(storage, tmp_path)
    check_every_trial_ended_once(storage)


@pytest.mark.slow
@pytest.mark.postgres
def test_several_drivers_share_one_budget_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    search_at_once(postgres_url, tmp_path)
    check_every_trial_ended_once(postgres_url)
