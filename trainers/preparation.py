"""What a single training needs: all that was asked for is checked at once, then the data are read.

Nothing is written here. Checking loads torch only to count the GPUs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from search_spaces import catalog
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.discovery import PluginImportError
from search_spaces.errors import InvalidConfigurationError, InvalidSpaceError, UnknownSearchSpaceError
from search_spaces.space import SearchSpace
from trainers.artifact_files import check_writable
from trainers.config import SEARCH_FIELDS, TrainConfig, TrainTask
from trainers.custom.command import Command
from trainers.data.spec import DataSpec
from trainers.devices import devices_of_ranks
from trainers.errors import InvalidTrainerError, MistakeElsewhereError, UnsupportedDeviceError
from trainers.kept_checkpoints import BUILT_WITH, FOLDER, KeptCheckpoints
from trainers.replaced_parameters import read_value, stand_ins
from trainers.reporting import JsonValue
from trainers.settings import (
    check_metric,
    check_training,
    checked_constants,
    checked_fields,
    full_configuration,
    measured,
    objective_direction,
    train_config,
    usual_objective,
)
from trainers.trainer import Trainer
from trainers.training_choice import (
    check_can_train,
    check_data_options,
    check_looking_inside,
    check_parallel,
    check_ranks,
    check_sharing,
    load_named_trainer,
    placed_data,
    placed_reference,
    trainer_reference,
)

__all__ = ["InvalidTrainingError", "Prepared", "Wish", "prepare"]


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
class Wish:
    """What is asked for, unchecked; the fields are the arguments of `trainers.standalone.train`."""

    space: str
    data: DataSpec
    settings: Mapping[str, Any]
    folder: Path
    resume: bool = False
    ranks: int = 1
    device: str | None = None
    trainer: str | None = None
    script: str | None = None
    tensorboard: bool = False
    profile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A training that can begin.

    Attributes:
        reference: what every process loads the trainer by.
        trainer: the trainer.
        task: what it trains.
        data: what its `load` returned.
        kept: follows the training.
    """

    reference: str
    trainer: Trainer
    task: TrainTask
    data: Any
    kept: KeptCheckpoints


def prepare(wish: Wish, *, has_devices: bool = False) -> Prepared:
    """Check a wish, read its data, and find the checkpoint to go on from.

    Args:
        wish: what is asked for.
        has_devices: whether the ranks run already, each with its device.

    Raises:
        InvalidTrainingError: with every mistake.
        UsedFolderError: the folder is of another training.
        TrialError: the data cannot be read or trained on, or no checkpoint can be gone on with.
    """
    root = Path(wish.folder).expanduser().resolve()
    problems: list[str] = []
    _check_place(wish, root, has_devices, problems)
    chosen = _choice(wish, problems)
    if chosen is None:
        raise InvalidTrainingError(problems)
    reference, trainer, space = chosen
    data = placed_data(wish.data)
    training, configuration, not_asked_for = _settle(wish, data, trainer, space, problems)
    if problems:
        raise InvalidTrainingError(problems)
    loaded = trainer.load(data)
    trainer.check_objective(training.metric, loaded)
    if late := trainer.mistakes_once_loaded(training, wish.space, [configuration], loaded, wish.ranks):
        raise InvalidTrainingError(late)
    task = TrainTask(
        space=placed_reference(wish.space),
        configuration=configuration,
        stand_ins=not_asked_for,
        data=data,
        training=training,
        artifacts_root=str(root),
        checkpoint_dir=FOLDER,
        tensorboard="tensorboard" if wish.tensorboard else None,
        profile=wish.profile,
    )
    identity: dict[str, JsonValue] = {
        "space": PurePath(wish.space).name,
        "configuration": {**task.asked_for()},
        "seed": training.seed,
        "metric": training.metric,
        "direction": training.direction,
        "data": trainer.fingerprint(loaded),
        "settings": {**training.lasting()},
    }
    if not trainer.is_open:  # own code is told what was asked for, whatever it is
        identity[BUILT_WITH] = {**task.built_with()}
    kept = KeptCheckpoints(root, training, identity)
    if wish.resume:
        task = task.model_copy(update={"resume_from": kept.newest()})
    return Prepared(reference=reference, trainer=trainer, task=task, data=loaded, kept=kept)


def _check_place(wish: Wish, root: Path, has_devices: bool, problems: list[str]) -> None:
    """Check where is trained and what is written."""
    with _noted(problems, "folder"):
        check_writable(root)
        if not wish.resume:
            KeptCheckpoints.check_unused(root)
    with _noted(problems, "ranks"):
        if wish.ranks < 1:
            raise ValueError(f"{wish.ranks} is not allowed: give a whole number from 1")
        check_ranks(wish.ranks, wish.script)
    if has_devices:
        return
    with _noted(problems, "device"):
        from torch.cuda import device_count

        devices_of_ranks(max(1, wish.ranks), wish.device, device_count())


