"""Trains one configuration without a search: `train` for Python, `python -m trainers` for the command line."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.config import EvaluateTask, TrainTask
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError
from trainers.preparation import InvalidTrainingError, Prepared, Wish, prepare
from trainers.reporting import Decision, Report, Reporter, TrialResult
from trainers.tasks import load_trainer
from trainers.world import World, joined, world_in

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["InvalidTrainingError", "Trained", "train"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training leaves behind.

    Attributes:
        result: how it ended, and what was really used and counted.
        metrics: everything measured in the best epoch, the objective among them.
        test: metrics of the best epoch on the test split; None when the data have none, or nobody can measure it.
        best: checkpoint of the best epoch; None: own code has kept none.
        last: the last checkpoint, to go on from; None: own code has kept none.
    """

    result: TrialResult
    metrics: Mapping[str, float]
    test: Mapping[str, float] | None
    best: Path | None
    last: Path | None


def train(
    space: str,
    data: DataSpec | str = "digits",
    *,
    settings: Mapping[str, Any] | None = None,
    folder: Path | str,
    resume: bool = False,
    ranks: int = 1,
    device: str | None = None,
    trainer: str | None = None,
    script: str | None = None,
    tensorboard: bool = False,
    profile: bool = False,
    on_report: Callable[[Report], object] | None = None,
    on_line: Callable[[str], object] | None = None,
) -> Trained:
    """Train one configuration and keep the checkpoints of its best and its last epoch.

    In a program that torchrun has started on several ranks, each of them calls this with the same arguments, and gets
    the same result.

    Args:
        space: search space that builds the network: a name of the catalogue, an import path, or a `.py` file.
        data: what is learned.
        settings: values of the space's parameters, which are its defaults otherwise, and fields of TrainConfig; for
            `fit(context)` and scripts also others. Text is turned into what a parameter is.
        folder: where the checkpoints go; holds none yet, unless the training is resumed.
        resume: go on from the newest checkpoint in the folder, if there is one.
        ranks: processes that train together; above 1 the program needs an `if __name__ == "__main__"`. Under torchrun
            it is left at 1.
        device: `cpu`, or `cuda` for a GPU each; `cuda:NUMBER` for a single rank; None: GPUs, or the CPU without any.
        trainer: who trains: a name, `module:Class`, or a `.py` file; None: what the space says.
        script: a command that trains and prints its metrics, instead of a trainer.
        tensorboard: whether curves, histograms, the graph and images are written to the folder's `tensorboard`.
        profile: whether a few steps are profiled; the files go beside the checkpoints.
        on_report: is called after every epoch, in this process; under torchrun on rank 0.
        on_line: is called with a line about every epoch, for people, in the same way.

    Raises:
        InvalidTrainingError: with every mistake in what was asked for.
        UsedFolderError: the folder is of another training.
        BadDataError: the data cannot be read or trained on.
        TrialError: the training cannot go on; its class says why.

    Example:
        >>> import tempfile
        >>> trained = train("nas_small", settings={"epochs": 1}, folder=tempfile.mkdtemp(), device="cpu")
        >>> trained.result.epoch
        1
    """
    wish = Wish(
        space=space,
        data=DataSpec(source=data) if isinstance(data, str) else data,
        settings=dict(settings or {}),
        folder=Path(folder),
        resume=resume,
        ranks=ranks,
        device=device,
        trainer=trainer,
        script=script,
        tensorboard=tensorboard,
        profile=profile,
    )
    world = _world_of(wish)
    listeners = _Listeners(on_report=on_report, on_line=on_line)
    return _train_here(wish, listeners) if world is None else _train_in(world, wish, listeners)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listeners:
    """Who is told of each epoch."""

    on_report: Callable[[Report], object] | None
    on_line: Callable[[str], object] | None


def _world_of(wish: Wish) -> World | None:
    try:
        world = world_in(os.environ)
    except ValueError as error:
        raise InvalidTrainingError([str(error)]) from error
    if world is not None and wish.ranks not in (1, world.world_size):
        raise InvalidTrainingError(
            [f"ranks: {wish.ranks}, and {world.world_size} have been started already (WORLD_SIZE); leave it out"]
        )
    return world


