"""Which values of a parameter leave others none: what a bound further on asks of the numbers before it.

`b` from 0 to 9 with `at_most="1 - a"` asks that `a` is at most 1. Draws that know it do not end where nothing is left.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from search_spaces.bounds import Bound
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Parameter
from search_spaces.ranges import STEP_TOLERANCE, is_number

__all__ = ["Need", "foreseen", "impossible", "needs_of"]


@dataclass(frozen=True, slots=True)
class Need:
    """A sum that must be at least 0, or a parameter has no value.

    Attributes:
        owner: the parameter whose bounds ask for it; it counts where the owner is there.
        total: the sum.
    """

    owner: str
    total: Bound


def needs_of(parameters: Mapping[str, Parameter]) -> Sequence[Need]:
    """Return what the bounds ask for: each within the other end of the range, and the lower one below the upper.

    What is asked of a parameter that is bounded itself asks something of those before it, which is there, too.
    """
    found: list[Need] = []
    for name, parameter in parameters.items():
        (lower, upper), ends = parameter.bounds, parameter.ends
        if ends is None:
            continue
        least, most = Bound(ends[0]) if lower is None else lower, Bound(ends[1]) if upper is None else upper
        if lower is not None:
            found.append(Need(name, Bound(ends[1]).minus(lower)))
        if upper is not None:
            found.append(Need(name, upper.minus(Bound(ends[0]))))
        if lower is not None and upper is not None:
            found.append(Need(name, most.minus(least)))
    return [each for need in found for each in _with_earlier(need, parameters)]


def impossible(parameters: Mapping[str, Parameter]) -> Iterator[str]:
    """Yield why a parameter that is always there has no value whatever the others are, a sentence each."""
    told: set[str] = set()
    for need in needs_of(parameters):
        owner = parameters[need.owner]
        if owner.when is not None or need.owner in told:
            continue
        most = _most(need.total, {}, parameters)
        if most is not None and most < -_slack(need.total):
            told.add(need.owner)
            bounds = zip(("at least", "at most"), owner.bound_texts, strict=True)
            words = " and ".join(f"{side} {text}" for side, text in bounds if text is not None)
            yield f"{need.owner} has no value, whatever the others are: {words} leaves nothing of its range"


def foreseen(
    name: str,
    left: Parameter,
    values: Mapping[str, JsonScalar],
    parameters: Mapping[str, Parameter],
    needs: Sequence[Need],
) -> Parameter | float | None:
    """Return what is left of a parameter when those after it are to have values, too.

    Args:
        name: of the parameter.
        left: what the values before it leave.
        values: those before it.
        parameters: those of the space.
        needs: what `needs_of` has found.

    Returns:
        The parameter with the range that is left, the only value that is left, or None: none is.
    """
    low, high = -math.inf, math.inf
    for need in needs:
        factor = dict(need.total.factors).get(name)
        if not factor or not parameters[need.owner].condition.holds(values):
            continue
        rest = _most(need.total, values, parameters, but=name)
        if rest is not None:
            limit, slack = -rest / factor, _slack(need.total) / abs(factor)
            low, high = (max(low, limit - slack), high) if factor > 0 else (low, min(high, limit + slack))
    return left if (low, high) == (-math.inf, math.inf) or left.ends is None else left.cut_to(low, high)


def _with_earlier(need: Need, parameters: Mapping[str, Parameter]) -> Iterator[Need]:
    """Yield a need, then the same with the last bounded parameter at its bound, and so on."""
    places = {name: place for place, name in enumerate(parameters)}
    while True:
        yield need
        bounds = {}
        for name, factor in need.total.factors:
            parameter = parameters.get(name)
            bound = None if parameter is None or parameter.when is not None else parameter.bounds[factor > 0]
            # What a parameter depends on comes before it: so this ends.
            if bound is not None and all(places.get(other, len(places)) < places[name] for other in bound.names):
                bounds[name] = bound
        if not bounds:
            return
        last = max(bounds, key=places.__getitem__)
        need = Need(need.owner, need.total.replaced(last, bounds[last]))


def _most(
    total: Bound, values: Mapping[str, JsonScalar], parameters: Mapping[str, Parameter], but: str | None = None
) -> float | None:
    """The largest that a sum can become, without one of its terms; None: it is not certain that there is one."""
    most = total.constant
    for name, factor in total.factors:
        if name == but:
            continue
        number = values.get(name)
        if is_number(number):
            most += factor * number
            continue
        parameter = parameters.get(name)
        if name in values or parameter is None or parameter.when is not None or parameter.ends is None:
            return None  # it is no number, or may not be there: then it bounds nothing
        most += max(factor * end for end in parameter.ends)
    return most


def _slack(total: Bound) -> float:
    """How far a sum of floats may be off."""
    return STEP_TOLERANCE * (abs(total.constant) + sum(abs(factor) for _, factor in total.factors)) * 1e-2
