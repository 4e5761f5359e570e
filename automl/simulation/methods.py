"""Who searches in a simulation: samplers and pruners as people write them, `NAME` or `NAME:OPTION=VALUE`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from automl.errors import InvalidSpecError, UnknownPluginError
from automl.plugin_options import make_pruner, make_sampler
from automl.pruners.base import Pruner
from automl.samplers.base import Sampler
from search_spaces.configuration import JsonScalar
from search_spaces.discovery import PluginImportError
from trainers.config import Direction

__all__ = ["Method", "methods_named", "pruners_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A sampler with a pruner.

    Attributes:
        sampler: as it was written.
        pruner: as it was written.
    """

    sampler: str
    pruner: str

    @property
    def name(self) -> str:
        """What it is called in tables and figures."""
        return f"{self.sampler} + {self.pruner}"

    def make_sampler(self, direction: Direction) -> Sampler:
        """Build the sampler.

        Raises:
            UnknownPluginError: there is none of that name.
            ValueError: a setting cannot be, or needs networks.
        """
        name, options = _parts(self.sampler)
        sampler = make_sampler(name, direction, options)
        if sampler.scored_by is not None:
            raise ValueError(f"it would score networks by {sampler.scored_by}, and a simulation has none")
        return sampler

    def make_pruner(self, direction: Direction, epochs: int) -> Pruner:
        """Build the pruner."""
        name, options = _parts(self.pruner)
        return make_pruner(name, direction, epochs, options)


def methods_named(samplers: str, pruners: str, direction: Direction, epochs: int) -> tuple[Method, ...]:
    """Every one of the samplers with every one of the pruners.

    Args:
        samplers: names, separated by commas; options behind colons: `evolution:population_size=20,random`.
        pruners: likewise.
        direction: whether larger or smaller objectives are better.
        epochs: the epochs of a full training.

    Raises:
        InvalidSpecError: a name or an option is unknown, or a value is not allowed; all mistakes are named.
    """
    chosen = [Method(sampler=sampler, pruner=pruner) for sampler in _words(samplers) for pruner in _words(pruners)]
    problems = [] if chosen else ["name at least one sampler and one pruner"]
    for method in chosen:
        problems += _problems(f"sampler {method.sampler}", partial(method.make_sampler, direction))
        problems += _problems(f"pruner {method.pruner}", partial(method.make_pruner, direction, epochs))
    if problems:
        raise InvalidSpecError(list(dict.fromkeys(problems)), "the command line")
    return tuple(chosen)


def pruners_named(pruners: str, direction: Direction, epochs: int) -> tuple[Method, ...]:
    """The pruners alone, each with a sampler that is never asked.

    Raises:
        InvalidSpecError: as for `methods_named`.
    """
    return methods_named("random", pruners, direction, epochs)


def _problems(what: str, make: Callable[[], object]) -> list[str]:
    """Why something cannot be built."""
    try:
        make()
    except (UnknownPluginError, PluginImportError, ValueError) as error:
        return [f"{what}: {error}"]
    return []


def _words(text: str) -> Sequence[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _parts(text: str) -> tuple[str, Mapping[str, JsonScalar]]:
    """The name, which may be `module:Class`, and the options of a word."""
    parts = text.split(":")
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    return ":".join(part for part in parts if "=" not in part), options
