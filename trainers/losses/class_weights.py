"""Weights that make up for classes of unequal size."""

import numpy as np
import numpy.typing as npt

__all__ = ["balanced_class_weights"]


def balanced_class_weights(labels_N: npt.NDArray[np.int64], num_classes: int) -> npt.NDArray[np.float32]:
    """Return a weight for each class, such that each that has items counts as much as any other.

    Their mean over the items is 1, so that the learning rate means what it does without weights.

    Args:
        labels_N: the classes of the training items, in [0, K); at least one.
        num_classes: K.

    Returns:
        (K,) positive; 1 for a class without items.

    Source: King and Zeng 2001, Logistic regression in rare events data; scikit-learn's `balanced`.
    """
    counts_K = np.bincount(labels_N, minlength=num_classes)
    present = counts_K > 0
    weights_K = np.ones(num_classes, dtype=np.float32)
    weights_K[present] = len(labels_N) / (present.sum() * counts_K[present])
    return weights_K
