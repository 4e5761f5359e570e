"""The kinds of cost that a network can be limited by: how each is given, and how it is told."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["COST_KINDS", "CostKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostKind:
    """One kind of cost.

    Attributes:
        field: of the search's specification that holds the limit.
        verb: `has`, `takes`, .. so much.
        unit: what is counted.
        digits: decimals that are shown.
        is_quick: whether it takes milliseconds to tell the cost.
        is_of_training: whether it depends on the training's parameters, too.
        is_always_told: whether it is told without a limit, too, to see whether a network can be built.
    """

    field: str
    verb: str
    unit: str
    digits: int = 0
    is_quick: bool = True
    is_of_training: bool = False
    is_always_told: bool = False

    @property
    def flag(self) -> str:
        """Of the command line, by which the limit is given."""
        return f"--{self.field.replace('_', '-')}"

    def in_words(self, cost: float) -> str:
        """Such as `has 1,234 weights`."""
        return f"{self.verb} {self.rounded_up(cost):,.{self.digits}f} {self.unit}"

    def rounded_up(self, cost: float) -> float:
        """The cost in the digits that are shown, so that a limit of so much allows it."""
        return math.ceil(cost * 10.0**self.digits) / 10.0**self.digits


COST_KINDS: Sequence[CostKind] = (
    CostKind(field="max_params", verb="has", unit="weights"),
    CostKind(field="max_flops", verb="makes", unit="multiply-adds for an item", is_always_told=True),
    CostKind(field="max_memory_mib", verb="needs", unit="MiB of memory", digits=1, is_of_training=True),
    CostKind(field="max_latency_ms", verb="takes", unit="ms for an item", digits=2, is_quick=False),
)
"""The quickest to tell first."""
