"""Who trains, on what, and what may be asked of it; the same for a search and for a single training.

Everything is checked before anything is trained and without loading torch; a mistake is a ValueError with a sentence.
"""

from pathlib import Path

from search_spaces import catalog
from search_spaces.own_files import is_file_reference
from search_spaces.space import SearchSpace
from trainers.custom.references import defines_training, script_reference
from trainers.data.spec import BUILT_IN_SOURCES, DataSpec
from trainers.errors import InvalidTrainerError, UnknownTrainerError
from trainers.tasks import load_trainer
from trainers.tensorboard import INSTALL, is_installed
from trainers.trainer import Trainer

__all__ = [
    "check_looking_inside",
    "check_parallel",
    "check_parameters",
    "check_ranks",
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


def _placed_source(place: str | None) -> str | None:
    if place is None or place in BUILT_IN_SOURCES or not (path := Path(place).expanduser()).exists():
        return place
    return str(path.resolve())
