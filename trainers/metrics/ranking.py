"""How well scores put the items of a class before all others: exact, with ties shared.

Shapes: N items, K classes.
"""

from typing import NamedTuple

import torch

__all__ = ["Ranking", "rank_items", "ranked_metrics"]


class Ranking(NamedTuple):
    """How well one score ranks.

    Attributes:
        auc: area under the ROC curve: how often an item of the class has a higher score than one of another class,
            a tie counting half.
        average_precision: mean over the items of the class of the precision at their score.
    """

    auc: float
    average_precision: float


def rank_items(scores_N: torch.Tensor, positive_N: torch.Tensor) -> Ranking:
    """Return how well a score ranks the items of a class first.

    Args:
        scores_N: (N,) any numbers.
        positive_N: (N,) bool; items of the class and others, at least one of both.

    Source: Fawcett 2006, An introduction to ROC analysis, algorithms 2 and 3 (trapezoids over groups of equal
        scores); average precision as the sum of precisions weighted by the rise in recall, without interpolation.
    """
    order_N = torch.argsort(scores_N, descending=True)
    _, sizes = torch.unique_consecutive(scores_N[order_N], return_counts=True)
    taken = sizes.cumsum(0)  # items down to the end of each group of equal scores
    right = positive_N[order_N].to(torch.int64).cumsum(0)[taken - 1].to(torch.float64)
    wrong = taken.to(torch.float64) - right
    rise = torch.diff(right, prepend=right.new_zeros(1))
    area = (torch.diff(wrong, prepend=wrong.new_zeros(1)) * (right - 0.5 * rise)).sum()
    precision = (rise * right / taken).sum()
    positives, negatives = right[-1], wrong[-1]
    return Ranking(auc=float(area / (positives * negatives)), average_precision=float(precision / positives))


def ranked_metrics(logits_NK: torch.Tensor, labels_N: torch.Tensor) -> dict[str, float]:
    """Return `auc` and `average_precision`; nothing where only one class occurs, as they are not defined there.

    Of two classes it is the second that is ranked; of more it is the mean over the classes that occur, each against
    all others (macro, one versus rest).
    """
    present = torch.unique(labels_N).tolist()
    if len(present) < 2:
        return {}
    if logits_NK.shape[1] == 2:
        found = [rank_items(logits_NK[:, 1] - logits_NK[:, 0], labels_N == 1)]
    else:
        # Logarithms rank as probabilities do, without their ties near 0; a class's scores lie together for the sort.
        scores_KN = torch.log_softmax(logits_NK, dim=1).T.contiguous()
        found = [rank_items(scores_KN[label], labels_N == label) for label in present]
    return {
        "auc": sum(ranking.auc for ranking in found) / len(found),
        "average_precision": sum(ranking.average_precision for ranking in found) / len(found),
    }
