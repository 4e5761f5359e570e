"""The catalogue of search spaces: one module defines one space, and its file name is its name.

Only the module that is asked for is imported. A space may also come from an installed package, through the
entry-point group `automl.search_spaces`, from any importable module, such as `my_project.spaces.tiny`, or from a file,
such as `spaces/tiny.py` or `spaces/tiny.yaml`.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from search_spaces.configuration import JsonScalar
from search_spaces.discovery import entry_points, import_plugin, is_importable, module_names
from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError
from search_spaces.graph import NetworkGraph
from search_spaces.own_files import is_file_reference
from search_spaces.parameters import PlainValue
from search_spaces.space import SearchSpace
from search_spaces.space_files import load_space_file

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from torch import nn

__all__ = ["ENTRY_POINT_GROUP", "SpaceModule", "available", "graph", "load"]

ENTRY_POINT_GROUP = "automl.search_spaces"
"""Entry points of this group name a module that defines a space: `my_space = my_project.spaces.tiny`."""


class SpaceModule(Protocol):
    """What a module must define to be a search space; it may also define `graph(configuration)`.

    Importing it must not import torch: a driver reads `SPACE` only. `build_model` imports what it needs.
    """

    SPACE: SearchSpace

    @staticmethod
    def build_model(configuration: Mapping[str, PlainValue], input_shape: Any, num_classes: int) -> "nn.Module":
        """Build the network that a configuration describes, with fresh weights from torch's global generator.

        Args:
            configuration: valid in `SPACE` and not refused by it; a choice that is a list is that list.
            input_shape: what the space's task feeds: an ImageShape, TextShape or TableShape of `search_spaces.shapes`.
            num_classes: number of logits; 1 where a number is to be told.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
        """


def available() -> tuple[str, ...]:
    """Return the names that `load` knows without a dot, sorted; nothing is imported.

    Raises:
        SpaceNameClashError: an installed package uses a name of the catalogue or of another package.
    """
    return tuple(sorted((*module_names(__name__), *_entry_points())))


def load(reference: str, *, has_networks: bool = True) -> SpaceModule:
    """Import the module of a search space.

    Args:
        reference: a name of the catalogue, the name of an entry point, a dotted import path, or the path of a `.py`
            or `.yaml` file.
        has_networks: whether it must define `build_model`; a training of a person's own builds what it likes.

    Raises:
        UnknownSearchSpaceError: nothing of that name exists.
        InvalidSpaceError: the module lacks `SPACE` or `build_model`, or a file's space cannot be.
        SpaceNameClashError: an installed package uses a name of the catalogue or of another package.
        PluginImportError: the module cannot be imported.
    """
    points = _entry_points()
    if reference in module_names(__name__):
        return _checked(importlib.import_module(f"{__name__}.{reference}"), reference, has_networks)
    if reference in points:
        return _checked(points[reference].load(), reference, has_networks)
    if is_file_reference(reference) and Path(reference).expanduser().is_file():
        return _checked(load_space_file(Path(reference).expanduser()), reference, has_networks)
    if is_importable(reference):
        return _checked(import_plugin(reference), reference, has_networks)
    raise UnknownSearchSpaceError(reference, available())


def graph(module: SpaceModule, configuration: Mapping[str, JsonScalar]) -> NetworkGraph | None:
    """Return the drawing of a configuration's cell, or None when the space offers none."""
    draw = getattr(module, "graph", None)
    return None if draw is None else cast(NetworkGraph, draw(configuration))


def _entry_points() -> "Mapping[str, EntryPoint]":
    try:
        points = entry_points(ENTRY_POINT_GROUP)
    except ValueError as error:
        raise SpaceNameClashError(f"{error}; uninstall one of them") from error
    if clashes := sorted(set(points) & set(module_names(__name__))):
        offers = ", ".join(f"{name} ({points[name].value})" for name in clashes)
        raise SpaceNameClashError(f"an installed package offers search spaces under names of the catalogue: {offers}")
    return points


def _checked(module: object, reference: str, has_networks: bool) -> SpaceModule:
    problems = []
    if not isinstance(getattr(module, "SPACE", None), SearchSpace):
        problems.append("SPACE = SearchSpace(...)")
    if has_networks and not callable(getattr(module, "build_model", None)):
        problems.append("build_model(configuration, input_shape, num_classes)")
    if problems:
        found = "the file" if is_file_reference(reference) else repr(module)
        raise InvalidSpaceError(f"search space {reference!r}: {found} must define {' and '.join(problems)}")
    return cast(SpaceModule, module)
