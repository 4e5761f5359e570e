"""Cuts a network that is a chain of layers into stages of about equal cost; what ranks send each other is elsewhere.

A chain is an `nn.Sequential`, or a module with a method `chain()` that returns its children in the order in which they
are called, each with the answer of the one before; parts that are chains themselves are taken apart.
"""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from trainers.errors import UserCodeError

__all__ = ["Layer", "Passage", "Stage", "chain_of", "cut", "hollow_copy", "passages"]


class Layer(NamedTuple):
    """One layer of a chain.

    Attributes:
        name: its name in the whole network.
        module: the layer.
    """

    name: str
    module: nn.Module


class Passage(NamedTuple):
    """What one layer answers to a batch, without its values.

    Attributes:
        answer: on torch's `meta` device; None where the layer answers something else than one tensor.
        multiply_adds: of the layer, for the whole batch.
    """

    answer: torch.Tensor | None
    multiply_adds: int


class Stage(nn.Module):
    """Some consecutive layers of a network; weights and buffers keep the names that they have in the whole network.

    Args:
        layers: at least one.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__()
        self._called = tuple(layer.module for layer in layers)
        for layer in layers:
            *folders, name = layer.name.split(".")
            place: nn.Module = self
            for folder in folders:
                if folder not in place._modules:
                    place.add_module(folder, nn.Module())
                place = place.get_submodule(folder)
            place.add_module(name, layer.module)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the answer of the last layer."""
        first, *others = self._called
        answer = first(*inputs)
        for layer in others:
            answer = layer(answer)
        tensor: torch.Tensor = answer
        return tensor


def chain_of(network: nn.Module) -> list[Layer]:
    """Return the layers of a chain, in the order in which they are called.

    Raises:
        UserCodeError: the network is no chain.
    """
    if not _is_chain(network):
        raise UserCodeError(
            f"parallel=pipeline needs a chain of layers, and {type(network).__name__} may call its own in any way: "
            "make it an nn.Sequential, give it a method `chain()` that returns its children in the order in which each "
            "takes the answer of the one before, or use parallel=ddp or fsdp"
        )
    return list(_links("", network))


def hollow_copy(network: nn.Module) -> nn.Module:
    """Copy a network's structure with weights and buffers on the CPU that have a shape and no memory of their own."""
    parameters = {id(weight): weight for weight in network.parameters()}
    hollow: dict[int, torch.Tensor] = {
        key: nn.Parameter(_without_memory(weight), weight.requires_grad) for key, weight in parameters.items()
    }
    hollow |= {id(buffer): _without_memory(buffer) for buffer in network.buffers()}
    return copy.deepcopy(network, hollow)  # the copies that are made already, by id


