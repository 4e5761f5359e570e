"""From what a person names to a trainer: the path of a file, or a command after `$ `."""

import difflib
from collections.abc import Iterable

from trainers.custom.command import Command
from trainers.custom.files import OwnFile, open_file
from trainers.errors import InvalidTrainerError
from trainers.trainer import Trainer

__all__ = ["TRAININGS", "TRAINING_NAMES", "defines_training", "load_own_trainer", "misspelt", "script_reference"]

TRAINING_NAMES = ("fit", "datasets")
"""A file that defines one of these functions is a training."""
TRAININGS = "fit(context), or datasets(source) for a network of the search space"
"""The same for messages."""

_COMMAND = "$ "
"""Begins the reference of a script, which no name of a trainer, module or file does."""


def script_reference(command: str) -> str:
    """Return the reference of a script's trainer."""
    return f"{_COMMAND}{command}"


def load_own_trainer(reference: str) -> Trainer | None:
    """Return the trainer of a file or a script; None: the reference is no path and no command.

    Raises:
        UnknownTrainerError: there is no such file.
        InvalidTrainerError: the file defines no training, or the command cannot run.
        PluginImportError: the file cannot be imported.
    """
    if reference.startswith(_COMMAND):
        from trainers.custom.script import Script

        return Script(Command.parse(reference.removeprefix(_COMMAND)))
    if reference.endswith(".py"):
        return _of_file(open_file(reference))
    return None


def defines_training(module: object) -> bool:
    """Whether a module, such as that of a search space, is also a training of its own."""
    return any(callable(getattr(module, name, None)) for name in TRAINING_NAMES)


def misspelt(module: object, wanted: Iterable[str]) -> str:
    """Return `; did you mean 'fit'? it defines 'fitt'` for what a module defines under nearly a wanted name.

    Args:
        module: of a file.
        wanted: names of functions.
    """
    found = [
        name for name, value in vars(module).items() if getattr(value, "__module__", None) == vars(module)["__name__"]
    ]
    pairs = [(name, nearest[0]) for name in found if (nearest := difflib.get_close_matches(name, [*wanted], n=1))]
    return "".join(f"; did you mean {right!r}? it defines {wrong!r}" for wrong, right in pairs if wrong != right)


def _of_file(file: OwnFile) -> Trainer:
    if file.function("fit") is not None:
        from trainers.custom.own_fit import OwnFit

        file.metrics()
        return OwnFit(file)
    if file.function("datasets") is not None:
        from trainers.custom.own_module import OwnModule, OwnModuleWithLoss

        file.metrics()
        return OwnModule(file) if file.function("loss") is None else OwnModuleWithLoss(file)
    raise InvalidTrainerError(
        f"{file.path} defines no training; needed: {TRAININGS}{misspelt(file.module, TRAINING_NAMES)}"
    )
