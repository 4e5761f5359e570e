"""Finds plug-ins without importing them: modules of a package, and what installed packages offer."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["PluginImportError", "entry_points", "import_plugin", "is_importable", "module_names"]


def module_names(package: str) -> tuple[str, ...]:
    """Return the names of a package's modules, sorted, without those that begin with an underscore.

    Only the package itself is imported, so listing plug-ins costs none of what they import.

    Args:
        package: dotted name, such as `search_spaces.catalog`.

    Raises:
        ModuleNotFoundError: there is no such package.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"no package named {package!r}", name=package)
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def entry_points(group: str) -> "Mapping[str, EntryPoint]":
    """Return name -> entry point of everything that installed packages offer in a group; nothing is loaded.

    Raises:
        ValueError: two packages offer different things under one name.
    """
    return _installed(group, tuple(sys.path))


@cache  # reading the metadata of all installed packages takes tens of milliseconds
def _installed(group: str, path: tuple[str, ...]) -> "Mapping[str, EntryPoint]":
    import importlib.metadata  # slow, and only needed here

    found: dict[str, EntryPoint] = {}
    points = importlib.metadata.entry_points(group=group)
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ValueError(
                f"two installed packages offer {point.name!r} in {group!r}: {other.value} and {point.value}"
            )
    return found


class PluginImportError(ImportError):
    """A module of a plug-in exists and cannot be imported; the message has the fault of its own code."""


def import_plugin(module: str) -> ModuleType:
    """Import a module that somebody else may have written.

    Raises:
        PluginImportError: its code raises when it is imported.
    """
    try:
        return importlib.import_module(module)
    except OWN_CODE_ERRORS as error:
        raise PluginImportError(f"{module} cannot be imported: {error_in_words(error)}") from error


def is_importable(module: str) -> bool:
    """Return whether a dotted name is that of a module; its parent packages are imported, itself it is not."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return False
    for length in range(1, len(parts)):  # find_spec raises for a parent that is missing or is no package
        parent = importlib.util.find_spec(".".join(parts[:length]))
        if parent is None or parent.submodule_search_locations is None:
            return False
    return importlib.util.find_spec(module) is not None
