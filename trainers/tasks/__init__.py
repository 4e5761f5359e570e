"""The trainers by name: one module trains one task, and its file name is the task's name.

Only the module that is asked for is imported. A trainer may also come from an installed package, through the
entry-point group `automl.trainers`, from any importable class, such as `my_project.training:MyTrainer`, from a file
such as `train.py` that defines a training (`trainers/custom`), or be a script: `$ python train.py`.
"""

import difflib
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from search_spaces.discovery import entry_points, import_plugin, is_importable, module_names
from trainers.custom.references import load_own_trainer
from trainers.errors import InvalidTrainerError, UnknownTrainerError
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINT_GROUP", "available", "load_trainer"]

ENTRY_POINT_GROUP = "automl.trainers"
"""Entry points of this group name a trainer class: `my_task = my_project.training:MyTrainer`."""


def available() -> tuple[str, ...]:
    """Return the names that `load_trainer` knows without a colon, sorted; no trainer is imported.

    Raises:
        InvalidTrainerError: installed packages use one name twice.
    """
    return tuple(sorted((*module_names(__name__), *_entry_points())))


def load_trainer(reference: str) -> Trainer:
    """Return a new trainer.

    Args:
        reference: a name of `available`, `module:Class`, the path of a `.py` file, or a command after `$ `.

    Raises:
        UnknownTrainerError: nothing of that name exists.
        InvalidTrainerError: what is there is no trainer.
        PluginImportError: the module or the file cannot be imported.
    """
    own = load_own_trainer(reference)
    if own is not None:
        return own
    points = _entry_points()
    if reference in module_names(__name__):
        return _only_class(importlib.import_module(f"{__name__}.{reference}"))()
    if reference in points:
        return _checked(points[reference].load(), reference)()
    module, colon, name = reference.partition(":")
    if colon and is_importable(module):
        return _checked(getattr(import_plugin(module), name, None), reference)()
    near = difflib.get_close_matches(reference, available(), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownTrainerError(
        f"no trainer {reference!r}; {hint}available: {', '.join(available())}, or module:Class, or "
        "the path of a .py file"
    )


def _entry_points() -> "Mapping[str, EntryPoint]":
    try:
        points = entry_points(ENTRY_POINT_GROUP)
    except ValueError as error:
        raise InvalidTrainerError(f"{error}; uninstall one of them") from error
    if clashes := sorted(set(points) & set(module_names(__name__))):
        raise InvalidTrainerError(
            f"an installed package offers trainers under names of our own: {', '.join(clashes)}; uninstall it"
        )
    return points


def _only_class(module: ModuleType) -> type[Trainer]:
    """Return the one trainer that a module of this package names in `__all__`."""
    found = [getattr(module, name) for name in module.__all__]
    trainers = [thing for thing in found if isinstance(thing, type) and issubclass(thing, Trainer)]
    if len(trainers) != 1:
        raise InvalidTrainerError(f"{module.__name__} must name one trainer in __all__, not {len(trainers)}")
    return trainers[0]


def _checked(thing: object, reference: str) -> type[Trainer]:
    if isinstance(thing, type) and issubclass(thing, Trainer):
        return thing
    raise InvalidTrainerError(f"{reference!r} is {thing!r}; needed: a subclass of {Trainer.__qualname__}")
