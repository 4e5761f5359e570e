"""What answers are worth by a person's own loss and own metrics, over the items of all ranks."""

from collections.abc import Callable, Mapping

import torch

from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.losses import Loss
from trainers.metrics.gathering import gather_rows
from trainers.problem import Meter
from trainers.reporting import JsonValue

__all__ = ["LossMeter", "OwnMeter"]


class LossMeter:
    """Adds up the loss of each item.

    Args:
        loss: of each item.
        device: where answers are.
    """

    def __init__(self, loss: Loss, device: torch.device) -> None:
        self._loss = loss
        self._sums = torch.zeros(2, dtype=torch.float64, device=device)

    def add(self, answers: torch.Tensor, targets: torch.Tensor) -> None:
        """Count the answers to some items; nothing leaves the device."""
        losses_N = self._loss(answers, targets)
        self._sums += torch.stack(
            [losses_N.sum(dtype=torch.float64), torch.ones_like(losses_N).sum(dtype=torch.float64)]
        )

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return `loss`: the mean over all ranks' items."""
        loss, items = ranks.sum_(self._sums.clone()).cpu().tolist()
        if items == 0.0:
            raise ValueError("metrics need at least one item")
        return {"loss": loss / items}

    def details(self) -> Mapping[str, JsonValue]:
        """Return nothing: there is no more to tell."""
        return {}


class OwnMeter:
    """Keeps all answers, and hands them to a person's function once, together.

    Args:
        usual: what is measured besides.
        own: (answers, targets) of all items -> name -> number.
    """

    def __init__(self, usual: Meter, own: Callable[[torch.Tensor, torch.Tensor], Mapping[str, float]]) -> None:
        self._usual, self._own = usual, own
        self._kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add(self, answers: torch.Tensor, targets: torch.Tensor) -> None:
        """Keep the answers to some items."""
        self._usual.add(answers, targets)
        self._kept.append((answers.float(), targets))

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return the usual metrics and the own ones, which win; the same on every rank.

        Raises:
            UserCodeError: a rank has no items to tell the shape of answers by, or the function fails.
        """
        if not self._kept:
            raise UserCodeError("a rank has no item of its own to measure; use fewer ranks, or more validation items")
        answers = gather_rows(torch.cat([answers for answers, _ in self._kept]), ranks)
        targets = gather_rows(torch.cat([targets for _, targets in self._kept]), ranks)
        own: Mapping[str, float] | None = None
        usual = self._usual.total(ranks)
        with ranks.together("measuring by the file's metrics"):
            if ranks.is_first:
                own = self._own(answers.cpu(), targets.cpu())
        return usual | dict(ranks.gather_objects(own or {})[0])

    def details(self) -> Mapping[str, JsonValue]:
        """Return the details of the usual metrics."""
        return self._usual.details()
