"""With which settings is trained: the objective, constants beside a configuration, and the TrainConfig of them all.

Everything is checked before anything is trained and without loading torch; a mistake is a ValueError with a sentence.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameters import Categorical, Parameter
from search_spaces.space import SearchSpace
from trainers.artifact_files import is_url
from trainers.config import SEARCH_FIELDS, Direction, TrainConfig
from trainers.custom.directions import well_known_direction
from trainers.data.spec import DataSpec
from trainers.errors import InvalidTrainerError, MistakeElsewhereError, TrialError
from trainers.idle_settings import idle_settings
from trainers.loss_choice import OF_CLASSES
from trainers.method_choice import OF_IMAGES, OF_TEACHERS
from trainers.replaced_parameters import complete_configuration, read_value, replacement_problem
from trainers.trainer import Trainer

__all__ = [
    "check_metric",
    "check_offers",
    "check_training",
    "checked_constants",
    "checked_fields",
    "extremes",
    "full_configuration",
    "measured",
    "objective_direction",
    "train_config",
    "usual_objective",
]


def measured(trainer: Trainer, data: DataSpec | None) -> Mapping[str, Direction]:
    """Return what a trainer measures on some data; empty: it is not known before the training.

    Args:
        trainer: the trainer.
        data: the data; None: they are not valid, and all that it may measure is meant.

    Raises:
        MistakeElsewhereError: the data, or a person's own code that makes them, are at fault.
    """
    if data is None:
        return trainer.metrics
    try:
        return trainer.measured(data)
    except (TrialError, InvalidTrainerError) as error:
        raise MistakeElsewhereError(trainer.data_come_from, str(error)) from error


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


def check_metric(metric: str, known: Mapping[str, Direction]) -> None:
    """Refuse an objective that is not measured.

    Raises:
        ValueError: with what is.
    """
    if known and metric not in known:
        raise ValueError(f"no metric {metric!r};{did_you_mean(metric, known)} available: {', '.join(sorted(known))}")


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


def checked_constants(
    given: Mapping[str, Any], trainer: Trainer, space: SearchSpace, others: Sequence[str] = ()
) -> dict[str, JsonScalar]:
    """Return the training parameters that are the same for all trials, as the trainer takes them.

    Args:
        given: name -> value; text is turned into what the parameter is.
        trainer: takes them.
        space: what is searched besides; of its parameters those of the training may be given a value instead.
        others: names that would have meant something else here, for the message of one that means nothing.

    Raises:
        ValueError: with every mistake.
    """
    problems = [
        problem
        for name, value in given.items()
        if name in space.parameters and (problem := replacement_problem(name, value, space, trainer)) is not None
    ]
    own = {name: value for name, value in given.items() if name not in trainer.hyperparameters}
    if not trainer.is_open:
        problems += _unknown([name for name in own if name not in space.parameters], trainer, others)
    problems += [f"{name}={value!r} is not allowed: {_SCALARS}" for name, value in own.items() if not _is_scalar(value)]
    found: dict[str, JsonScalar] = {}
    try:
        found = checked_fields({name: _placed(name, value) for name, value in given.items() if name not in own})
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))
    return {
        **{name: read_value(space, name, v) if name in space.parameters else _scalar(v) for name, v in own.items()},
        **found,
    }


def checked_fields(given: Mapping[str, Any]) -> dict[str, JsonScalar]:
    """Return fields of TrainConfig as it takes them; text is turned into what a field is.

    Raises:
        ValueError: with every value that is not allowed.
    """
    try:
        return TrainConfig.model_validate(dict(given)).model_dump(mode="json", include=set(given))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, details['loc']))}={details['input']!r} is not allowed: {details['msg'].lower()}"
            for details in error.errors(include_url=False)
        ]
        raise ValueError("; ".join(problems)) from error


def check_training(training: TrainConfig, trainer: Trainer, data: DataSpec, given: Collection[str] = ()) -> None:
    """Refuse a training that its trainer cannot do with the data.

    Args:
        training: the settings.
        trainer: trains.
        data: what it trains on.
        given: names of the settings that were asked for, of which none may be without effect.

    Raises:
        ValueError: with every reason; or the data, or a person's own code that makes them, are at fault.
    """
    idle = idle_settings(given, lambda name: [getattr(training, name)]) if trainer.has_networks else []
    if mistakes := [*_mistakes(training, trainer, data), *idle]:
        raise ValueError("; ".join(mistakes))


def check_offers(constants: Mapping[str, JsonScalar], space: SearchSpace, trainer: Trainer, data: DataSpec) -> None:
    """Refuse constants, and a space with values, that the trainer cannot do with the data: such trials could only fail.

    Constants that change nothing whatever is searched are refused, too.

    Each parameter is looked at by itself, a range by its ends; where the space offers a teacher, one is there.

    Args:
        constants: what `checked_constants` returned.
        space: what is searched.
        trainer: trains.
        data: what it trains on.

    Raises:
        ValueError: with every reason.
    """
    offers = {name: space.parameters[name] for name in space.names("training") if name in trainer.hyperparameters}
    teachers = [value for value in extremes(offers["teacher"]) if value is not None] if "teacher" in offers else []
    known = {name: value for name, value in constants.items() if name in trainer.hyperparameters}
    known |= {"teacher": teachers[0]} if teachers else {}
    training = TrainConfig.model_validate(known)
    found = _mistakes(training, trainer, data)
    if trainer.has_networks:
        found += idle_settings(
            constants, lambda name: extremes(offers[name]) if name in offers else [getattr(training, name)]
        )
    offered = dict[str, None]()  # in order, each once
    for name, parameter in offers.items():
        for value in extremes(parameter):
            offered |= dict.fromkeys(_mistakes_of({**known, name: value}, trainer, data))
    if mistakes := [*found, *(f"space '{space.name}': {text}" for text in offered if text not in found)]:
        raise ValueError("; ".join(mistakes))


def train_config(
    constants: Mapping[str, JsonScalar],
    configuration: Mapping[str, JsonScalar],
    fixed: Mapping[str, JsonScalar],
    space: SearchSpace,
    trainer: Trainer,
) -> TrainConfig:
    """Return how one configuration is trained.

    Raises:
        ValueError: the space allows values that the training does not.

    Args:
        constants: what `checked_constants` returned.
        configuration: the trial's; it goes before, and may be of an older version of the space.
        fixed: the fields that are no hyperparameters (`SEARCH_FIELDS`).
        space: tells which of its parameters are of the training.
        trainer: tells what it takes.
    """
    others = {name for name, parameter in space.parameters.items() if parameter.role != "training"}
    known = {**constants, **configuration}
    chosen = {name: known[name] for name in known if name in trainer.hyperparameters - others}
    return TrainConfig.model_validate(checked_fields({**chosen, **fixed}))


def full_configuration(
    constants: Mapping[str, JsonScalar], configuration: Mapping[str, JsonScalar], space: SearchSpace, trainer: Trainer
) -> dict[str, JsonScalar]:
    """Return a configuration as its trainer is given it.

    It is whole as the space has it, without the constants that replace its parameters; and it has the constants that
    only a person's own code knows.

    Args:
        constants: what `checked_constants` returned.
        configuration: of the space that is searched.
        space: with all its parameters.
        trainer: tells what it takes.
    """
    whole = complete_configuration(configuration, constants, space)
    if not trainer.is_open:
        return whole
    names = {name for name in constants if name in space.parameters or name not in trainer.hyperparameters}
    return {**whole, **{name: constants[name] for name in constants if name in names}}


def _mistakes(training: TrainConfig, trainer: Trainer, data: DataSpec) -> list[str]:
    try:
        return trainer.mistakes(training, data)
    except (TrialError, InvalidTrainerError) as error:
        raise MistakeElsewhereError(trainer.data_come_from, str(error)) from error


def _mistakes_of(fields: Mapping[str, JsonScalar], trainer: Trainer, data: DataSpec) -> list[str]:
    try:
        training = TrainConfig.model_validate(checked_fields(fields))
    except ValueError as error:
        return [str(error)]
    return _mistakes(training, trainer, data)


def extremes(parameter: Parameter) -> Sequence[JsonScalar]:
    """Return the choices, or the ends of a range: what a task cannot do at all it cannot do at one of them."""
    return parameter.choices if isinstance(parameter, Categorical) else (parameter.low, parameter.high)


def _unknown(names: Sequence[str], trainer: Trainer, others: Sequence[str]) -> list[str]:
    """Name each, and once what there is."""
    known = sorted({*trainer.hyperparameters, *others})
    flags = [f"{name} has a flag of its own: --{name}" for name in names if name in SEARCH_FIELDS]
    strange = [name for name in names if name not in SEARCH_FIELDS]
    foreign = [
        f"no training parameter {name!r} here: {_whose(name, trainer)}"
        for name in strange
        if name in TrainConfig.model_fields
    ]
    found = [
        f"no training parameter {name!r}{did_you_mean(name, known).replace(' did', ', did', 1)}"
        for name in strange
        if name not in TrainConfig.model_fields
    ]
    return [*flags, *foreign, *found, *([f"known: {', '.join(known)}"] if found else [])]


def _whose(name: str, trainer: Trainer) -> str:
    """Say why a training parameter means nothing to a trainer."""
    if name in OF_IMAGES:
        return "it is for images, and this task has none"
    if name == "loader_workers":
        return "it is for data sets that are read item by item, and here the data lie in memory"
    if name in {*OF_CLASSES, *OF_TEACHERS} and not OF_CLASSES & trainer.hyperparameters:
        return "it belongs to the losses of classes, and this task has none of them"
    return "this task has no use for it"


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
            number = kind(value)
        except ValueError:
            continue
        return number if _is_scalar(number) else value  # no file and no database holds nan or inf as a number
    return value


def _is_scalar(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


_SCALARS = "give a text, a finite number, true, false or none ('nan' and 'inf' as texts)"
