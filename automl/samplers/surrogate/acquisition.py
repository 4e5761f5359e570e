"""How much better than the best a point promises to be: expected improvement, in logarithms.

Source: Jones, Schonlau and Welch 1998; the stable logarithm as in Ament et al. 2023 (arXiv 2310.20708).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["log_expected_improvement"]

_FAR = -4.5
"""Standard deviations from which on the difference of two nearly equal numbers is replaced by its series."""
_LOG_ROOT_2_PI = 0.5 * np.log(2.0 * np.pi)


def log_expected_improvement(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], best: float
) -> NDArray[np.float64]:
    """Return the logarithm of how far below `best` a normal variable is expected to fall.

    Args:
        mean: its mean.
        deviation: its standard deviation, above 0.
        best: what is to be beaten; smaller is better.
    """
    z = (best - mean) / deviation
    near, far = np.maximum(z, _FAR), np.minimum(z, _FAR)
    density = np.exp(-0.5 * near * near - _LOG_ROOT_2_PI)
    close = np.log(near * ndtr(near) + density)
    tail = -0.5 * far * far - _LOG_ROOT_2_PI - 2.0 * np.log(-far) + np.log1p(-3.0 / (far * far))
    return np.asarray(np.log(deviation) + np.where(z > _FAR, close, tail))
