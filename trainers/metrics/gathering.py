"""Brings the rows that each rank holds together on every rank."""

import torch

from trainers.distributed import Ranks

__all__ = ["gather_rows"]


def gather_rows(rows: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    """Return the rows of all ranks, in rank order, on every rank; a collective.

    Each rank puts its rows among zeros, and the sum over the ranks is exact. That moves twice what a gather of
    unequal parts would, and needs nothing but a sum.

    Args:
        rows: (n, ...) on the ranks' device, with n of its own on each rank; 0 is fine.
        ranks: the ranks.
    """
    if ranks.world_size == 1:
        return rows
    counts = torch.zeros(ranks.world_size, dtype=torch.int64, device=rows.device)
    counts[ranks.rank] = len(rows)
    ends = ranks.sum_(counts).cumsum(0).tolist()
    gathered = torch.zeros((ends[-1], *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    gathered[ends[ranks.rank] - len(rows) : ends[ranks.rank]] = rows
    return ranks.sum_(gathered)
