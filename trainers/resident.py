"""Items that lie in a device's memory as tensors: made from numpy arrays, and picked by their places."""

import warnings
from typing import Any

import numpy.typing as npt
import torch

__all__ = ["pick", "shared_tensor"]


def shared_tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """Return a tensor over an array's own memory; nobody writes to it, so a read-only array will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
        return torch.from_numpy(array)


def pick(tensor: torch.Tensor, items: torch.Tensor | slice) -> torch.Tensor:
    """Return the rows of a tensor at some places: a view for a slice, and a copy for indices.

    `index_select` takes half the time of `tensor[items]`, which counts where a step takes half a millisecond.
    """
    return tensor[items] if isinstance(items, slice) else tensor.index_select(0, items)
