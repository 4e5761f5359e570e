"""Tries whether a widened network reads its new features, which it must not if it is to answer as its parent did.

Sizes do not tell how features are put together: where the answers of two layers are concatenated, the new features of
the first one lie where the second one's old ones were; and what has no weights may mix all features, such as a softmax.
So the new features are given other values, and the answers must stay.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from search_spaces.inheritance_widening import Block, Growth, Place, fill
from search_spaces.twins import twin

__all__ = ["reads_new_features"]

TOLERANCE = 1e-5
"""How far answers may be apart, as a share of the largest one: sums of the same numbers in another order."""


def reads_new_features(
    child: nn.Module,
    inputs: Sequence[Tensor],
    parent: Mapping[str, Tensor],
    blocks: Mapping[str, Block],
    places: Mapping[str, Place],
    growths: Iterable[Growth],
) -> bool:
    """Return whether the answers in evaluation mode depend on new features; the child stays as it is.

    Layers that have nothing of the parent do as if there were no new features: they change the answers anyway.

    Args:
        child: on the device of the inputs.
        inputs: its arguments for some items.
        parent: the parent's tensors.
        blocks: where they lie in the child's, by name.
        places: of the child's tensors.
        growths: of features.
    """
    least = {after: before for before, after in sorted(growths, reverse=True)}
    answers: list[Tensor] = []
    for is_changed in (False, True):
        with twin(child, batch_statistics=False) as copy, torch.no_grad():
            for name, tensor in (*copy.weights.items(), *copy.buffers.items()):
                place = places.get(name)
                if name in blocks:
                    fill(tensor, parent[name], blocks[name], place)
                elif place is not None and place.inputs is not None:
                    size = tensor.shape[place.inputs]
                    known = least.get(size, size)
                    tensor.narrow(place.inputs, known, size - known).zero_()
            weights = {name: weight.detach() for name, weight in copy.weights.items()}
            if is_changed:
                _change(weights, parent, blocks, places)
            answers.append(replace(copy, weights=weights)(*inputs))
    before, after = answers
    tolerance = TOLERANCE * float(before.abs().max())
    return not torch.allclose(before, after, rtol=0.0, atol=tolerance, equal_nan=True)


def _change(
    weights: Mapping[str, Tensor],
    parent: Mapping[str, Tensor],
    blocks: Mapping[str, Block],
    places: Mapping[str, Place],
) -> None:
    """Draw other weights for what makes new features, or changes them."""
    generator = torch.Generator().manual_seed(0)  # ranks must come to the same end
    for name, weight in weights.items():
        place = places.get(name)
        if name not in blocks or place is None:
            continue
        known = parent[name].shape[place.outputs]
        new = weight.narrow(place.outputs, known, weight.shape[place.outputs] - known)
        if weight.dim() > 1:
            drawn = torch.randn(new.shape, generator=generator) / math.sqrt(max(1, weight.numel() // weight.shape[0]))
        else:  # biases and factors above 0 bring a ReLU to life
            drawn = torch.rand(new.shape, generator=generator) + 0.5
        new.copy_(drawn)
