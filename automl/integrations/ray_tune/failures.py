"""Why a Tune trial ended badly: what Tune has kept of its last error, in the words of a study."""

from dataclasses import replace
from pathlib import Path

from ray import cloudpickle
from ray.exceptions import RayError, RayTaskError
from ray.tune.experiment import Trial
from ray.tune.result import HOSTNAME

from automl.executors.ray.losses import loss, plain
from automl.worker import Failure, describe_failure

__all__ = ["failure_of"]


def failure_of(trial: Trial) -> Failure:
    """Name the cause of a trial's last error: an exception of its training, or the loss of its process."""
    error = _last_error(trial)
    if isinstance(error, RayTaskError):
        cause = error.cause if isinstance(error.cause, Exception) else error
        host = str(trial.last_result.get(HOSTNAME, ""))
        return replace(describe_failure(cause, rank=None), traceback=plain(error), host=host)
    if isinstance(error, RayError):
        return loss(error, rank=None, host="")
    text = "" if trial.error_file is None else Path(trial.error_file).read_text(encoding="utf-8")
    last_line = next((line for line in reversed(text.splitlines()) if line.strip()), "Ray Tune has kept no error")
    return Failure(cause="user_error", error="TuneError", message=last_line.strip(), traceback=text)


def _last_error(trial: Trial) -> object:
    """The exception itself, which Tune writes for errors of tasks and actors only; None for any other."""
    file = trial.pickled_error_file
    return None if file is None else cloudpickle.loads(Path(file).read_bytes())
