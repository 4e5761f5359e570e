"""The plug point of search methods: a sampler proposes the next configuration."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["NothingLeftError", "Sampler"]


class NothingLeftError(Exception):
    """A sampler has proposed all that it wants to.

    Attributes:
        lacks: whether something of it has no value, and will get none.
    """

    def __init__(self, message: str, *, lacks: bool = False) -> None:
        super().__init__(message)
        self.lacks = lacks


class Sampler(ABC):
    """Proposes configurations from what the study knows.

    A sampler holds its settings and no state: it is rebuilt from the study on every machine and after every resume.

    Attributes:
        direction: whether larger or smaller objectives are better.
        scored_by: the score of untrained networks that it needs (`search_spaces.scores`); None: it needs none.
        score: gives that score of a configuration's network, larger is more promising, minus infinity where there is no
            such network; whoever builds networks sets it.
    """

    has_parents: ClassVar[bool] = False
    """Whether proposals descend from trials, whose weights they may begin with; `parents` and `parent` say which."""
    has_plan: ClassVar[bool] = False
    """Whether proposals are a plan of its own: the space's defaults do not come first, and what was tried before is
    meant to be tried again."""

    def __init__(self, direction: Direction) -> None:
        self.direction: Direction = direction
        self.scored_by: str | None = None
        self.score: Callable[[Configuration], float] | None = None

    @abstractmethod
    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Propose one configuration; a pure function of its arguments.

        Args:
            space: what can be searched.
            trials: the study in order of the numbers, running, failed and infeasible trials among them. The scheduler
                shows a trial of an older version of the space with its configuration as the present one writes it, and
                leaves out those that do not fit.
            rng: the only source of randomness.

        Returns:
            A valid configuration; it may be infeasible or known already, the scheduler looks after that.

        Raises:
            NothingLeftError: it has proposed all that it wants to.
        """

    def may_repeat(self, trials: Sequence[Trial]) -> bool:
        """Whether what is proposed now may be a configuration that was tried before; else the scheduler asks again.

        Args:
            trials: as for `suggest`.
        """
        return self.has_plan

    def notes(self, space: SearchSpace, budget: int | None) -> tuple[str, ...]:
        """What a person should know before the first proposal, a sentence each.

        Args:
            space: what will be searched.
            budget: trials that may be started in all; None: any number.
        """
        return ()

    def parents(self, space: SearchSpace, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The trials that a next proposal may descend from, or a later one; their weights are kept.

        Args:
            space: as for `suggest`.
            trials: as for `suggest`.
        """
        return ()

    def parent(self, space: SearchSpace, configuration: Configuration, trials: Sequence[Trial]) -> Trial | None:
        """The one of `parents` that a proposal begins with the weights of; a pure function. None: it has no parent.

        Args:
            space: as for `suggest`.
            configuration: what was proposed.
            trials: what `suggest` was shown.
        """
        return None
