"""Which epoch was the best, and when to stop hoping for a better one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainers.config import Direction
from trainers.reporting import JsonValue

__all__ = ["BestEpoch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEpoch:
    """The best objective so far; a value that `after` replaces by the next one.

    Attributes:
        direction: which way is better.
        patience: epochs without an improvement after which training stops; 0: never.
        min_change: an epoch improves on the mark when it is better by more than this.
        value: the best objective; None before the first epoch.
        epoch: the first epoch that had it, counted from 1; 0 before the first.
        details: what else is known of that epoch, such as its confusion matrix.
        mark: the objective that patience is counted from.
        mark_epoch: the epoch of `mark`.
        last_epoch: the last epoch that was seen.
    """

    direction: Direction
    patience: int = 0
    min_change: float = 0.0
    value: float | None = None
    epoch: int = 0
    mark: float | None = None
    mark_epoch: int = 0
    last_epoch: int = 0
    details: Mapping[str, JsonValue] = field(default_factory=dict)

    def after(self, epoch: int, value: float, details: Mapping[str, JsonValue] | None = None) -> "BestEpoch":
        """Return the state after one more epoch; `value` is finite."""
        seen = replace(self, last_epoch=epoch)
        if self._gain(value, self.value) > 0.0:
            seen = replace(seen, value=value, epoch=epoch, details=details or {})
        if self._gain(value, self.mark) > self.min_change:
            seen = replace(seen, mark=value, mark_epoch=epoch)
        return seen

    @property
    def is_exhausted(self) -> bool:
        """Whether `patience` epochs have passed without an improvement."""
        return self.patience > 0 and self.last_epoch - self.mark_epoch >= self.patience

    def state(self) -> dict[str, JsonValue]:
        """Return what a checkpoint stores: the history, not the settings."""
        names = ("value", "epoch", "mark", "mark_epoch", "last_epoch", "details")
        return {name: getattr(self, name) for name in names}

    def restored(self, state: Mapping[str, JsonValue]) -> "BestEpoch":
        """Return these settings with the history of a checkpoint."""
        return replace(self, **state)  # type: ignore[arg-type]  # the keys and types are those of `state`

    def _gain(self, value: float, reference: float | None) -> float:
        if reference is None:
            return float("inf")
        return value - reference if self.direction == "maximize" else reference - value
