"""Results that wait on this machine: what a trial rests with is stored with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from automl.errors import SearchCutOffError
from automl.outbox import KeptReport, KeptResult, Outbox
from studies.errors import StorageError
from studies.storage import Storage
from studies.study import Study
from studies.trial import Lease, TrialState
from tests.automl.conftest import Search
from tests.helpers.hungry_toy import SPACE, HungryTrainer
from tests.helpers.toy import SPACE as TOY


@pytest.fixture
def study(storage: str) -> Study:
    return Storage(storage).create_study("toy", direction="minimize")


@pytest.fixture
def lease(study: Study) -> Lease:
    return study.create_trial(0, {"x": 0.5}, TOY.distributions(), owner="this machine")


def test_rest_is_delivered_with_its_report_its_loss_and_its_facts(study: Study, lease: Lease) -> None:
    outbox = Outbox(study.name, study.storage_url)
    report = KeptReport(epoch=1, value=0.5, metrics={"loss": 0.5}, checkpoint=None)
    rest = KeptResult(lease=lease, state=TrialState.PAUSED, attributes={"memory_kills": 1}, report=report, is_lost=True)
    path = outbox.keep(rest)
    assert outbox.deliver(study) == [0]
    assert not path.exists()
    (trial,) = study.trials()
    assert (trial.state, trial.losses, dict(trial.reports)) == (TrialState.PAUSED, 1, {1: 0.5})
    assert trial.attributes["memory_kills"] == 1


def test_rest_that_an_older_program_kept_is_delivered(study: Study, lease: Lease) -> None:
    outbox = Outbox(study.name, study.storage_url)
    path = outbox.keep(KeptResult(lease=lease, state=TrialState.PAUSED))
    content = json.loads(path.read_text())
    del content["is_lost"], content["report"]
    path.write_text(json.dumps(content))
    assert outbox.deliver(study) == [0]
    (trial,) = study.trials()
    assert (trial.state, trial.losses) == (TrialState.PAUSED, 0)


def test_smaller_micro_batch_that_cannot_be_stored_is_what_the_next_run_begins_with(
    toy_search: Search, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.enqueue([SPACE.validate({"x": 0.5, "room": 8, "batch_size": 16})], SPACE.distributions())
    fields: dict[str, Any] = {
        "space": "tests.helpers.hungry_toy",
        "trials": 1,
        "epochs": 3,
        "artifacts": str(tmp_path / "artifacts"),
    }

    def refuse(study: Study, lease: Lease, attributes: object) -> None:
        raise StorageError("the server is away")

    HungryTrainer.tried.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Study, "note", refuse)
        with pytest.raises(SearchCutOffError, match="what became of trial 0 lies in"):
            toy_search(**fields)
    toy_search(**fields)
    assert HungryTrainer.tried == [(1, 16), (2, 16), (2, 8), (3, 8)]
    (trial,) = study.trials()
    assert (trial.state, trial.attempt, trial.losses) == (TrialState.COMPLETE, 2, 0)
