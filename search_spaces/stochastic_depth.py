"""Stochastic depth: while training, a residual block leaves out its branch for some of the items.

Source: Huang et al. 2016, Deep Networks with Stochastic Depth, arXiv 1603.09382, section 3; per item, and
scaled while training instead of afterwards, as Larsson et al. 2017, FractalNet, arXiv 1605.07648, and timm do.
"""

import torch
from torch import Tensor, nn

__all__ = ["StochasticDepth", "drop_branches", "linear_rule"]


class StochasticDepth(nn.Module):
    """Goes around the branch of a residual block: `x + StochasticDepth(drop)(branch(x))`.

    In evaluation mode it does nothing: the mean of what comes through is the same in both modes. It draws from torch's
    global generator, as dropout does.

    Args:
        drop: likelihood with which an item goes without the branch, in [0, 1).

    Raises:
        ValueError: `drop` is outside its range.
    """

    def __init__(self, drop: float) -> None:
        """Keep the likelihood."""
        super().__init__()
        if not 0.0 <= drop < 1.0:
            raise ValueError(f"stochastic depth: drop={drop} is outside [0, 1)")
        self.drop = drop

    def forward(self, branch: Tensor) -> Tensor:
        """Return the branch, 0 for some items while training."""
        return drop_branches(branch, self.drop) if self.training else branch

    def extra_repr(self) -> str:
        """Name the likelihood where a network is printed."""
        return f"drop={self.drop}"


def drop_branches(branch: Tensor, drop: float) -> Tensor:
    """Return 0 for some items at random, and the others divided by the likelihood of staying.

    Args:
        branch: (N, ...) floating point; what is returned has its format.
        drop: likelihood of 0 for each item, in [0, 1).
    """
    if drop == 0.0:
        return branch
    # In float32, since 1 / (1 - drop) in bfloat16 is up to 0.2 % off, for all items alike.
    stays_N = branch.new_empty(branch.shape[:1], dtype=torch.float32).bernoulli_(1.0 - drop)
    return (branch * (stays_N / (1.0 - drop)).view(-1, *[1] * (branch.dim() - 1))).to(branch.dtype)


def linear_rule(blocks: int, last: float) -> list[float]:
    """Return the likelihood of each block's leaving out: it rises linearly to that of the last block.

    Early blocks find what all others build upon, and are kept more often (section 3, the linear decay rule).

    Args:
        blocks: L, at least 1.
        last: of block L, in [0, 1); 0.5 in the paper, for more than 50 blocks.
    """
    return [last * (block + 1) / blocks for block in range(blocks)]
