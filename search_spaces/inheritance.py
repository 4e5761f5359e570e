"""Lets a network begin with the weights of another one as far as they fit, so that it answers as that one did.

Three things leave the answers as they are: a weight of the same path and shape is copied; a layer that has become wider
keeps what it had, and nothing old reads its new features at first; a layer that has been added begins as the identity
where it can. What fits in none of these ways stays as it was drawn, and is named. Nothing is known here of searches.

Source: Chen et al. 2015, Net2Net, arXiv 1511.05641, and Wei et al. 2016, Network Morphism, arXiv 1603.01670. Unlike in
Net2Net new features are no copies of old ones: they are drawn, and their outgoing weights are zero. So any width
follows any smaller one, sums of branches need no common choice of copies, and no noise has to tell copies apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["Inheritance", "StartsAsIdentity", "inherit", "silence"]

Growth: TypeAlias = tuple[int, int]
"""Number of features in the parent, and in the child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inheritance:
    """What a child has of its parent.

    Attributes:
        taken: names of weights and buffers that were copied whole.
        widened: names of those that have the parent's values in a part of them, such that old answers stay.
        identities: paths of added layers that leave the answers as they are.
        fresh: names of those that have nothing of the parent, those of `identities` among them.
        share: of the child's weights, how many have a value of the parent; in [0, 1].
    """

    taken: tuple[str, ...]
    widened: tuple[str, ...]
    identities: tuple[str, ...]
    fresh: tuple[str, ...]
    share: float


@runtime_checkable
class StartsAsIdentity(Protocol):
    """A layer that may be added to a network without a change of its answers."""

    def start_as_identity(self) -> bool:
        """Set weights such that the layer answers what it is given; whether it does, otherwise nothing is changed."""


@torch.no_grad()
def inherit(child: nn.Module, parent_state: Mapping[str, Tensor]) -> Inheritance:
    """Give a network what fits of another one's weights.

    Layers may grow where linear layers, convolutions and embeddings make features that linear layers and convolutions
    read. Between them may be batch normalisation, and what has no weights and acts on each feature by itself. Where
    another kind of layer grows with them, such as layer normalisation, which mixes all features, they stay as they are:
    the old answers could not be kept. Kernels may grow around their middle. Nothing shrinks.

    Args:
        child: is changed in place; its weights are drawn already.
        parent_state: what `state_dict` of the other network returned; is left as it is.
    """
    ours = {name: tensor for name, tensor in child.state_dict().items() if isinstance(tensor, Tensor)}
    weights = dict(child.named_parameters())
    places = _places(child)
    growths = _growths(child, places, ours, parent_state)
    taken, widened, fresh = [], [], []
    inherited = 0
    for name, tensor in ours.items():
        theirs = parent_state.get(name)
        block = None if theirs is None else _block(places.get(name), theirs, tensor, growths)
        if theirs is None or block is None:
            fresh.append(name)
            continue
        if theirs.shape == tensor.shape:
            taken.append(name)
        else:
            widened.append(name)
            # What makes old features reads none of the new ones.
            tensor.narrow(places[name].outputs, 0, theirs.shape[places[name].outputs]).zero_()
        tensor[block].copy_(theirs)
        inherited += theirs.numel() if name in weights else 0
    return Inheritance(
        taken=tuple(taken),
        widened=tuple(widened),
        identities=tuple(_open_identities(child, parent_state)),
        fresh=tuple(fresh),
        share=inherited / max(1, sum(weight.numel() for weight in weights.values())),
    )


def silence(branch: nn.Module) -> bool:
    """Let a layer or chain answer 0 until it has learned; whether its last layer can: batch norm, or a linear one."""
    layers = list(branch) if isinstance(branch, nn.Sequential) else [branch]
    last = [layer for layer in layers if not isinstance(layer, _SILENT)][-1]
    if not isinstance(last, _BatchNorm | nn.Linear) or last.weight is None:
        return False
    nn.init.zeros_(last.weight)
    if last.bias is not None:
        nn.init.zeros_(last.bias)
    return True


