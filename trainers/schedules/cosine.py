"""The learning rate as a pure function of the step; nothing to store, nothing to step."""

import math

__all__ = ["warmup_cosine"]


def warmup_cosine(step: int, total_steps: int, warmup_steps: int) -> float:
    """Return the share of the peak learning rate at one optimizer step.

    Rises linearly over `warmup_steps` (the first step uses 1/`warmup_steps`, the last of them 1), then falls
    along half a cosine towards 0 at `total_steps`.

    Args:
        step: number of optimizer steps made before this one, from 0; beyond `total_steps` it counts as `total_steps`.
        total_steps: steps of the whole training, at least 1.
        warmup_steps: steps of the rise, 0 to `total_steps`.

    Returns:
        A factor in [0, 1].

    Raises:
        ValueError: a number is out of its range.

    Source: Loshchilov and Hutter 2017, arXiv 1608.03983, equation 5, one period; the warm-up follows Goyal et
        al. 2017, arXiv 1706.02677, section 2.2.
    """
    if step < 0 or total_steps < 1 or not 0 <= warmup_steps <= total_steps:
        raise ValueError(
            f"step={step}, total_steps={total_steps}, warmup_steps={warmup_steps}: "
            "need step >= 0, total_steps >= 1 and 0 <= warmup_steps <= total_steps"
        )
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if step >= total_steps:
        return 0.0
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps)))
