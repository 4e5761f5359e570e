"""Every point of a grid, one after the other, in the order of the space's parameters.

Parameters with a few values have all of them; one with infinitely many, or more than `MOST_VALUES`, has some at equal
distances on its scale. A grid of chosen values is a space of choices.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from automl.objective import is_infeasible
from automl.samplers.base import NothingLeftError, Sampler
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError, SpaceRuleError
from search_spaces.parameters import Categorical, Parameter
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["GridSampler"]

MOST_VALUES = 100
"""Values of a parameter that are all on the grid."""
MOST_POINTS = 100_000
"""Points of a grid that can be gone through in a life."""
MOST_TRIES = 2
"""How often a point is tried that fails; a machine may have been to blame."""
_LISTED = 5


class GridSampler(Sampler):
    """Tries each point once; those that failed once more, when all others have been tried.

    A point that a person has tried, or that cannot be trained, needs no trial of the sampler's.
    """

    has_plan: ClassVar[bool] = True

    def __init__(self, direction: Direction, *, points: int = 5) -> None:
        """Set how fine the grid is.

        Args:
            direction: whether larger or smaller objectives are better.
            points: values of a parameter that has too many, at least 2: both ends and what is between them.

        Raises:
            ValueError: `points` is below 2.
        """
        super().__init__(direction)
        if points < 2:
            raise ValueError(f"points={points} must be at least 2")
        self.points = points
        self._grid: _Grid | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out the points, which are found anew."""
        return {**self.__dict__, "_grid": None}

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """The next point that nobody has tried, or one that failed."""
        if self._grid is None or self._grid.space is not space:
            self._grid = _Grid(space, self.points)
        settled, failed = self._grid.tried(trials)
        for point, key in self._grid.points():
            if key not in settled and key not in failed:
                return point
        grid = list(self._grid.points())
        missing = [(point, key) for point, key in grid if key not in settled]
        for point, key in missing:
            if failed[key] < MOST_TRIES:
                return point
        if not missing:
            raise NothingLeftError(f"grid done: {len(grid)} of {len(grid)} points")
        listed = "; ".join(_in_words(point) for point, _ in missing[:_LISTED])
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise NothingLeftError(f"{len(missing)} of {len(grid)} grid points have no value: {listed}{more}", lacks=True)


class _Grid:
    """The points of a space with their keys; each is made when it is needed first."""

    def __init__(self, space: SearchSpace, points: int) -> None:
        self.space = space
        self._rest = _coarse(space, points).every()
        self._points: list[tuple[Configuration, str]] = []
        self._known: set[str] = set()
        self._keys: dict[int, tuple[Trial, str]] = {}

    def points(self) -> Iterator[tuple[Configuration, str]]:
        """Every point with its key; of points that describe one network the first."""
        yield from self._points
        for point in self._rest:
            configuration = self.space.validate(point)
            key = _key(self.space, configuration)
            if key not in self._known:
                self._known.add(key)
                self._points.append((configuration, key))
                yield self._points[-1]

    def tried(self, trials: Sequence[Trial]) -> tuple[set[str], Counter[str]]:
        """Keys of what has a value, or will get one, or never can; and how often others have failed."""
        settled: set[str] = set()
        failed: Counter[str] = Counter()
        for trial in trials:
            key = self._key_of(trial)
            if trial.state is TrialState.FAILED and not is_infeasible(trial):
                failed[key] += 1
            elif not trial.is_imported:
                settled.add(key)
        return settled, failed

    def _key_of(self, trial: Trial) -> str:
        of, key = self._keys.get(trial.id, (None, ""))
        if of is not trial:
            key = _key(self.space, Configuration(trial.configuration))
            self._keys[trial.id] = (trial, key)
        return key


def _coarse(space: SearchSpace, points: int) -> SearchSpace:
    """The space with a few values of each parameter that has many.

    Raises:
        NothingLeftError: there are too many points.
    """
    parameters = {name: _few_values(parameter, points) for name, parameter in space.parameters.items()}
    coarse = SearchSpace(space.name, parameters)
    size = coarse.size()
    if size is None or size > MOST_POINTS:
        many = "more than can be counted" if size is None else f"{size:,}"
        raise NothingLeftError(
            f"the grid of the space '{space.name}' has {many} points, the most are {MOST_POINTS:,}; give fewer values, "
            "or another --sampler",
            lacks=True,
        )
    return coarse


def _few_values(parameter: Parameter, points: int) -> Parameter:
    """The parameter itself where it has few values, or others bound them."""
    size = parameter.size()
    if isinstance(parameter, Categorical) or (size is not None and (size <= MOST_VALUES or parameter.is_bounded)):
        return parameter
    if parameter.is_bounded:
        raise NothingLeftError("a grid needs a step for each number whose bounds depend on others", lacks=True)
    values = dict.fromkeys(parameter.at(place / (points - 1)) for place in range(points))
    few = Categorical(choices=tuple(values), ordered=True, role=parameter.role)
    return few if parameter.when is None else replace(few, when=parameter.when)


def _in_words(point: Configuration) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _key(space: SearchSpace, configuration: Configuration) -> str:
    try:
        return space.key(configuration)
    except (InvalidConfigurationError, SpaceRuleError):
        return repr(configuration)  # of another space, or the scheduler says what is wrong with it
