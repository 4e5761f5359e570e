"""Runs of a define-by-run function: what it asks for when it is given some values."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from search_spaces.configuration import JsonScalar
from search_spaces.define_by_run.calls import TrialCalls
from search_spaces.errors import InvalidParameterError, InvalidSpaceError
from search_spaces.own_code import OWN_CODE_ERRORS
from search_spaces.parameters import Parameter

__all__ = ["Run", "Runner", "Suggest", "told"]

Suggest: TypeAlias = Callable[[Any], object]
"""Asks a trial for values."""

MOST_RUNS = 20_000
"""A function that needs more of them is refused: it would be run as often wherever the space is read."""
MOST_ASKED = 2_000
"""A function that asks for more is taken for one that never ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the function.

    Attributes:
        asked: name -> what it may be, in the order of the questions.
        values: name -> what was answered.
        has_defaults: whether the function has named a default.
    """

    asked: Mapping[str, Parameter]
    values: Mapping[str, JsonScalar]
    has_defaults: bool


class _Recorder(TrialCalls):
    """Answers with wanted values as far as they are allowed, else with a usual one, and remembers the questions."""

    def __init__(self, wanted: Mapping[str, JsonScalar]) -> None:
        super().__init__()
        self._wanted = wanted
        self.asked: dict[str, Parameter] = {}
        self.given: dict[str, JsonScalar] = {}
        self.has_defaults = False

    def answer(self, name: str, parameter: Parameter, default: Any) -> JsonScalar:
        if name in self.asked:
            if self.asked[name] != parameter:
                raise InvalidParameterError(
                    f"{name!r} is asked for twice, with two ranges; give each a name of its own"
                )
            return self.given[name]
        if len(self.asked) >= MOST_ASKED:
            raise InvalidParameterError(f"more than {MOST_ASKED} parameters are asked for")
        self.asked[name] = parameter
        self.has_defaults |= default is not None
        if name in self._wanted and parameter.problem(self._wanted[name]) is None:
            value = self._wanted[name]
        elif default is None:
            value = parameter.middle()
        elif problem := parameter.problem(default):
            raise InvalidParameterError(f"{name}: the default {default!r} {problem}")
        else:
            value = default
        self.given[name] = parameter.normalise(value)
        return self.given[name]


class Runner:
    """Runs the function, and tells its errors with their place."""

    def __init__(self, name: str, suggest: Suggest) -> None:
        self.name = name
        self._suggest = suggest
        self._runs = 0

    def run(self, wanted: Mapping[str, JsonScalar]) -> Run:
        """Run the function with the wanted values as far as it allows them.

        Raises:
            InvalidSpaceError: it has raised; the message has the line. Or it was run too often.
        """
        self._runs += 1
        if self._runs > MOST_RUNS:
            raise InvalidSpaceError(
                f"search space {self.name!r}: {MOST_RUNS} runs of the function do not tell when it asks for what; "
                "write the space with conditions (`when`) instead"
            )
        recorder = _Recorder(wanted)
        try:
            self._suggest(recorder)
        except OWN_CODE_ERRORS as error:
            raise InvalidSpaceError(
                f"search space {self.name!r}: {_place(error)}{type(error).__name__}: {error} (answers so far: "
                f"{told(recorder.given) or 'none'})"
            ) from error
        return Run(recorder.asked, recorder.given, recorder.has_defaults)


def told(values: Mapping[str, JsonScalar], names: Sequence[str] | None = None) -> str:
    """Return answers as a person reads them: all, or those of some names."""
    return ", ".join(f"{name}={values[name]!r}" for name in (values if names is None else names))


def _place(error: BaseException) -> str:
    """Where in its own file a function has raised, such as `space.py, line 7: `; empty: it was not run at all."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}: " if own else ""
