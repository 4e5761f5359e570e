"""Trains by a script of any framework: arguments from the configuration, metrics from JSON objects that it prints."""

import json
import logging
import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from search_spaces.catalog import load
from search_spaces.errors import did_you_mean
from trainers.config import Direction, EvaluateTask, TrainTask
from trainers.custom.command import Command
from trainers.custom.course import Course
from trainers.custom.lines import json_object
from trainers.custom.process import ScriptProcess
from trainers.custom.script_checkpoint import keep, resumed
from trainers.custom.sources import source_fingerprint
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError, UserCodeError
from trainers.reporting import Decision, Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["Script"]

_log = logging.getLogger(__name__)


class Script(Trainer):
    """Runs a command for each trial.

    Each parameter is an argument `--name value`, or stands where the command says `{name}`; so do `{epochs}`,
    `{seed}` and `{data}`. The environment tells the rest (see `_environment`). A line of standard output that is a JSON
    object with the objective reports an epoch: the next one, or that of its number `epoch`. If it names a file by
    `checkpoint`, in the folder AUTOML_CHECKPOINT_DIR, an interrupted trial goes on from it: the same file is then
    AUTOML_RESUME_FROM.

    Args:
        command: what is run.
    """

    hyperparameters: ClassVar[frozenset[str]] = frozenset({"patience", "min_change"})
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType({})
    is_open: ClassVar[bool] = True

    def __init__(self, command: Command) -> None:
        self._command = command

    def check(self, data: DataSpec) -> None:
        """Refuse nothing: only the script knows what it can read."""

    def check_names(self, names: Collection[str]) -> None:
        """Refuse a command with a place for a parameter that does not exist.

        Raises:
            MistakeElsewhereError: with each such place.
        """
        self._command.check_places(names)

    def can_evaluate(self) -> bool:
        """Return False: a script measures what it likes while it trains."""
        return False

    def code_digest(self) -> str:
        """Return the digest of the files that the command names."""
        return self._command.digest()

    def load(self, data: DataSpec) -> str:
        """Return the fingerprint of the source, which the script reads itself."""
        return source_fingerprint(data.source)

    def fingerprint(self, data: str) -> str:
        """Return what `load` returned."""
        return data

    def fit(self, task: TrainTask, data: str, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Run the script for one configuration, and end it when the trial shall end.

        Raises:
            UserCodeError: it has failed, or printed no metric or one that cannot be taken.
            ScriptKilledError: it was killed from outside.
            NonFiniteLossError: the objective is NaN or infinite.
            DamagedCheckpointError: `resume_from` cannot be gone on with.
            BadDataError: the source has changed since it was written.
        """
        if ranks.world_size > 1:
            raise UserCodeError(f"a script is one process, not {ranks.world_size} ranks; let it start its own ranks")
        course = Course(task, reporter)
        names: dict[str, None] = {}
        with tempfile.TemporaryDirectory(prefix="automl-script-") as folder, resumed(task, course, data) as start:
            places = {"epochs": str(task.training.epochs), "seed": str(task.training.seed), "data": task.data.source}
            words = self._command.filled(task.configuration, places)
            environment = _environment(task, Path(folder), start, course.epoch, ranks)
            with ScriptProcess(words, self._command.folder, environment) as process:
                for line in process.lines():
                    values = json_object(line)
                    if values is None:
                        _log.debug("script: %s", line)
                        continue
                    names.update(dict.fromkeys(values))
                    if task.training.metric in values and not course.is_done:
                        _report(values, task, course, Path(folder), data)
                    if course.decision is not Decision.CONTINUE or course.best.is_exhausted:
                        break  # which ends the script
                else:
                    process.check_end()
        _check_reported(task, course, list(names))
        return course.result({"world_size": 1, "device": str(ranks.device)}, of="the script")

    def evaluate(self, task: EvaluateTask, data: str, ranks: "Ranks") -> Mapping[str, float]:
        """Refuse to measure.

        Raises:
            BadDataError: always.
        """
        raise BadDataError("a script cannot be asked to measure a checkpoint; let it print what it measures")


def _environment(task: TrainTask, folder: Path, start: Path | None, epoch: int, ranks: "Ranks") -> Mapping[str, str]:
    """All variables of the script: ours and AUTOML_..."""
    import torch

    told = {
        "AUTOML_CONFIGURATION": json.dumps(dict(load(task.space, has_networks=False).SPACE.plain(task.configuration))),
        "AUTOML_EPOCHS": str(task.training.epochs),
        "AUTOML_SEED": str(task.training.seed),
        "AUTOML_DATA": task.data.source,
        "AUTOML_DEVICE": str(ranks.device),
        "AUTOML_CHECKPOINT_DIR": str(folder),
        "AUTOML_START_EPOCH": str(epoch),
        "AUTOML_RESUME_FROM": "" if start is None else str(start),
        "PYTHONUNBUFFERED": "1",  # or the lines of a Python script come all at once, at its end
    }
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    return {**threads, **os.environ, **told}


def _report(values: Mapping[str, Any], task: TrainTask, course: Course, folder: Path, fingerprint: str) -> None:
    """Take a line with the objective as the report of an epoch."""
    epoch = values.get("epoch", course.epoch + 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch <= course.epoch:
        raise UserCodeError(
            f"the script reports epoch {epoch!r} after epoch {course.epoch}; epochs are whole numbers that grow, "
            "counted from 1; or leave 'epoch' out"
        )
    epoch = min(epoch, task.training.epochs)
    own = {name: value for name, value in values.items() if name not in ("epoch", "checkpoint")}
    numbers = course.checked(epoch, own)
    course.take(epoch, numbers)
    name = values.get("checkpoint")
    checkpoint = None if name is None else keep(folder, name, task, course, fingerprint)
    course.decision = course.ask(numbers, checkpoint)


def _check_reported(task: TrainTask, course: Course, names: list[str]) -> None:
    """Refuse a script that has ended without a metric, with advice on what it has printed instead."""
    objective = task.training.metric
    if course.has_reported:
        return
    if names:
        raise UserCodeError(
            f"the script printed no metric {objective!r};{did_you_mean(objective, names)} its JSON objects have: "
            f"{', '.join(names)}; --metric names what is searched for"
        )
    raise UserCodeError(
        "the script ended without a metric; let it print a JSON object on a line of its own after each epoch, such as "
        f'{{"epoch": 1, "{objective}": 0.91}}'
    )
