"""The method that suits a space, chosen by facts that every machine sees alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["AutoSampler"]

MOST_MODELLED = 50
"""Parameters up to which a model of their effects, found from tens of trials, has been seen to help."""


class AutoSampler(Sampler):
    """Proposes by `surrogate_evolution`, which needs the fewest trials; in very large spaces by what scales with them.

    There that is `evolution` for networks, and `tpe` for numbers.
    """

    has_parents: ClassVar[bool] = True

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._chosen: tuple[SearchSpace, Sampler] | None = None

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Ask the method that suits the space."""
        return self._method(space).suggest(space, trials, rng)

    def notes(self, space: SearchSpace, budget: int | None) -> tuple[str, ...]:
        """Say what was chosen, and why, and what is to be known of it."""
        name, reason = _choice(space)
        return f"configurations are proposed by {name}, since {reason}", *self._method(space).notes(space, budget)

    def parents(self, space: SearchSpace, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Those of the method."""
        return self._method(space).parents(space, trials)

    def parent(self, space: SearchSpace, configuration: Configuration, trials: Sequence[Trial]) -> Trial | None:
        """That of the method."""
        return self._method(space).parent(space, configuration, trials)

    def _method(self, space: SearchSpace) -> Sampler:
        if self._chosen is None or self._chosen[0] is not space:
            self._chosen = (space, _made(_choice(space)[0], self.direction))
        return self._chosen[1]


def _made(name: str, direction: Direction) -> Sampler:
    """Build the method; each is imported when it is wanted."""
    if name == "evolution":
        from automl.samplers.evolution import EvolutionSampler

        return EvolutionSampler(direction)
    if name == "tpe":
        from automl.samplers.tpe import TpeSampler

        return TpeSampler(direction)
    from automl.samplers.surrogate_evolution import SurrogateEvolutionSampler

    return SurrogateEvolutionSampler(direction)


def _choice(space: SearchSpace) -> tuple[str, str]:
    """The name of the method, and the end of a sentence that says why."""
    count = sum(parameter.size() != 1 for parameter in space.parameters.values())
    if count <= MOST_MODELLED:
        parameters = "one parameter is" if count == 1 else f"{count} parameters are"
        return "surrogate_evolution", f"{parameters} few enough to model what each of them does"
    if space.names("architecture"):
        return "evolution", f"{count} parameters are too many for a model, and networks evolve without one"
    return "tpe", f"{count} parameters are too many for a model of them together"
