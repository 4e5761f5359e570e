"""Who trains, on what, and what may be asked of it; the same for a search and for a single training.

Everything is checked before anything is trained and without loading torch; a mistake is a ValueError with a sentence.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from search_spaces.own_files import is_file_reference, is_python_file
from search_spaces.space import SearchSpace
from trainers.config import Parallelism, TrainConfig
from trainers.custom.references import TRAINING_NAMES, TRAININGS, defines_training, misspelt, script_reference
from trainers.data.spec import BUILT_IN_SOURCES, DataSpec
from trainers.errors import InvalidTrainerError, UnknownTrainerError
from trainers.idle_settings import idle_options
from trainers.settings import extremes
from trainers.sharing_choice import form_mistakes, lonely_mistakes
from trainers.tasks import load_trainer
from trainers.tensorboard import INSTALL, is_installed
from trainers.trainer import Trainer

__all__ = [
    "check_can_train",
    "check_data_options",
    "check_looking_inside",
    "check_parallel",
    "check_parameters",
    "check_ranks",
    "check_sharing",
    "check_sharing_offers",
    "load_named_trainer",
    "placed_data",
    "placed_reference",
    "trainer_reference",
]


def placed_reference(reference: str) -> str:
    """Return a name or a module as it is, and the path of a file as every process finds it."""
    return str(Path(reference).expanduser().resolve()) if is_file_reference(reference) else reference


def placed_data(data: DataSpec) -> DataSpec:
    """Return the data with their places as every process finds them; a name that is no place stays."""
    places = {"source": data.source, "test_source": data.test_source}
    return data.model_copy(update={name: _placed_source(place) for name, place in places.items()})


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
        return placed_reference(trainer)
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


def check_can_train(space: str, trainer: Trainer, reference: str) -> None:
    """Refuse a space that a trainer cannot train, for want of networks or for parameters that mean nothing to it.

    Raises:
        ValueError: with every reason.
    """
    module = catalog.load(space, has_networks=False)
    problems = [_without_networks(space, module, trainer), _strange_parameters(module.SPACE, trainer, reference)]
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))


def check_parameters(space: SearchSpace, trainer: Trainer, reference: str) -> None:
    """Refuse a space with training parameters that mean nothing to its trainer.

    Raises:
        ValueError: with all of them.
    """
    if problem := _strange_parameters(space, trainer, reference):
        raise ValueError(problem)


def check_ranks(ranks: int, script: str | None) -> None:
    """Refuse several ranks of what is one process.

    Raises:
        ValueError: a script would have them.
    """
    if ranks > 1 and script is not None:
        raise ValueError(f"a script is one process, not {ranks} ranks; let it start its own")


def check_parallel(parallel: str, trainer: Trainer) -> None:
    """Refuse a way to share a network where the ranks' network is not ours.

    Raises:
        ValueError: the trainer has no networks of a search space.
    """
    if parallel != "auto" and not trainer.has_networks:
        raise ValueError(f"{parallel} is for networks of a search space; what trains here shares its own; leave it out")


def check_data_options(data: DataSpec, trainer: Trainer) -> None:
    """Refuse options of the data that are given and mean nothing for them.

    Raises:
        ValueError: naming them.
    """
    if trainer.data_options is not None and (mistakes := idle_options(data, trainer.data_options, trainer.data_words)):
        raise ValueError("; ".join(mistakes))


def check_sharing(training: TrainConfig, given: Collection[str], trainer: Trainer, ranks: int, more_ranks: str) -> None:
    """Refuse settings that so many ranks cannot use, or that have no effect on them.

    Args:
        training: the settings.
        given: names of those that were asked for.
        trainer: trains.
        ranks: how many train together.
        more_ranks: how two are asked for, such as `--ranks 2`.

    Raises:
        ValueError: with every reason.
    """
    if not trainer.has_networks:
        return
    found = [*lonely_mistakes(training, given, ranks, more_ranks), *(form_mistakes(training) if ranks > 1 else [])]
    if found:
        raise ValueError("; ".join(found))


def check_sharing_offers(
    constants: Mapping[str, JsonScalar],
    parallel: Parallelism,
    space: SearchSpace,
    trainer: Trainer,
    ranks: int,
    more_ranks: str,
) -> None:
    """Refuse constants, and a space with values, that so many ranks cannot use: see `check_sharing`.

    Args:
        constants: what `checked_constants` returned.
        parallel: how the ranks share a training.
        space: what is searched.
        trainer: trains.
        ranks: how many train together.
        more_ranks: how two are asked for.

    Raises:
        ValueError: with every reason.
    """
    if not trainer.has_networks:  # what such a trainer is given has no meaning of ours, whatever its name
        return
    names = [name for name in space.names("training") if name in trainer.hyperparameters]
    offers = {name: extremes(space.parameters[name]) for name in names}
    known = {name: value for name, value in constants.items() if name in trainer.hyperparameters}
    if sizes := list(_batch_sizes(offers.get("batch_size", ()))):
        known["batch_size"] = max(sizes)
    training = TrainConfig.model_validate({**known, "parallel": parallel})
    check_sharing(training, constants, trainer, ranks, more_ranks)
    for name in ("gradient_compression", "batch_norm"):
        for value in offers.get(name, ()) if ranks > 1 else ():
            if mistakes := form_mistakes(training.model_copy(update={name: value})):
                raise ValueError(f"space '{space.name}': {'; '.join(mistakes)}")


def check_looking_inside(trainer: Trainer | None, *, tensorboard: bool) -> None:
    """Refuse to draw or to profile a training that cannot be looked into.

    Args:
        trainer: trains; None: what names it is not valid.
        tensorboard: whether it shall be drawn for TensorBoard.

    Raises:
        ValueError: the trainer has no networks of a search space, or the package is missing.
    """
    if trainer is not None and not trainer.has_networks:
        raise ValueError("only networks of a search space are looked into, and the trainer here has none of it")
    if tensorboard and not is_installed():
        raise ValueError(f"the package tensorboard is not installed; install it: {INSTALL}")


def _batch_sizes(offered: Sequence[JsonScalar]) -> Iterator[int]:
    """Yield those sizes that a training takes; `check_offers` tells of the others."""
    for size in offered:
        with suppress(ValueError):
            yield TrainConfig.model_validate({"batch_size": size}).batch_size


def _strange_parameters(space: SearchSpace, trainer: Trainer, reference: str) -> str | None:
    unknown = [name for name in space.names("training") if name not in trainer.hyperparameters]
    if not unknown or trainer.is_open:
        return None
    return (
        f"the trainer '{reference}' has no hyperparameter {', '.join(map(repr, unknown))}; "
        f"known: {', '.join(sorted(trainer.hyperparameters))}"
    )


def _without_networks(space: str, module: object, trainer: Trainer) -> str | None:
    if not trainer.has_networks or callable(getattr(module, "build_model", None)):
        return None
    name = Path(space).name if is_file_reference(space) else space
    if is_file_reference(space) and not is_python_file(space):
        return (
            f"{name} builds no network, as no YAML file does; say who trains its parameters "
            '(--script "python train.py", or --trainer own.py with fit(context)), or write the space in Python'
        )
    return (
        f"{name} defines nothing to train: needed: build_model(configuration, input_shape, num_classes), or "
        f"{TRAININGS}{misspelt(module, ('build_model', *TRAINING_NAMES))}"
    )


def _placed_source(place: str | None) -> str | None:
    if place is None or place in BUILT_IN_SOURCES or not (path := Path(place).expanduser()).exists():
        return place
    return str(path.resolve())
