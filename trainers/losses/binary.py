"""The binary cross entropy: one yes-or-no question, or one for each class."""

import torch
from torch.nn import functional

from trainers.losses.shares import shares_of, smoothed, weights_of_items

__all__ = ["binary"]


def binary(
    logits_NK: torch.Tensor,
    targets: torch.Tensor,
    *,
    label_smoothing: float = 0.0,
    weight_K: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the binary cross entropy of each item, computed in float32 whatever the logits are.

    Two classes are one question, "is it the second?", with the difference of the two logits as its logit; so the
    softmax of the logits is the probability that was learned. From three classes on, each class is a question of its
    own with its own logit, and the loss is their sum: the largest logit is still the answer, while the softmax of the
    logits is no longer a probability that was learned, and the metrics `loss` and the areas under curves say less.

    Args:
        logits_NK: (N, K) unnormalised, K at least 2; N may be 0.
        targets: (N,) int64 in [0, K), or (N, K) float32 shares of the classes.
        label_smoothing: share of the target spread evenly over all K classes, in [0, 1).
        weight_K: factor of the items of each class; None: 1.

    Returns:
        (N,) float32.

    Source: for many classes Beyer et al. 2020, arXiv 2006.07159, section 5, and Wightman et al. 2021, arXiv 2110.00476.
    """
    logits_NK = logits_NK.float()
    shares_NK = shares_of(targets, logits_NK.shape[1])
    questions, answers = logits_NK, smoothed(shares_NK, label_smoothing)
    if logits_NK.shape[1] == 2:
        questions, answers = logits_NK[:, 1:] - logits_NK[:, :1], answers[:, 1:]
    losses_N = functional.binary_cross_entropy_with_logits(questions, answers, reduction="none").sum(dim=1)
    return losses_N * weights_of_items(shares_NK, weight_K)
