"""A learning rate that falls along half a cosine to 0."""

import math

__all__ = ["cosine"]


def cosine(step: int, steps: int) -> float:
    """Return half a cosine from 1 at the beginning to 0 at the end.

    Source: Loshchilov and Hutter 2017, arXiv 1608.03983, equation 5, one period.
    """
    return 0.5 * (1.0 + math.cos(math.pi * step / steps))
