"""Input checks of `Study`, which need one database only; the laws are in `tests/contracts/study_contract.py`."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from studies.errors import InvalidNameError
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, TrialState
from tests.contracts.study_contract import begin


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with Storage(f"sqlite:///{tmp_path_factory.mktemp('study') / 'studies.db'}") as storage:
        yield storage


@pytest.fixture
def study(storage: Storage, request: pytest.FixtureRequest) -> Study:
    return storage.create_study(request.node.name, direction="maximize")


@pytest.mark.parametrize("name", ["", "x" * 513, "tab\there", "\x00"])
def test_create_study_with_a_name_that_does_not_fit_is_refused(storage: Storage, name: str) -> None:
    with pytest.raises(InvalidNameError, match="512"):
        storage.create_study(name, direction="minimize")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "0.3", None, True])
def test_objective_that_is_no_finite_number_is_refused(study: Study, value: Any) -> None:
    lease = begin(study)
    with pytest.raises(ValueError, match="not a finite number"):
        study.report(lease, 1, value)
    with pytest.raises(ValueError, match=r"not a finite number|exactly a complete trial has a value"):
        study.tell(lease, TrialState.COMPLETE, value=value)
    assert study.trials()[0].state is TrialState.RUNNING


@pytest.mark.parametrize("epoch", [0, -1, 1.5, True])
def test_epoch_that_is_no_whole_number_from_1_is_refused(study: Study, epoch: Any) -> None:
    with pytest.raises(ValueError, match="not a whole number from 1"):
        study.report(begin(study), epoch, 0.5)


@pytest.mark.parametrize(
    ("state", "arguments"),
    [
        (TrialState.COMPLETE, {}),
        (TrialState.PRUNED, {"value": 0.5}),
        (TrialState.FAILED, {}),
        (TrialState.PRUNED, {"cause": "oom"}),
        (TrialState.RUNNING, {}),
        (TrialState.PAUSED, {}),
        (TrialState.QUEUED, {}),
        (TrialState.INFEASIBLE, {"cause": "infeasible"}),
        (TrialState.FAILED, {"cause": "oom", "attributes": {"cause": "other"}}),
        (TrialState.FAILED, {"cause": "oom", "attributes": {"loss": math.nan}}),
    ],
)
def test_tell_that_does_not_fit_is_refused(study: Study, state: TrialState, arguments: dict[str, Any]) -> None:
    lease = begin(study)
    with pytest.raises(ValueError, match=r"trial|attribute"):
        study.tell(lease, state, **arguments)
    assert study.trials()[0].state is TrialState.RUNNING


@pytest.mark.parametrize("path", ["/tmp/a.pt", "../a.pt", "a/../../b.pt", "", "a\\b.pt", "x" * 1025])
def test_checkpoint_path_that_leaves_the_root_is_refused(study: Study, path: str) -> None:
    lease = begin(study)
    with pytest.raises(ValueError, match="relative to that root"):
        study.report(lease, 1, 0.5, {}, CheckpointRecord(path=path, epoch=1, attempt=1, digest="0" * 64, size_bytes=1))
    assert study.trials()[0].reports == {}
