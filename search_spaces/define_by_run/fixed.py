"""A trial whose answers are known: how code that asks while it runs is told a configuration."""

from collections.abc import Mapping
from typing import Any

from search_spaces.configuration import JsonScalar
from search_spaces.define_by_run.calls import TrialCalls
from search_spaces.errors import InvalidParameterError
from search_spaces.parameters import Parameter

__all__ = ["FixedTrial"]


class FixedTrial(TrialCalls):
    """Answers with the values of one configuration, so that a function that asks may build what was found.

    Args:
        configuration: name -> value, as `build_model`, `fit` and studies have it.

    Example:
        >>> def build(hp: TrialCalls) -> str:
        ...     return "x" * hp.Int("layers", 1, 4)
        >>> build(FixedTrial({"layers": 3}))
        'xxx'
    """

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__()
        self._configuration = configuration

    def answer(self, name: str, parameter: Parameter, default: Any) -> JsonScalar:
        """Return the value of the configuration.

        Raises:
            InvalidParameterError: it has none, or one that the function does not allow.
        """
        if name not in self._configuration:
            known = ", ".join(self._configuration)
            raise InvalidParameterError(f"the function asks for {name!r}, which is not among {known}")
        value = self._configuration[name]
        if problem := parameter.problem(value):
            raise InvalidParameterError(f"{name}={value!r} {problem}")
        return parameter.normalise(value)
