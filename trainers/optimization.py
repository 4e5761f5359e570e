"""One optimizer step: learning rate, gradient scaling, clipping, and the count of steps really made."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from trainers.precision import MixedPrecision
from trainers.schedules import warmup_cosine

__all__ = ["Optimization"]


class Optimization:
    """Moves the weights of one network along a schedule.

    The learning rate depends on the number of steps made; a step that fp16 had to skip does not move it.

    Attributes:
        steps_made: optimizer steps made so far, over all attempts.
        skipped_steps: steps not made because a gradient overflowed.
        last_learning_rate: the learning rate of the step before; that of the first step at the beginning.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: MixedPrecision,
        *,
        learning_rate: float,
        total_steps: int,
        warmup_steps: int,
        gradient_clip: float = 0.0,
    ) -> None:
        self.steps_made = 0
        self.skipped_steps = 0
        self._optimizer = optimizer
        self._precision = precision
        self._weights = [weight for weight in network.parameters() if weight.requires_grad]
        self._peak = learning_rate
        self._total_steps = total_steps
        self._warmup_steps = warmup_steps
        self._gradient_clip = gradient_clip
        self.last_learning_rate = self.learning_rate

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self.learning_rate_at(self.steps_made)

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the step that follows `step` made ones."""
        return self._peak * warmup_cosine(step, self._total_steps, self._warmup_steps)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of one micro-batch."""
        self._precision.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def step(self) -> bool:
        """Move the weights by the gradients gathered since the last step, and forget the gradients.

        Returns:
            Whether the step was made.
        """
        self.last_learning_rate = self.learning_rate
        for group in self._optimizer.param_groups:
            group["lr"] = self.last_learning_rate
        if self._gradient_clip > 0.0:
            self._precision.unscale(self._optimizer)
            nn.utils.clip_grad_norm_(self._weights, self._gradient_clip, foreach=True)
        made = self._precision.step(self._optimizer)
        self.steps_made += made
        self.skipped_steps += not made
        self._optimizer.zero_grad(set_to_none=True)
        return made

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next step depends on, besides the weights."""
        return {
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._precision.state_dict(),
            "steps_made": self.steps_made,
            "skipped_steps": self.skipped_steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._optimizer.load_state_dict(state["optimizer"])
        self._precision.load_state_dict(state["scaler"])
        self.steps_made = int(state["steps_made"])
        self.skipped_steps = int(state["skipped_steps"])
