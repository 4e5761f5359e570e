"""What answers are worth by a person's own loss and own metrics, over the items of all ranks."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

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
            UserCodeError: no rank has an item, answers or targets of two items differ in their form, or the function
                fails.
        """
        answers, targets = self._gathered(ranks)
        own: Mapping[str, float] | None = None
        usual = self._usual.total(ranks)
        with ranks.together("measuring by the file's metrics"):
            if ranks.is_first:
                own = self._own(answers.cpu(), targets.cpu())
        return usual | dict(ranks.gather_objects(own or {})[0])

    def details(self) -> Mapping[str, JsonValue]:
        """Return the details of the usual metrics."""
        return self._usual.details()

    def _gathered(self, ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the answers to all ranks' items and their targets; a rank may have none, as in a pipeline."""
        forms = ranks.gather_objects({(_form(answers), _form(targets)) for answers, targets in self._kept})
        found = sorted(set().union(*forms), key=str)
        if not found:
            raise UserCodeError("there is no item to measure")
        if len(found) > 1:
            told = "; ".join(f"{answers} for {targets}" for answers, targets in found)
            raise UserCodeError(
                "metrics(answers, targets) takes all items at once, and their answers and targets have several forms: "
                f"{told}; let the network and the datasets give each item the same form"
            )
        of_answers, of_targets = found[0]
        answers = [of_answers.no_rows(ranks.device), *(answers for answers, _ in self._kept)]
        targets = [of_targets.no_rows(ranks.device), *(targets for _, targets in self._kept)]
        return gather_rows(torch.cat(answers), ranks), gather_rows(torch.cat(targets), ranks)


class _Form(NamedTuple):
    """Of one item's tensor.

    Attributes:
        shape: its sizes.
        kind: of its numbers.
    """

    shape: tuple[int, ...]
    kind: torch.dtype

    def __str__(self) -> str:
        return f"{str(self.kind).removeprefix('torch.')} {self.shape}"

    def no_rows(self, device: torch.device) -> torch.Tensor:
        return torch.zeros((0, *self.shape), dtype=self.kind, device=device)


def _form(rows: torch.Tensor) -> _Form:
    return _Form(tuple(rows.shape[1:]), rows.dtype)
