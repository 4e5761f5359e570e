"""Lets a network begin with the weights of another one as far as they fit, so that it answers as that one did.

Three things leave the answers as they are: a weight of the same path and shape is copied; a layer that has become wider
keeps what it had, and nothing old reads its new features at first (`inheritance_widening`); a layer that has been added
begins as the identity where it can (`inheritance_deepening`). What fits in none of these ways stays as it was drawn,
and is named. Nothing is known here of searches, nor of what has no weights: the parent's answers are kept only where
that is as it was, and nothing was taken away.

Source: Chen et al. 2015, Net2Net, arXiv 1511.05641, and Wei et al. 2016, Network Morphism, arXiv 1603.01670.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from search_spaces.inheritance_check import reads_new_features
from search_spaces.inheritance_deepening import StartsAsIdentity, open_identities, silence
from search_spaces.inheritance_widening import Block, Growth, Place, block_of, fill, growths_of, places_of

__all__ = ["Inheritance", "StartsAsIdentity", "inherit", "silence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inheritance:
    """What a child has of its parent.

    A child answers what its parent answered when nothing is fresh but what `identities` has, the child lacks none of
    the parent's layers, each is of the same kind, and what has no weights is as it was (activations, skips, heads).

    Attributes:
        taken: names of weights and buffers that were copied whole.
        widened: names of those that have the parent's values in a part of them, and of which what is old reads nothing
            new at first.
        identities: paths of added layers that answer at first what they are given.
        fresh: names of those that have nothing of the parent, those of `identities` among them.
        share: of the child's weights, how many have a value of the parent; in [0, 1].
    """

    taken: tuple[str, ...]
    widened: tuple[str, ...]
    identities: tuple[str, ...]
    fresh: tuple[str, ...]
    share: float


@torch.no_grad()
def inherit(
    child: nn.Module, parent_state: Mapping[str, object], inputs: Sequence[Tensor] | None = None
) -> Inheritance:
    """Give a network what fits of another one's weights.

    Layers may grow where linear layers, convolutions and embeddings make features that linear layers and convolutions
    read. Between them may be batch normalisation, and what has no weights and acts on each feature by itself. Where
    another kind of layer grows with them, such as layer normalisation, which mixes all features, they stay as they are:
    the old answers could not be kept. Kernels may grow around their middle. Nothing shrinks.

    Args:
        child: is changed in place; its weights are drawn already.
        parent_state: what `state_dict` of the other network returned; is left as it is.
        inputs: the child's arguments for an item or some, on its device. The widened network is tried with them, and
            where its answers depend on new features no layer grows: concatenated features lie elsewhere than before, or
            something without weights mixes them. None: names and sizes alone decide, which do not tell that.
    """
    parent = _tensors(parent_state)
    ours = _tensors(child.state_dict())
    places = places_of(child)
    growths = growths_of(child, places, ours, parent)
    blocks = _blocks(places, parent, ours, growths)
    identities = tuple(open_identities(child, parent))
    if growths and inputs is not None and reads_new_features(child, inputs, parent, blocks, places, growths):
        blocks = _blocks(places, parent, ours, ())
    for name, block in blocks.items():
        fill(ours[name], parent[name], block, places.get(name))
    weights = dict(child.named_parameters())
    inherited = sum(parent[name].numel() for name in blocks if name in weights)
    taken = {name for name in blocks if parent[name].shape == ours[name].shape}
    return Inheritance(
        taken=tuple(name for name in blocks if name in taken),
        widened=tuple(name for name in blocks if name not in taken),
        identities=identities,
        fresh=tuple(name for name in ours if name not in blocks),
        share=inherited / max(1, sum(weight.numel() for weight in weights.values())),
    )


def _tensors(state: Mapping[str, object]) -> dict[str, Tensor]:
    """A state without what modules have put there beside tensors."""
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}


def _blocks(
    places: Mapping[str, Place], parent: Mapping[str, Tensor], ours: Mapping[str, Tensor], growths: Iterable[Growth]
) -> dict[str, Block]:
    """Where the parent's tensors lie within those of the child that they fit, by name."""
    found = {
        name: block_of(places.get(name), parent[name], tensor, growths)
        for name, tensor in ours.items()
        if name in parent
    }
    return {name: block for name, block in found.items() if block is not None}
