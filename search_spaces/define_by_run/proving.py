"""From a define-by-run function to the parameters of a space, compared with each other at random.

So nothing rests on what was deduced: a function that asks for something else than its space says is refused.
"""

from collections.abc import Mapping

from search_spaces.conditions import is_same
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.define_by_run.exploring import FEW, MANY, Exploration
from search_spaces.define_by_run.moving_ranges import same_range
from search_spaces.define_by_run.recording import Run, Runner, Suggest, told
from search_spaces.errors import InvalidConfigurationError, InvalidSpaceError
from search_spaces.parameters import Parameter
from search_spaces.space import SearchSpace
from search_spaces.structure import within

__all__ = ["proved_parameters"]

PROOFS = 200
"""Random configurations with which a space is compared with its function."""


def proved_parameters(name: str, suggest: Suggest) -> tuple[dict[str, Parameter], Mapping[str, JsonScalar] | None]:
    """Return the parameters that a function asks for, and its defaults where it names any.

    Args:
        name: of the space, for messages.
        suggest: the function.

    Raises:
        InvalidSpaceError: the function raises, or asks for what is no search space.
    """
    runner = Runner(name, suggest)
    usual = runner.run({})
    if not usual.asked:
        raise InvalidSpaceError(f"search space {name!r}: the function asks for nothing")
    defaults = usual.values if usual.has_defaults else None
    try:
        return _proved(runner, usual, few=FEW), defaults
    except _DisprovedError:
        return _proved(runner, usual, few=MANY), defaults


class _DisprovedError(InvalidSpaceError):
    """The function asks for something else than the space that was deduced."""


def _proved(runner: Runner, start: Run, few: int) -> dict[str, Parameter]:
    """Return the parameters that a function asks for, compared with it at random.

    Raises:
        _DisprovedError: it asks for something else than what was deduced.
    """
    seen = Exploration(runner, few)
    run: Run | None = start
    while run is not None:  # each time a name is new, so that there is an end
        seen.explore(run)
        parameters = seen.parameters()
        run = _stranger(runner, seen, parameters)
    return parameters


def _stranger(runner: Runner, seen: Exploration, parameters: Mapping[str, Parameter]) -> Run | None:
    """Return a run that asks for something unknown; None: there is none among many, and they ask for what they should.

    Raises:
        _DisprovedError: one does not.
    """
    from numpy.random import default_rng

    space = SearchSpace(runner.name, parameters)
    rng = default_rng(0)
    for _ in range(PROOFS):
        try:
            wanted = space.sample(rng)
        except InvalidConfigurationError as error:
            raise InvalidSpaceError(str(error)) from error
        run = runner.run(wanted)
        if any(name not in parameters for name in run.asked):
            return run
        if problem := _difference(runner, seen, parameters, wanted, run):
            raise _DisprovedError(f"search space {runner.name!r}: {problem}")
    return None


def _difference(
    runner: Runner, seen: Exploration, parameters: Mapping[str, Parameter], wanted: Configuration, run: Run
) -> str | None:
    """Say what a run has asked for otherwise than the space says, if anything."""
    for name, parameter in parameters.items():
        if name in wanted and name in run.asked:
            if same_range(within(parameter, wanted), run.asked[name]):
                continue
            said = f"{name!r} has another range with {told(seen.first(name))} than with {told(run.values)}"
            advice = "ask for the widest range, or give each range a name of its own"
        elif name in wanted:
            said = f"{name!r} is asked for {_both(seen.first(name), run.values)}"
            advice = _ADVICE
        elif name in run.asked:
            said = f"{name!r} is asked for {_both(run.values, seen.without(name, parameter, run.values))}"
            advice = _ADVICE
        else:
            continue
        if runner.run(run.values).asked != run.asked:
            return f"{said}; and the function asks for other things when it is run with the same values again"
        return f"{said}; {advice}"
    return None


_ADVICE = (
    "a condition of a space is a list of values for each of some parameters, and all must hold; ask for it always, or "
    "under another name in each branch"
)


def _both(first: Mapping[str, JsonScalar], second: Mapping[str, JsonScalar]) -> str:
    """Tell two sets of answers by those that differ."""
    names = [name for name in first if name in second and not is_same(first[name], second[name])]
    return f"with {told(first, names)}, but not with {told(second, names)}"
