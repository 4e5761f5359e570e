"""Lets layers that a parent does not have begin as the identity, so that a deeper network answers as it did.

Source: Chen et al. 2015, Net2Net, arXiv 1511.05641, section 2.3.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["StartsAsIdentity", "open_identities", "silence"]

_SILENT = (nn.Dropout, nn.Identity)
"""Layers that change nothing in evaluation."""


@runtime_checkable
class StartsAsIdentity(Protocol):
    """A layer that may be added to a network without a change of its answers."""

    def start_as_identity(self) -> bool:
        """Set weights such that the layer answers what it is given; whether it does, otherwise nothing is changed."""


def silence(branch: nn.Module) -> bool:
    """Let a layer or chain answer 0 until it has learned; whether its last layer can: batch norm, or a linear one."""
    layers = list(branch) if isinstance(branch, nn.Sequential) else [branch]
    lasting = [layer for layer in layers if not isinstance(layer, _SILENT)]
    last = lasting[-1] if lasting else None
    if not isinstance(last, _BatchNorm | nn.Linear) or last.weight is None:
        return False
    nn.init.zeros_(last.weight)
    if last.bias is not None:
        nn.init.zeros_(last.bias)
    return True


def open_identities(child: nn.Module, parent_state: Mapping[str, Tensor]) -> Iterator[str]:
    """Let those added layers begin as the identity that can; their paths.

    Args:
        child: is changed in place.
        parent_state: whose names say which layers are there already.
    """
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

    In the paper so for every activation f with f(f(x)) = f(x).
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
