"""A learning rate that falls in steps."""

__all__ = ["stepwise"]


def stepwise(step: int, steps: int, *, drops: int, factor: float) -> float:
    """Return the factor to the power of the drops that are behind; they part the steps into equal stretches.

    Args:
        step: steps behind, 0 to `steps`.
        steps: steps of the fall, at least 1.
        drops: how often it falls, at least 1.
        factor: what each drop multiplies the learning rate by, in (0, 1).

    Source: He et al. 2016, arXiv 1512.03385, section 3.4, who divide by 10 when the error no longer falls; Goyal
        et al. 2017, arXiv 1706.02677, section 5.1, do so at fixed epochs, 30, 60 and 80 of 90.
    """
    return float(factor ** min(drops, step * (drops + 1) // steps))
