"""Which of the known configurations is nearest to one that is not known."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Parameter
from search_spaces.space import SearchSpace

__all__ = ["Nearest"]


class Nearest:
    """Looks for the nearest one, number by number on the scale that is sampled.

    Choices without an order are all one apart; so is a parameter that only one of two configurations has. Numbers and
    ordered choices are at most one apart. What counts is the sum of the squares; of equals the first one is taken.

    Args:
        space: what the configurations are of.
        known: valid configurations, at least one.
    """

    def __init__(self, space: SearchSpace, known: Sequence[Mapping[str, JsonScalar]]) -> None:
        self._space = space
        self._is_choice = np.array([_is_choice(parameter) for parameter in space.parameters.values()])
        self._rows = np.array([self._row(configuration) for configuration in known])

    def index(self, configuration: Mapping[str, JsonScalar]) -> int:
        """The place of the nearest one among the known ones."""
        row = self._row(configuration)
        apart = np.abs(self._rows - row)
        apart = np.where(self._is_choice & (apart > 0.0), 1.0, apart)
        is_missing = np.isnan(self._rows), np.isnan(row)
        apart = np.where(is_missing[0] | is_missing[1], (is_missing[0] != is_missing[1]).astype(np.float64), apart)
        return int(np.square(apart).sum(axis=1).argmin())

    def _row(self, configuration: Mapping[str, JsonScalar]) -> NDArray[np.float64]:
        parameters = self._space.parameters.items()
        return np.array(
            [
                _position(parameter, configuration[name]) if name in configuration else np.nan
                for name, parameter in parameters
            ]
        )


def _is_choice(parameter: Parameter) -> bool:
    return isinstance(parameter, Categorical) and not parameter.ordered


def _position(parameter: Parameter, value: JsonScalar) -> float:
    if isinstance(parameter, Categorical):
        place = parameter.encoded(value)
        return place / max(1, len(parameter.choices) - 1) if parameter.ordered else place
    return parameter.position(value)
