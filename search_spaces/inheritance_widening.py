"""Says where the tensors of a narrower network lie in those of a wider one, judged by names, kinds of layers and sizes.

Unlike in Net2Net new features are no copies of old ones: they are drawn, and their outgoing weights are zero. So any
width follows any smaller one, sums of branches need no common choice of copies, and no noise has to tell copies apart.
Sizes cannot tell how features are put together; `inheritance_check` tries that.

Source: Chen et al. 2015, Net2Net, arXiv 1511.05641, section 2.2.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["Block", "Growth", "Place", "block_of", "fill", "growths_of", "places_of"]

Growth: TypeAlias = tuple[int, int]
"""Number of features in the parent, and in the child."""
Block: TypeAlias = tuple[slice, ...]
"""Where a parent's tensor lies within a child's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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


def places_of(network: nn.Module) -> dict[str, Place]:
    """Return the places of the tensors whose growth is understood, by name."""
    return {
        f"{path}.{name}" if path else name: place
        for path, module in network.named_modules()
        for name, place in _places_in(module).items()
    }


def growths_of(
    child: nn.Module, places: Mapping[str, Place], ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]
) -> frozenset[Growth]:
    """Return the numbers of features that may grow and keep the old answers: somebody makes them, somebody reads them.

    A tensor with more or fewer dimensions than the parent's of that name belongs to another layer and tells nothing.

    Args:
        child: knows whether it flattens maps.
        places: those of the child.
        ours: the child's tensors, by name.
        theirs: the parent's.
    """
    made: set[Growth] = set()
    read: set[Growth] = set()
    mixed: set[Growth] = set()
    for name in ours.keys() & theirs.keys():
        if theirs[name].dim() != ours[name].dim():
            continue
        sizes = list(zip(theirs[name].shape, ours[name].shape, strict=True))
        place = places.get(name)
        if place is None:
            mixed.update(size for size in sizes if size[0] != size[1])
        elif not place.acts_on_each:
            made.add(sizes[place.outputs])
            read.update([] if place.inputs is None else [sizes[place.inputs]])
    if any(isinstance(module, nn.Flatten) for module in child.modules()):
        _join_flattened(made, read)
    return frozenset(growth for growth in (made & read) - mixed if growth[0] < growth[1])


def block_of(place: Place | None, theirs: Tensor, ours: Tensor, growths: Iterable[Growth]) -> Block | None:
    """Return where a parent's tensor lies within a child's; None: it does not fit."""
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


def fill(ours: Tensor, theirs: Tensor, block: Block, place: Place | None) -> None:
    """Copy a parent's tensor into a child's; what makes old features reads none of the new ones."""
    if place is not None and theirs.shape != ours.shape:
        ours.narrow(place.outputs, 0, theirs.shape[place.outputs]).zero_()
    ours[block].copy_(theirs)


def _places_in(module: nn.Module) -> dict[str, Place]:
    if isinstance(module, nn.Linear):
        return {"weight": Place(inputs=1), "bias": Place()}
    if isinstance(module, nn.Embedding):
        return {"weight": Place(outputs=1)}
    if isinstance(module, _BatchNorm):
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), Place(acts_on_each=True))
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        if module.groups == 1:
            return {"weight": Place(inputs=1, convolution=module), "bias": Place()}
        if module.groups == module.in_channels == module.out_channels:
            each = Place(acts_on_each=True, convolution=module)
            return {"weight": each, "bias": Place(acts_on_each=True)}
    return {}


def _join_flattened(made: set[Growth], read: set[Growth]) -> None:
    """A layer behind nn.Flatten reads all pixels of the first channel, then those of the second, and so on."""
    for parent, child in list(read):
        for before, after in list(made):
            if before < after and parent % before == 0 and parent * after == child * before:
                read.add((before, after))
                made.add((parent, child))


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
