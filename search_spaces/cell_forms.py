"""Which cells of four nodes are the same network: two ways of writing down what the output computes.

Operations come as six names, in the order of `genotype.EDGES`: 0-1, 0-2, 1-2, 0-3, 1-3, 2-3.

`exact_form` tells networks apart, `published_form` is that of the benchmark, which differs in two ways. It writes a `#`
for whatever adds nothing and does not sort the terms of a node that a skip hands on, so that some equal networks have
several forms; and it forgets whether an expression that occurs twice is computed once, with one set of weights, or
twice, so that some networks share a form although one has more weights. The 15,625 cells have 6,466 published forms
(Dong and Yang 2020, arXiv:2001.00326, section 2.1) and 5,260 exact ones, the one of cells without a path included.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

__all__ = ["Operations", "exact_form", "first_of_each_form", "published_form"]

Operations: TypeAlias = tuple[str, ...]
"""The operation of each edge, in the order of `genotype.EDGES`."""
_Terms: TypeAlias = tuple[str, ...]
"""What a node is the sum of, sorted."""

_INPUT: _Terms = ("x",)


def exact_form(operations: Sequence[str]) -> str:
    """Return what the output computes; equal for two cells exactly if weights can be copied to make them one function.

    A dead edge is not in it, the number of a node neither; a skip hands on the terms of its node; equal terms without
    weights are one. A convolution whose result is used twice is marked, since two convolutions of the same input are
    something else. Only that of node 1 can be used twice: directly, and by way of node 2.

    That averaging a sum is adding averages, up to rounding, is left aside.
    """
    e01, e02, e12, e03, e13, e23 = operations
    is_used_twice = e01.startswith("conv") and "none" not in (e12, e13, e23)
    node1 = _arriving(e01 + "!" if is_used_twice else e01, _INPUT)
    node2 = _sum(_arriving(e02, _INPUT) + _arriving(e12, node1))
    node3 = _sum(_arriving(e03, _INPUT) + _arriving(e13, node1) + _arriving(e23, node2))
    return "+".join(node3)


def published_form(operations: Sequence[str]) -> str:
    """Return the benchmark's expression, by which it counts 6,466 different cells (its `to_unique_str`)."""
    e01, e02, e12, e03, e13, e23 = operations
    node1 = _published_term(e01, "x")
    node2 = "+".join(sorted((_published_term(e02, "x"), _published_term(e12, node1))))
    terms = (_published_term(e03, "x"), _published_term(e13, node1), _published_term(e23, node2))
    return "+".join(sorted(terms))


@cache
def first_of_each_form(names: tuple[str, ...]) -> Mapping[Operations, Operations]:
    """Return cell -> the cell that stands for its exact form, for all cells of some operations.

    It is the first in the order of the names, so with `none` as the first name it has no dead edge. All 15,625 cells of
    five operations take about 0.1 s, once per process; then asking takes less than a microsecond.

    Args:
        names: all operations, in their order.
    """
    first: dict[str, Operations] = {}
    return {operations: first.setdefault(exact_form(operations), operations) for operations in product(names, repeat=6)}


@cache  # few differ: 5 operations on each of some hundred sums
def _arriving(operation: str, terms: _Terms) -> _Terms:
    if operation == "none" or not terms:
        return ()
    return terms if operation == "skip" else (f"{operation}({'+'.join(terms)})",)


def _sum(terms: _Terms) -> _Terms:
    return tuple(sorted(terms))


def _published_term(operation: str, source: str) -> str:
    if operation == "none" or source == "#":
        return "#"
    return source if operation == "skip" else f"({source})@{operation}"
