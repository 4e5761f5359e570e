"""Parameters that belong together: a block of them under one prefix, and a block that is there several times.

What comes out are ordinary parameters for a `SearchSpace`; blocks and repeats may hold others.
"""

from collections.abc import Mapping
from typing import TypeAlias

from search_spaces.conditions import When
from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidParameterError
from search_spaces.parameters import Categorical, Integer, Parameter, Role
from search_spaces.placing import placed
from search_spaces.ranges import is_integer

__all__ = ["MOST_ITEMS", "Block", "block", "repeat"]

Block: TypeAlias = Mapping[str, Parameter | JsonScalar]
"""Name -> parameter, or a constant."""

MOST_ITEMS = 256
"""A block is there at most so often."""


def block(
    prefix: str, parameters: Block, *, role: Role | None = None, when: When | None = None
) -> dict[str, Parameter]:
    """Return parameters with a prefix before each name: `kernel` of the block `stem` is `stem_kernel`.

    Conditions and bounds that speak of parameters of the block follow them; those on others stay.

    Args:
        prefix: of the names, without the underscore.
        parameters: those of the block.
        role: of all of them; None: each keeps its own.
        when: with which the whole block is there, by the names outside of it; None: always.

    Raises:
        InvalidParameterError: a parameter of the block could never be there.

    Example:
        >>> stem = {"pool": Categorical(choices=("max", "none")), "size": Integer(low=2, high=3, when={"pool": "max"})}
        >>> {name: str(parameter.condition) for name, parameter in block("stem", stem).items()}
        {'stem_pool': '', 'stem_size': 'stem_pool is max'}
    """
    names = {name: f"{prefix}_{name}" for name in parameters}
    return {names[name]: placed(given, names=names, role=role, when=when) for name, given in parameters.items()}


def repeat(
    name: str,
    count: Integer | Categorical,
    each: Block,
    *,
    item: str | None = None,
    role: Role | None = None,
) -> dict[str, Parameter]:
    """Return a count, and a block for each of as many items as the count says.

    `repeat("layers", Integer(low=1, high=3), {"width": ...}, item="layer")` gives `layers`, `layer_1_width`,
    `layer_2_width` and `layer_3_width`, the second of which is there when `layers` is 2 or 3.

    Args:
        name: of the count.
        count: how often the block is there; whole numbers from 0 to `MOST_ITEMS`.
        each: the parameters of one item.
        item: prefix of the items, before their number from 1; None: the count's name.
        role: of all of them, the count as well; None: each keeps its own.

    Raises:
        InvalidParameterError: the count is no whole number from 0 to `MOST_ITEMS`, or a parameter of the block could
            never be there.
    """
    if isinstance(count, Integer) and count.high > MOST_ITEMS:  # before its values are listed
        raise InvalidParameterError(f"repeat: {name} goes to {count.high}; a block is there at most {MOST_ITEMS} times")
    numbers = tuple(count.values())
    wrong = [value for value in numbers if not is_integer(value) or not 0 <= value <= MOST_ITEMS]
    if wrong:
        raise InvalidParameterError(
            f"repeat: {name} may be {', '.join(map(repr, wrong))}; give whole numbers from 0 to {MOST_ITEMS}"
        )
    counts = [number for number in numbers if is_integer(number)]
    found = {name: placed(count, role=role)}
    for number in range(1, max(counts) + 1):
        enough = tuple(value for value in counts if value >= number)
        always = len(enough) == len(counts) and count.when is None
        found |= block(f"{item or name}_{number}", each, role=role, when=None if always else {name: enough})
    return found
