"""Tensors over the memory of numpy arrays, which processes share."""

import warnings
from typing import Any

import numpy.typing as npt
import torch

__all__ = ["shared_tensor"]


def shared_tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """Return a tensor over an array's own memory; nobody writes to it, so a read-only array will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
        return torch.from_numpy(array)
