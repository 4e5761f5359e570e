"""From a name to a sampler or a pruner.

A name is that of a file in `automl/samplers` or `automl/pruners`, of an entry point, or `module:Class`.
"""

from importlib import import_module
from typing import Literal, TypeAlias, TypeVar

from automl.errors import UnknownPluginError
from automl.pruners.base import Pruner
from automl.samplers.base import Sampler
from search_spaces.discovery import entry_points, import_plugin, is_importable, module_names
from search_spaces.errors import did_you_mean

__all__ = ["available", "pruner_class", "sampler_class"]

Kind: TypeAlias = Literal["sampler", "pruner"]
_Plugin = TypeVar("_Plugin", Sampler, Pruner)
_NOT_PLUGINS = frozenset(
    {"base", "one_thread", "optuna_adapter", "optuna_snapshot", "replicates", "rungs", "surrogate", "warm_up"}
)


def available(kind: Kind) -> tuple[str, ...]:
    """The names that can be given for a sampler or a pruner, in alphabetical order."""
    own = set(module_names(f"automl.{kind}s")) - _NOT_PLUGINS
    return tuple(sorted(own | set(entry_points(f"automl.{kind}s"))))


def sampler_class(name: str) -> type[Sampler]:
    """The sampler class of that name.

    Raises:
        UnknownPluginError: there is none; the message names the nearest one.
    """
    return _load("sampler", name, Sampler)  # type: ignore[type-abstract]  # the base is only compared with


def pruner_class(name: str) -> type[Pruner]:
    """The pruner class of that name.

    Raises:
        UnknownPluginError: there is none; the message names the nearest one.
    """
    return _load("pruner", name, Pruner)  # type: ignore[type-abstract]  # the base is only compared with


def _load(kind: Kind, name: str, base: type[_Plugin]) -> type[_Plugin]:
    plugin = entry_points(f"automl.{kind}s").get(name)
    if plugin is not None:
        return _checked(plugin.load(), kind, name, base)
    if name in available(kind):
        module = import_module(f"automl.{kind}s.{name}")
        return _checked(getattr(module, module.__all__[0]), kind, name, base)
    module_name, _, class_name = name.partition(":")
    if class_name and is_importable(module_name):
        return _checked(getattr(import_plugin(module_name), class_name, None), kind, name, base)
    names = available(kind)
    raise UnknownPluginError(
        f"no {kind} '{name}';{did_you_mean(name, names)} available: {', '.join(names)}, or module:Class"
    )


def _checked(found: object, kind: Kind, name: str, base: type[_Plugin]) -> type[_Plugin]:
    if isinstance(found, type) and issubclass(found, base):
        return found
    raise UnknownPluginError(f"the {kind} '{name}' is {found!r}, not a subclass of {base.__module__}.{base.__name__}")
