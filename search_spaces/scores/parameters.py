"""The number of weights: the simplest score, which every other one should beat."""

from torch import Tensor, nn

from search_spaces.cost import count_parameters

__all__ = ["parameters"]


def parameters(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return the number of weights; one that is used in two places counts once. The batch makes no difference."""
    return float(count_parameters(model))