def _choice(wish: Wish, problems: list[str]) -> tuple[str, Trainer, SearchSpace] | None:
    """Find who trains; None: there is a mistake, without which more cannot be checked."""
    before, script = len(problems), None
    if wish.script is not None and wish.trainer is not None:
        problems.append("trainer: there is a script besides; give one of both")
    with _noted(problems, "space"):
        catalog.load(wish.space, has_networks=False)
    if wish.script is not None:
        with _noted(problems, "script"):
            script = str(Command.parse(wish.script))
    if len(problems) > before:
        return None
    space = catalog.load(wish.space, has_networks=False).SPACE
    with _noted(problems, "trainer"):
        reference = trainer_reference(wish.space, wish.trainer, script)
        trainer = load_named_trainer(reference)
        check_can_train(wish.space, trainer, reference)
        return reference, trainer, space
    return None


def _settle(
    wish: Wish, data: DataSpec, trainer: Trainer, space: SearchSpace, problems: list[str]
) -> tuple[TrainConfig, Mapping[str, JsonScalar], tuple[str, ...]]:
    """Tell the space's parameters from the training's, and check both; what only stands for the latter is named."""
    before = len(problems)
    own = {name: read_value(space, name, value) for name, value in wish.settings.items() if name in space.parameters}
    beyond = [name for name, value in own.items() if _is_for_the_training_alone(space, trainer, name, value)]
    left = _left(space, {name: own[name] for name in beyond})
    chosen = {name: value for name, value in own.items() if left is not None and name in left.parameters}
    given = {name: value for name, value in wish.settings.items() if name not in chosen}
    fixed = {name: given.pop(name) for name in SEARCH_FIELDS if name in given}
    configuration, constants = Configuration({}), dict[str, JsonScalar]()
    if left is not None:
        with _noted(problems):
            configuration = left.validate({**_usual(left, chosen), **chosen})
    with _noted(problems):
        constants = checked_constants(given, trainer, space, others=[*space.parameters, *SEARCH_FIELDS])
        trainer.check_names([*space.parameters, *full_configuration(constants, {}, space, trainer)])
    with _noted(problems):
        fixed = checked_fields(fixed)
    if wish.tensorboard or wish.profile:
        with _noted(problems, "tensorboard" if wish.tensorboard else "profile"):
            check_looking_inside(trainer, tensorboard=wish.tensorboard)
    with _noted(problems, "parallel"):
        check_parallel(str(fixed.get("parallel", "auto")), trainer)
    fixed |= _objective(fixed, data, trainer, problems)
    if len(problems) == before:
        with _noted(problems):
            if left is not None and (reason := left.refusal(configuration)):
                raise ValueError(f"{space.name} refuses the configuration: {reason}")
            training = train_config(constants, configuration, fixed, space, trainer)
            with _noted(problems):
                check_sharing(training, constants, trainer, wish.ranks, "--ranks 2")
            check_training(training, trainer, data, constants)
            whole = full_configuration(constants, configuration, space, trainer)
            return training, whole, stand_ins(whole, configuration, constants, space)
    return TrainConfig(), configuration, ()


def _objective(
    fixed: Mapping[str, Any], data: DataSpec, trainer: Trainer, problems: list[str]
) -> Mapping[str, JsonScalar]:
    before = len(problems)
    with _noted(problems, "data"):
        check_data_options(data, trainer)
        trainer.check(data)
    known = trainer.metrics
    if len(problems) == before:
        with _noted(problems, "data"):
            known = measured(trainer, data)
    with _noted(problems, "metric"):
        metric = str(fixed.get("metric") or usual_objective(known))
        check_metric(metric, known)
        with _noted(problems, "direction"):
            return {"metric": metric, "direction": fixed.get("direction") or objective_direction(metric, known)}
    return {}


def _is_for_the_training_alone(space: SearchSpace, trainer: Trainer, name: str, value: Any) -> bool:
    """Whether the space does not know a value of a parameter that the trainer takes, and may allow."""
    parameter = space.parameters[name]
    return parameter.role == "training" and name in trainer.hyperparameters and parameter.problem(value) is not None


def _left(space: SearchSpace, beyond: Mapping[str, JsonScalar]) -> SearchSpace | None:
    """Return the space without what is for the training alone, and what depends on it; None: nothing is left."""
    try:
        return space.fixing(beyond)
    except InvalidSpaceError:
        return None


def _usual(space: SearchSpace, chosen: Mapping[str, JsonScalar]) -> Mapping[str, JsonScalar]:
    """Return the defaults as they are beside the values that were chosen; nothing where the space has none.

    A choice may bring in what the defaults have no value for, and take out what they have one for.
    """
    return {} if space.defaults is None else space.filled({**space.defaults, **chosen})


@contextmanager
def _noted(problems: list[str], what: str = "") -> Iterator[None]:
    """Keep a mistake as a sentence instead of raising it; `what` is the argument that it is in."""
    begin = f"{what}: " if what else ""
    try:
        yield
    except InvalidConfigurationError as error:
        problems += error.problems
    except MistakeElsewhereError as error:
        problems.append(f"{error.place}: {error}")
    except _MISTAKES as error:
        problems.append(f"{begin}{error}")


_MISTAKES = (
    InvalidTrainerError, PluginImportError, UnknownSearchSpaceError, UnsupportedDeviceError, ValueError
)  # fmt: skip
