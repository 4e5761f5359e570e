"""One optimizer step: learning rate, gradient scaling, clipping, and the count of steps really made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from trainers.clipping import clip_gradients
from trainers.methods.method import Method
from trainers.parallel.base import Parallel
from trainers.precision import MixedPrecision
from trainers.schedules import Schedule

__all__ = ["Optimization"]


class Optimization:
    """Moves the weights of one network along a schedule.

    The learning rate depends on the number of steps made; a step that fp16 had to skip does not move it.

    Args:
        parallel: holds the weights and their gradients.
        optimizer: over the weights that this rank moves.
        precision: scales the loss where the number format asks for it.
        schedule: the learning rate of each step.
        gradient_clip: largest norm of the whole network's gradient; 0: any.
        methods: are told of each step.
        see_gradients: is called with the network while it has the gradient whose norm is measured.

    Attributes:
        steps_made: optimizer steps made so far, over all attempts.
        skipped_steps: steps not made because a gradient overflowed.
        skipped_in_a_row: those of them since the last step that was made.
        last_learning_rate: the learning rate of the step before; that of the first step at the beginning.
        gradient_norm: the norm of the last gradient that was measured, before it was clipped; on the device.
    """

    def __init__(
        self,
        parallel: Parallel,
        optimizer: torch.optim.Optimizer,
        precision: MixedPrecision,
        schedule: Schedule,
        *,
        gradient_clip: float = 0.0,
        methods: Sequence[Method] = (),
        see_gradients: Callable[[nn.Module], None] | None = None,
    ) -> None:
        self.steps_made = 0
        self.skipped_steps = 0
        self.skipped_in_a_row = 0
        self.gradient_norm: torch.Tensor | None = None
        self._parallel = parallel
        self._optimizer = optimizer
        self._precision = precision
        self._methods = methods
        self._see_gradients = see_gradients
        self._weights = [weight for weight in parallel.network.parameters() if weight.requires_grad]
        self._schedule = schedule
        self._gradient_clip = gradient_clip
        self.last_learning_rate = self.learning_rate_at(0)

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the step that follows `step` made ones."""
        return self._schedule(step)

    def backward(self, losses: torch.Tensor, weight: float) -> None:
        """Add the gradients of the sum of some losses, times a weight."""
        # The weight enters as the gradient of each loss, which saves the sum and the product that would bring it there.
        seeds = self._precision.scale(torch.full_like(losses, weight))
        losses.backward(seeds)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def step(self, *, measures_norm: bool = False) -> bool:
        """Move the weights by the gradients gathered since the last step, and forget the gradients.

        Args:
            measures_norm: keep the norm of the gradient even where nothing is clipped.

        Returns:
            Whether the step was made.
        """
        self.last_learning_rate = self.learning_rate_at(self.steps_made)
        for group in self._optimizer.param_groups:
            group["lr"] = self.last_learning_rate
        self._change_gradients(measures_norm)
        made = self._precision.step(self._optimizer)
        self.steps_made += made
        self.skipped_steps += not made
        self.skipped_in_a_row = 0 if made else self.skipped_in_a_row + 1
        for weight in self._weights:  # as `zero_grad` does, which costs a small network's step a twentieth
            weight.grad = None
        if made:
            for method in self._methods:
                method.after_step(self._parallel.network)
        return made

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next step depends on, besides the weights."""
        return {
            "optimizer": self._parallel.optimizer_state(self._optimizer),
            "scaler": self._precision.state_dict(),
            "steps_made": self.steps_made,
            "skipped_steps": self.skipped_steps,
            "skipped_in_a_row": self.skipped_in_a_row,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._parallel.load_optimizer(self._optimizer, state["optimizer"])
        self._precision.load_state_dict(state["scaler"])
        self.steps_made = int(state["steps_made"])
        self.skipped_steps = int(state["skipped_steps"])
        self.skipped_in_a_row = int(state.get("skipped_in_a_row", 0))  # a release before has none

    def _change_gradients(self, measures_norm: bool) -> None:
        """Bring the gradients back to their true size where somebody looks at them, let methods at them, clip them."""
        clips = self._gradient_clip > 0.0
        if not (clips or measures_norm or self._methods):
            return
        self._precision.unscale(self._optimizer)
        for method in self._methods:
            method.before_step(self._parallel.network)
        if not (clips or measures_norm):
            return
        self.gradient_norm = self._parallel.gradient_norm()
        if measures_norm and self._see_gradients is not None:
            self._see_gradients(self._parallel.network)
        if clips:
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            clip_gradients(gradients, self.gradient_norm, self._gradient_clip)
