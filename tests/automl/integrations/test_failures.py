"""What becomes of the errors that Tune has kept."""

from pathlib import Path

import pytest
from ray import cloudpickle
from ray.exceptions import OutOfMemoryError, RayActorError, RayError
from ray.tune.experiment import Trial

from automl.executors.ray.losses import loss
from automl.integrations.ray_tune.failures import failure_of


class Kept(Trial):
    """A trial of which only the error is there."""

    def __init__(self, error_file: Path) -> None:
        self._error_file = error_file

    @property
    def pickled_error_file(self) -> str:
        return str(self._error_file)


FULL = OutOfMemoryError("the machine was full")  # type: ignore[no-untyped-call]  # Ray's own


@pytest.mark.parametrize(
    "error, cause",
    [
        pytest.param(RayActorError(error_msg="it was killed"), "lost", id="killed"),
        pytest.param(FULL, "oom", id="ended-for-memory"),
        pytest.param(
            RayActorError(error_msg="NODE_OUT_OF_MEMORY: the machine was full"), "oom", id="ended-for-memory-in-words"
        ),
    ],
)
def test_lost_process_has_the_cause_that_a_lost_rank_has(tmp_path: Path, error: RayError, cause: str) -> None:
    file = tmp_path / "error.pkl"
    file.write_bytes(cloudpickle.dumps(error))  # type: ignore[no-untyped-call]  # Ray's own
    failure = failure_of(Kept(file))
    assert failure == loss(error, rank=None, host="")
    assert (failure.cause, failure.is_memory_kill) == (cause, cause == "oom")
