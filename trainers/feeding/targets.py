"""Which targets items may have: looked at where batches are still on the CPU, so that a wrong one is told by its name.

On a device a wrong class is an error without a place, or none at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from trainers.errors import BadDataError

__all__ = ["TargetCheck"]

_SHOWN = 5
"""Items that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCheck:
    """Refuses items whose targets cannot be learned.

    Attributes:
        place: where the items are from, for messages, such as `own.py: validation`.
        classes: targets are whole numbers from 0 and below this; None: they are finite numbers.
    """

    place: str
    classes: int | None

    def checked(self, targets: torch.Tensor, items: Callable[[], Sequence[int]]) -> torch.Tensor:
        """Return targets in the type that losses take.

        Args:
            targets: (N, ...) on the CPU.
            items: tells the numbers of the N items in their dataset; asked for a message alone.

        Raises:
            BadDataError: items have targets that are not allowed.
        """
        right = torch.isfinite(targets) if self.classes is None else _are_classes(targets, self.classes)
        if not bool(right.all()):
            wrong = torch.nonzero(~right.reshape(len(targets), -1).all(dim=1)).flatten().tolist()
            raise BadDataError(self._message(targets, wrong, items()))
        return targets.to(torch.float32 if self.classes is None else torch.int64)

    def _message(self, targets: torch.Tensor, wrong: Sequence[int], items: Sequence[int]) -> str:
        told = ", ".join(f"item {items[row]} has the target {_text(targets[row])}" for row in wrong[:_SHOWN])
        more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
        if self.classes is None:
            return f"{self.place} {told}{more}; allowed: finite numbers; repair these items, or leave them out"
        return (
            f"{self.place} {told}{more}; allowed: whole numbers from 0 to {self.classes - 1}, as there are "
            f"{self.classes} classes; repair these items, or let NUM_OUTPUTS of the file say how many classes there are"
        )


def _are_classes(targets: torch.Tensor, classes: int) -> torch.Tensor:
    is_in_range = (targets >= 0) & (targets < classes)
    return is_in_range & (targets == targets.floor()) if targets.is_floating_point() else is_in_range


def _text(target: torch.Tensor) -> str:
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in target.flatten().tolist()]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