def passages(
    layers: Sequence[Layer],
    inputs: Sequence[torch.Tensor],
    device: torch.device,
    autocast: AbstractContextManager[object],
) -> list[Passage]:
    """Pass a batch through a chain on shapes and types alone; no value is computed.

    Args:
        layers: on any device, with or without memory.
        inputs: of the first layer; only their shapes and types matter.
        device: where the layers are to compute, since autocast depends on it.
        autocast: in which they compute.

    Raises:
        UserCodeError: what a layer does depends on values.
    """
    answers: list[object] = []
    counts = [0]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.no_grad(), autocast, FlopCounterMode(display=False) as counter:
        values: tuple[object, ...] = tuple(_empty(part, device) for part in inputs)
        for name, layer in layers:
            tensors = itertools.chain(layer.named_parameters(), layer.named_buffers())
            shadows = {tensor_name: _empty(tensor, device) for tensor_name, tensor in tensors}
            try:
                answers.append(functional_call(layer, shadows, values))
            except Exception as error:
                raise UserCodeError(
                    f"parallel=pipeline must know what layer {name!r} answers without computing it, which failed: "
                    f"{type(error).__name__}: {error}; use parallel=ddp or fsdp"
                ) from error
            values = (answers[-1],)
            counts.append(int(counter.get_total_flops()))
    work = [(after - before) // 2 for before, after in itertools.pairwise(counts)]
    return [Passage(_on_meta(answer), own) for answer, own in zip(answers, work, strict=True)]


def cut(layers: Sequence[Layer], passed: Sequence[Passage], stages: int) -> list[slice]:
    """Cut a chain into stages such that the dearest one is as cheap as can be.

    The cost of a layer is its share in the network's weights plus its share in the multiply-adds. Each stage has
    weights that are trained, and hands one tensor to the next.

    Args:
        layers: the chain.
        passed: what each layer answers, and its multiply-adds.
        stages: how many, at least 1.

    Raises:
        UserCodeError: there are too few layers, or a weight would be part of two stages.
    """
    weights = [sum(weight.numel() for weight in layer.module.parameters()) for layer in layers]
    trains = [any(weight.requires_grad for weight in layer.module.parameters()) for layer in layers]
    work = [passage.multiply_adds for passage in passed]
    costs = [own / max(1, sum(weights)) + part / max(1, sum(work)) for own, part in zip(weights, work, strict=True)]
    may_end = [passage.answer is not None for passage in passed]
    ends = _best_ends(costs, trains, may_end, stages)
    if ends is None:
        raise UserCodeError(
            f"parallel=pipeline cuts a network into as many stages as there are ranks, {stages}, each with weights to "
            f"train and one tensor as its answer; this chain of {len(layers)} layers has weights in {sum(trains)} of "
            "them: use fewer ranks, a deeper network, or parallel=ddp"
        )
    found = [slice(start, end) for start, end in itertools.pairwise([0, *ends])]
    _refuse_shared_weights(layers, found)
    return found


def _best_ends(
    costs: Sequence[float], trains: Sequence[bool], may_end: Sequence[bool], stages: int
) -> list[int] | None:
    """Return where each stage ends, or None; by dynamic programming over the ends of the stages before.

    `best[end]` is the cost of the dearest stage among those that share the layers before `end`, and where they end.
    """
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for stage in range(stages):
        is_last = stage == stages - 1
        following: dict[int, tuple[float, list[int]]] = {}
        for start, (dearest, ends) in best.items():
            cost, has_weights = 0.0, False
            for end in range(start + 1, len(costs) + 1):
                cost += costs[end - 1]
                has_weights = has_weights or trains[end - 1]
                fits = end == len(costs) if is_last else may_end[end - 1]
                if has_weights and fits and (end not in following or max(dearest, cost) < following[end][0]):
                    following[end] = (max(dearest, cost), [*ends, end])
        best = following
    return best[len(costs)][1] if len(costs) in best else None


def _refuse_shared_weights(layers: Sequence[Layer], stages: Sequence[slice]) -> None:
    owners: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for name, layer in layers[stage]:
            for tensor_name, tensor in itertools.chain(layer.named_parameters(), layer.named_buffers()):
                if owners.setdefault(id(tensor), number) != number:
                    raise UserCodeError(
                        f"parallel=pipeline cannot put {name}.{tensor_name} on two ranks, and two of the stages use "
                        "it: use parallel=ddp or fsdp for networks whose layers share weights"
                    )


def _is_chain(module: nn.Module) -> bool:
    return type(module).forward is nn.Sequential.forward or callable(getattr(module, "chain", None))


def _links(name: str, module: nn.Module) -> Iterator[Layer]:
    if not _is_chain(module):
        yield Layer(name, module)
        return
    for child_name, child in _children(module):
        yield from _links(f"{name}.{child_name}" if name else child_name, child)


def _children(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the children of a chain by name, in the order of their calls; one that is called twice comes twice."""
    if type(module).forward is nn.Sequential.forward:
        return [(name, child) for name, child in module._modules.items() if child is not None]
    names: Mapping[int, str] = {id(child): name for name, child in module.named_children()}
    called = list(module.chain())  # type: ignore[operator]  # `_is_chain` has looked
    strange = [type(child).__name__ for child in called if id(child) not in names]
    if strange:
        raise UserCodeError(
            f"{type(module).__name__}.chain() returns {', '.join(strange)}, which is no child of its own"
        )
    return [(names[id(child)], child) for child in called]


def _without_memory(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty((), dtype=tensor.dtype).expand(tensor.shape)


def _empty(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=device)


def _on_meta(answer: object) -> torch.Tensor | None:
    if not isinstance(answer, torch.Tensor):
        return None
    return torch.empty(answer.shape, dtype=answer.dtype, device="meta")
