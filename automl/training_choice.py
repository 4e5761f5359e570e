"""Who trains the configurations of a search, and what is said once for all of them: objective and constants."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.own_files import is_file_reference
from search_spaces.space import SearchSpace
from trainers.artifact_files import is_url
from trainers.config import Direction, TrainConfig
from trainers.custom.directions import well_known_direction
from trainers.custom.references import defines_training, script_reference
from trainers.data.spec import DataSpec
from trainers.errors import InvalidTrainerError, TrialError, UnknownTrainerError
from trainers.tasks import load_trainer
from trainers.trainer import Trainer

__all__ = [
    "check_parameters",
    "checked_constants",
    "full_configuration",
    "load_named_trainer",
    "measured",
    "objective_direction",
    "trainer_reference",
    "usual_objective",
]


def trainer_reference(space: str, trainer: str | None, script: str | None) -> str:
    """Return what `load_trainer` knows a search's trainer by.

    Args:
        space: reference of the search space; its own module where that defines a training, else its task.
        trainer: a name, `module:Class` or the path of a file; None: the space's own.
        script: a command; None: there is no script.
    """
    if script is not None:
        return script_reference(script)
    if trainer is not None:
        return str(Path(trainer).expanduser().resolve()) if is_file_reference(trainer) else trainer
    module = catalog.load(space, has_networks=False)
    return str(vars(module)["__file__"]) if defines_training(module) else module.SPACE.task


def load_named_trainer(reference: str) -> Trainer:
    """Return a new trainer.

    Raises:
        ValueError: nothing of that name exists, or it is no trainer.
        PluginImportError: its module cannot be imported.
    """
    try:
        return load_trainer(reference)
    except (UnknownTrainerError, InvalidTrainerError) as error:
        raise ValueError(str(error)) from error


def check_parameters(space: SearchSpace, trainer: Trainer, reference: str) -> None:
    """Refuse a space with training parameters that mean nothing to its trainer.

    Raises:
        ValueError: with all of them.
    """
    unknown = [name for name in space.names("training") if name not in trainer.hyperparameters]
    if unknown and not trainer.is_open:
        raise ValueError(
            f"the trainer '{reference}' has no hyperparameter {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(sorted(trainer.hyperparameters))}"
        )


def measured(trainer: Trainer, data: DataSpec | None) -> Mapping[str, Direction]:
    """Return what a trainer measures on some data; empty: it is not known before the training.

    Args:
        trainer: the trainer.
        data: the data; None: they are not valid, and all that it may measure is meant.

    Raises:
        ValueError: the data, or a person's own code that makes them, are at fault.
    """
    if data is None:
        return trainer.metrics
    try:
        return trainer.measured(data)
    except (TrialError, InvalidTrainerError) as error:
        raise ValueError(str(error)) from error


def usual_objective(known: Mapping[str, Direction]) -> str:
    """Return the objective of a search that names none.

    Raises:
        ValueError: it is not known what is measured.
    """
    if not known:
        raise ValueError(
            "must be given, as the trainer does not say what it measures; name one of the numbers that it reports, or "
            "let its file define METRICS"
        )
    return next(iter(known))


def objective_direction(metric: str, known: Mapping[str, Direction]) -> Direction:
    """Return which way is better: by the trainer's word, or by a name that everybody knows.

    Raises:
        ValueError: neither tells it.
    """
    direction = known.get(metric) or well_known_direction(metric)
    if direction is None:
        raise ValueError(
            f"must be given: whether a larger {metric!r} is better (maximize), or a smaller one (minimize)"
        )
    return direction


def checked_constants(given: Mapping[str, Any], trainer: Trainer, space: SearchSpace) -> dict[str, JsonScalar]:
    """Return the training parameters that are the same for all trials, as the trainer takes them.

    Args:
        given: name -> value; text is turned into what the parameter is.
        trainer: takes them.
        space: what is searched besides.

    Raises:
        ValueError: with every mistake.
    """
    problems = [f"{name} is searched by the space '{space.name}'" for name in given if name in space.parameters]
    own = {name: value for name, value in given.items() if name not in trainer.hyperparameters}
    if not trainer.is_open:
        problems += _unknown([name for name in own if name not in space.parameters], trainer)
    fields = {name: _placed(name, value) for name, value in given.items() if name in TrainConfig.model_fields}
    fields = {name: value for name, value in fields.items() if name not in own}
    found: dict[str, JsonScalar] = {}
    try:
        found = TrainConfig.model_validate(fields).model_dump(mode="json", include=set(fields))
    except ValidationError as error:
        problems += [
            f"{'.'.join(map(str, details['loc']))}={details['input']!r} is not allowed: {details['msg'].lower()}"
            for details in error.errors(include_url=False)
        ]
    if problems:
        raise ValueError("; ".join(problems))
    return {**{name: _scalar(value) for name, value in own.items()}, **found}


def full_configuration(
    constants: Mapping[str, JsonScalar], configuration: Mapping[str, JsonScalar], trainer: Trainer
) -> dict[str, JsonScalar]:
    """Return a configuration as its trainer is given it: with the constants that only a person's own code knows."""
    if not trainer.is_open:
        return dict(configuration)
    own = {name: value for name, value in constants.items() if name not in trainer.hyperparameters}
    return {**own, **configuration}


def _unknown(names: Sequence[str], trainer: Trainer) -> list[str]:
    """Name each, and once what there is."""
    known = sorted(trainer.hyperparameters)
    found = [f"no training parameter {name!r}{did_you_mean(name, known).replace(' did', ', did', 1)}" for name in names]
    return [*found, f"known: {', '.join(known)}"] if found else []


def _placed(name: str, value: Any) -> Any:
    """A file that a training reads, as every process finds it."""
    if name != "teacher" or not isinstance(value, str) or is_url(value):
        return value
    return str(Path(value).expanduser().resolve())


def _scalar(value: Any) -> Any:
    """What a text of a command line says, for code whose parameters have no kind that we know."""
    if not isinstance(value, str):
        return value
    words = {"true": True, "false": False, "none": None, "null": None}
    if value.lower() in words:
        return words[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
