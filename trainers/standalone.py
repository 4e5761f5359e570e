"""Trains one configuration without a search: `train` for Python, `python -m trainers` for the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from search_spaces.catalog import load
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError, did_you_mean
from search_spaces.space import SearchSpace
from trainers.config import EvaluateTask, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError
from trainers.kept_checkpoints import KeptCheckpoints
from trainers.reporting import Decision, Report, Reporter, TrialResult
from trainers.tasks import load_trainer
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["InvalidTrainingError", "Trained", "train"]


class InvalidTrainingError(ValueError):
    """What was asked for cannot be trained.

    Attributes:
        problems: every mistake, one sentence each.
    """

    def __init__(self, problems: list[str]) -> None:
        """Keep the mistakes and join them into one message."""
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training leaves behind.

    Attributes:
        result: how it ended, and what was really used and counted.
        metrics: everything measured in the best epoch, the objective among them.
        test: metrics of the best epoch's weights on the test split; None when the data have none.
        best: checkpoint of the best epoch.
        last: checkpoint of the last epoch, to go on from.
    """

    result: TrialResult
    metrics: Mapping[str, float]
    test: Mapping[str, float] | None
    best: Path
    last: Path


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
    on_report: Callable[[Report], object] | None = None,
) -> Trained:
    """Train one configuration and keep the checkpoints of its best and its last epoch.

    Args:
        space: search space that builds the network: a name of the catalogue or an import path.
        data: what is learned.
        settings: values of the space's parameters, which are its defaults otherwise, and fields of TrainConfig.
        folder: where the checkpoints go; holds none yet, unless the training is resumed.
        resume: go on from the newest checkpoint in the folder, if there is one.
        ranks: processes that train together; above 1 the program needs an `if __name__ == "__main__"`.
        device: of every rank, such as `cpu`; None: one GPU each, or the CPU without GPUs.
        trainer: who trains, see `trainers.tasks.load_trainer`; None: what the space says.
        on_report: is called after every epoch, in this process.

    Raises:
        InvalidTrainingError: with every mistake in what was asked for.
        UnknownSearchSpaceError: there is no such space.
        UnknownTrainerError: there is no such trainer.
        BadDataError: the data cannot be read or trained on.
        TrialError: the training cannot go on; its class says why.

    Example:
        >>> import tempfile
        >>> trained = train("nas_small", settings={"epochs": 1}, folder=tempfile.mkdtemp(), device="cpu")
        >>> trained.result.epoch
        1
    """
    spec = DataSpec(source=data) if isinstance(data, str) else data
    search_space = load(space).SPACE
    reference = trainer or search_space.task
    worker = load_trainer(reference)
    worker.check(spec)
    training, configuration = _resolved(search_space, worker, spec, dict(settings or {}))
    kept = KeptCheckpoints(Path(folder).resolve(), training)
    if not resume:
        kept.check_empty()
    task = TrainTask(
        space=space,
        configuration=configuration,
        data=spec,
        training=training,
        artifacts_root=str(kept.root),
        checkpoint_dir=kept.folder,
        resume_from=kept.newest() if resume else None,
    )
    loaded = worker.load(spec)
    worker.check_objective(training.metric, loaded)

    def reporter(report: Report) -> Decision:
        kept.add(report)
        if on_report is not None:
            on_report(report)
        return Decision.CONTINUE

    from trainers.launching import run_on_ranks

    result = run_on_ranks(partial(_fit, reference, task, loaded), ranks, reporter, device=device)
    return Trained(
        result=result,
        metrics=kept.best_metrics(),
        test=_on_test_split(worker, task, loaded, kept.best, device),
        best=kept.root / kept.best,
        last=kept.root / kept.last,
    )


def _fit(reference: str, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
    return load_trainer(reference).fit(task, data, ranks, reporter)


def _on_test_split(
    trainer: Trainer, task: TrainTask, data: Any, checkpoint: str, device: str | None
) -> Mapping[str, float] | None:
    from trainers.distributed import Ranks

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
        return trainer.evaluate(evaluation, data, Ranks.alone(device))
    except BadDataError:
        return None  # the data were cut without a test split


def _resolved(
    space: SearchSpace, trainer: Trainer, data: DataSpec, settings: Mapping[str, Any]
) -> tuple[TrainConfig, Configuration]:
    """Tell the space's parameters from the training's fields, and check both."""
    problems = []
    fields = {name for name in TrainConfig.model_fields if name in trainer.hyperparameters} | set(_OF_THE_SEARCH)
    for name in settings:
        if name not in fields and name not in space.parameters:
            hint = did_you_mean(name, [*space.parameters, *fields])
            problems.append(
                f"no setting {name!r};{hint} parameters of {space.name}: {', '.join(space.parameters)}; "
                f"of the training: {', '.join(sorted(fields))}"
            )
    values = {**(space.defaults or {}), **{name: settings[name] for name in settings if name in space.parameters}}
    try:
        configuration = space.validate(values)
    except InvalidConfigurationError as error:
        problems += error.problems
        configuration = Configuration({})
    chosen = {name: value for name, value in configuration.items() if name in fields & set(space.names("training"))}
    chosen |= {name: value for name, value in settings.items() if name in fields - set(space.parameters)}
    metric = chosen.setdefault("metric", next(iter(trainer.measured(data))))
    measured = trainer.measured(data)
    if metric not in measured:
        problems.append(f"no metric {metric!r};{did_you_mean(str(metric), measured)} measured: {', '.join(measured)}")
    chosen.setdefault("direction", measured.get(str(metric), "maximize"))
    training = TrainConfig()
    try:
        training = TrainConfig.model_validate(chosen)
    except ValidationError as error:
        problems += [
            f"{'.'.join(map(str, details['loc']))}={details['input']!r}: {details['msg'].lower()}"
            for details in error.errors(include_url=False)
        ]
    if reason := None if problems else space.refusal(configuration):
        problems.append(f"{space.name} refuses the configuration: {reason}")
    if problems:
        raise InvalidTrainingError(problems)
    return training, configuration


_OF_THE_SEARCH = ("epochs", "metric", "direction", "precision", "seed")