# Widening


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the features of a layer lie in one of its tensors.

    Attributes:
        outputs: the dimension of the features that it makes.
        inputs: the dimension of those that it reads; None: there is none.
        acts_on_each: whether it changes each feature by itself, and so makes none.
        convolution: whose kernel the other dimensions are; None: there are no others that may grow.
    """

    outputs: int = 0
    inputs: int | None = None
    acts_on_each: bool = False
    convolution: nn.Conv1d | nn.Conv2d | nn.Conv3d | None = None


def _places(network: nn.Module) -> dict[str, _Place]:
    """The tensors of layers whose growth is understood, by name."""
    return {
        f"{path}.{name}" if path else name: place
        for path, module in network.named_modules()
        for name, place in _places_of(module).items()
    }


def _places_of(module: nn.Module) -> dict[str, _Place]:
    if isinstance(module, nn.Linear):
        return {"weight": _Place(inputs=1), "bias": _Place()}
    if isinstance(module, nn.Embedding):
        return {"weight": _Place(outputs=1)}
    if isinstance(module, _BatchNorm):
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), _Place(acts_on_each=True))
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        if module.groups == 1:
            return {"weight": _Place(inputs=1, convolution=module), "bias": _Place()}
        if module.groups == module.in_channels == module.out_channels:
            each = _Place(acts_on_each=True, convolution=module)
            return {"weight": each, "bias": _Place(acts_on_each=True)}
    return {}


def _growths(
    child: nn.Module, places: Mapping[str, _Place], ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]
) -> frozenset[Growth]:
    """The numbers of features that grow such that the old answers can be kept: somebody makes them, somebody reads."""
    made: set[Growth] = set()
    read: set[Growth] = set()
    mixed: set[Growth] = set()
    for name in ours.keys() & theirs.keys():
        sizes = list(zip(theirs[name].shape, ours[name].shape, strict=False))
        place = places.get(name)
        if place is None:
            mixed.update(size for size in sizes if size[0] != size[1])
        elif not place.acts_on_each:
            made.add(sizes[place.outputs])
            read.update([] if place.inputs is None else [sizes[place.inputs]])
    if any(isinstance(module, nn.Flatten) for module in child.modules()):
        _join_flattened(made, read)
    return frozenset(growth for growth in (made & read) - mixed if growth[0] < growth[1])


def _join_flattened(made: set[Growth], read: set[Growth]) -> None:
    """A layer behind nn.Flatten reads all pixels of the first channel, then those of the second, and so on."""
    for parent, child in list(read):
        for before, after in list(made):
            if before < after and parent % before == 0 and parent * after == child * before:
                read.add((before, after))
                made.add((parent, child))


def _block(place: _Place | None, theirs: Tensor, ours: Tensor, growths: frozenset[Growth]) -> tuple[slice, ...] | None:
    """Where a parent's tensor lies within a child's; None: it does not fit."""
    if theirs.shape == ours.shape:
        return (slice(None),) * ours.dim()
    if place is None or theirs.dim() != ours.dim():
        return None
    block = []
    for dimension, growth in enumerate(zip(theirs.shape, ours.shape, strict=True)):
        begin: int | None = 0
        if growth[0] != growth[1] and not (dimension in (place.outputs, place.inputs) and growth in growths):
            begin = _kernel_begin(place.convolution, dimension, growth)
        if begin is None:
            return None
        block.append(slice(begin, begin + growth[0]))
    return tuple(block)


def _kernel_begin(convolution: nn.Conv1d | nn.Conv2d | nn.Conv3d | None, dimension: int, growth: Growth) -> int | None:
    """Where a smaller kernel lies in the middle of a larger one; None: it has no place there.

    The middle stays where it was when both are padded by half their size.
    """
    if convolution is None or dimension < 2:
        return None
    padding = convolution.padding
    axis = dimension - 2
    is_centred = not isinstance(padding, str) and padding[axis] == growth[1] // 2 and convolution.dilation[axis] == 1
    difference = growth[1] - growth[0]
    return difference // 2 if is_centred and difference > 0 and difference % 2 == 0 else None


# Deepening


def _open_identities(child: nn.Module, parent_state: Mapping[str, Tensor]) -> Iterator[str]:
    """Let those added layers begin as the identity that can; their paths."""
    old = {name[:end] for name in parent_state for end in range(len(name)) if name[end] == "."}
    opened = ""
    for path, module in child.named_modules():
        if opened and path.startswith(f"{opened}."):
            continue
        if isinstance(module, StartsAsIdentity) and path not in old and path and module.start_as_identity():
            opened = path
            yield path
        if isinstance(module, nn.Sequential):
            yield from _open_linear_layers(path, module, old)


def _open_linear_layers(path: str, chain: nn.Sequential, old: set[str]) -> Iterator[str]:
    """A linear layer between two ReLUs may be the identity: what the first one lets through, the second one does, too.

    Source: Chen et al., section 2.3; there for every activation f with f(f(x)) = f(x).
    """
    layers = [(name, layer) for name, layer in chain.named_children() if not isinstance(layer, _SILENT)]
    for (_, before), (name, layer), (_, after) in zip(layers, layers[1:], layers[2:], strict=False):
        where = f"{path}.{name}" if path else name
        is_square = isinstance(layer, nn.Linear) and layer.in_features == layer.out_features
        if is_square and where not in old and isinstance(before, nn.ReLU) and isinstance(after, nn.ReLU):
            assert isinstance(layer, nn.Linear)
            nn.init.eye_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
            yield where


_SILENT = (nn.Dropout, nn.Identity)
"""Layers that change nothing in evaluation."""
