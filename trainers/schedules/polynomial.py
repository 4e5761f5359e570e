"""A learning rate that falls along a power of the steps that are left."""

__all__ = ["polynomial"]


def polynomial(step: int, steps: int, *, power: float) -> float:
    """Return the share of the steps that is left, raised to a power.

    Args:
        step: steps behind, 0 to `steps`.
        steps: steps of the fall, at least 1.
        power: above 0; 1: a line, larger: falls early, smaller: falls late.

    Source: Liu et al. 2015, ParseNet, arXiv 1506.04579; Chen et al. 2017, DeepLab, arXiv 1606.00915 ("poly").
    """
    return float((1.0 - step / steps) ** power)