def _train_here(wish: Wish, listeners: _Listeners) -> Trained:
    """Train on ranks of our own."""
    prepared = prepare(wish)
    _tell_of_another_plan(prepared)

    from trainers.launching import run_on_ranks

    work, listener = partial(_fit, prepared.reference, prepared.task, prepared.data), _Listener(prepared, listeners)
    result = run_on_ranks(work, wish.ranks, listener, device=wish.device)
    listener.check()
    return _trained(prepared, result, wish.device)


def _train_in(world: World, wish: Wish, listeners: _Listeners) -> Trained:
    """Train on ranks that run already; this is one of them."""
    with joined(world, wish.device) as ranks:
        with ranks.together("preparing the training"):
            prepared = prepare(replace(wish, ranks=world.world_size), has_devices=True)
        if ranks.is_first:
            _tell_of_another_plan(prepared)
        listener = _Listener(prepared, listeners)
        result = _fit(prepared.reference, prepared.task, prepared.data, ranks, listener)
        with ranks.together("ending the training"):
            listener.check()
            trained = _trained(prepared, result, str(ranks.device)) if ranks.is_first else None
        return next(found for found in ranks.gather_objects(trained) if found is not None)


def _fit(reference: str, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
    if ranks.world_size > 1:
        ranks.check_same("task", task.model_dump_json())
    return load_trainer(reference).fit(task, data, ranks, reporter)


class _Listener:
    """Takes the reports. An error on the way ends the training, and is raised after it: it is not of the training."""

    def __init__(self, prepared: Prepared, listeners: _Listeners) -> None:
        self._kept, self._training, self._listeners = prepared.kept, prepared.task.training, listeners
        self._error: Exception | None = None

    def __call__(self, report: Report) -> Decision:
        try:
            self._kept.add(report)
            if self._listeners.on_report is not None:
                self._listeners.on_report(report)
            if self._listeners.on_line is not None:
                self._listeners.on_line(self._line(report))
        except Exception as error:
            self._error = error
            return Decision.STOP
        return Decision.CONTINUE

    def _line(self, report: Report) -> str:
        from trainers.epoch_log import line_with_objective

        return line_with_objective(report, self._training.epochs, self._training.metric)

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def _tell_of_another_plan(prepared: Prepared) -> None:
    """Say that a training which goes on for other epochs than it began with is not the one that never stopped."""
    training, before = prepared.task.training, prepared.kept.epochs_before
    has_schedule = prepared.trainer.has_networks and (training.schedule, training.warmup_fraction) != ("constant", 0.0)
    if has_schedule and before not in (None, training.epochs):
        _log.warning(
            "it began with epochs=%d and goes on with epochs=%d: the learning rate's schedule (%s) is drawn anew for "
            "all of them, so that the result is not that of a training without a break",
            before, training.epochs, training.schedule,
        )  # fmt: skip


def _trained(prepared: Prepared, result: TrialResult, device: str | None) -> Trained:
    kept, root = prepared.kept, Path(prepared.task.artifacts_root)
    return Trained(
        result=result,
        metrics=kept.best_metrics(),
        test=_on_test_split(prepared, device),
        best=None if kept.best is None else root / kept.best,
        last=None if kept.last is None else root / kept.last,
    )


def _on_test_split(prepared: Prepared, device: str | None) -> Mapping[str, float] | None:
    from trainers.distributed import Ranks

    task, checkpoint = prepared.task, prepared.kept.best
    if checkpoint is None or not prepared.trainer.can_evaluate():
        return None
    evaluation = EvaluateTask(
        space=task.space,
        configuration=task.configuration,
        data=task.data,
        precision=task.training.precision,
        artifacts_root=task.artifacts_root,
        checkpoint=checkpoint,
        split="test",
    )
    try:
        return prepared.trainer.evaluate(evaluation, prepared.data, Ranks.alone(device))
    except BadDataError:
        return None  # the data were cut without a test split
