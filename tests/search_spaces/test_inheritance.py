from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from search_spaces.genotype import CellGenotype
from search_spaces.inheritance import Inheritance, inherit, silence
from search_spaces.shapes import TableShape, TextShape

IMAGES = (2, 8, 8)
TABLE = TableShape(numbers=3, categories=(4, 3))
TEXTS = TextShape(vocabulary=20, length=6)


def network(space: str, seed: int, values: dict[str, JsonScalar]) -> nn.Module:
    """A network of a space's defaults but for some values, whose norms have seen and learned something."""
    torch.manual_seed(seed)
    module = catalog.load(space)
    assert module.SPACE.defaults is not None
    shape: Any = {"images": IMAGES, "tabular": TABLE, "text_classification": TEXTS}.get(module.SPACE.task, IMAGES)
    built: nn.Module = module.build_model({**module.SPACE.defaults, **values}, shape, 3)
    for name, tensor in built.state_dict().items():
        if tensor.is_floating_point() and tensor.dim() == 1:
            tensor.copy_(torch.rand_like(tensor) + 0.5 * ("bias" not in name))
    return built


def inputs(space: str) -> tuple[Tensor, ...]:
    torch.manual_seed(9)
    task = catalog.load(space).SPACE.task
    if task == "tabular":
        return torch.randn(5, 3), torch.randint(0, 3, (5, 2))
    return (torch.randint(1, 20, (5, 6)),) if task == "text_classification" else (torch.randn(5, *IMAGES),)


def answers(model: nn.Module, space: str) -> Tensor:
    with torch.no_grad():
        out: Tensor = model.eval()(*inputs(space))
    return out


def child_of(
    space: str, before: dict[str, JsonScalar], after: dict[str, JsonScalar]
) -> tuple[Inheritance, Tensor, Tensor]:
    """What a child has inherited, its answers, and its parent's."""
    parent = network(space, 1, before)
    child = network(space, 2, before | after)
    return inherit(child, parent.state_dict(), inputs(space)), answers(child, space), answers(parent, space)


NONE: dict[str, JsonScalar] = {}
WAYS = {
    "equal": ("nas_small", NONE, NONE),
    "cells-wider": ("nas_small", {"channels": 12}, {"channels": 20}),
    "cells-deeper": ("nas_small", {"cells_per_stage": 1}, {"cells_per_stage": 2}),
    "table-wider": ("tabular_mlp", {"norm": "none", "width": 32}, {"width": 96}),
    "table-wider-batch-norm": ("tabular_mlp", {"norm": "batch", "width": 32}, {"width": 64}),
    "table-deeper": ("tabular_mlp", {"norm": "none", "activation": "relu", "depth": 2}, {"depth": 4}),
    "table-both": ("tabular_mlp", {"norm": "none", "activation": "relu", "width": 64}, {"depth": 4, "width": 96}),
    "residual-wider": ("resnet", {"width": 8}, {"width": 16}),
    "residual-deeper": ("resnet", {"width": 8}, {"stage_1_depth": 2, "stage_3_depth": 3}),
    "residual-kernel": ("resnet", {"width": 8, "stem": "conv3x3"}, {"stem": "conv7x7"}),
    "bottleneck-wider": ("resnet", {"width": 8, "block": "bottleneck"}, {"width": 16}),
    "text-wider": ("cnn_text", NONE, {"width": 128}),
    "attention-deeper": ("vit_small", {"depth": 1}, {"depth": 2}),
    "attention-expansion": ("vit_small", {"depth": 1, "expansion": 1}, {"expansion": 3}),
    "rows-deeper": ("tabular_resnet", {"depth": 1}, {"depth": 3}),
}


@pytest.mark.parametrize(("space", "before", "after"), WAYS.values(), ids=WAYS.keys())
def test_child_that_has_all_of_its_parent_answers_as_it_did(
    space: str, before: dict[str, JsonScalar], after: dict[str, JsonScalar]
) -> None:
    found, ours, theirs = child_of(space, before, after)
    added = [name for name in found.fresh if not name.startswith(tuple(f"{path}." for path in found.identities))]
    assert not added
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("space", "before", "after", "kept"),
    [
        ("tabular_mlp", {"norm": "layer", "width": 32}, {"width": 64}, "head.bias"),
        ("tabular_mlp", {"norm": "none", "embedding": 2}, {"embedding": 4}, "hidden.0.bias"),
        ("cnn_text", {}, {"filters": 64}, "embedding.tokens.weight"),
        ("vit_small", {"head_width": 16}, {"head_width": 32}, "head.1.bias"),
        ("nas_small", {"channels": 20}, {"channels": 12}, "head.1.bias"),
    ],
    ids=["layer-norm-mixes", "embeddings-lie-in-between", "windows-lie-in-between", "attention-mixes", "smaller"],
)
def test_layer_whose_answers_could_not_be_kept_stays_fresh_and_is_named(
    space: str, before: dict[str, JsonScalar], after: dict[str, JsonScalar], kept: str
) -> None:
    parent, child = network(space, 1, before), network(space, 2, before | after)
    drawn = {name: tensor.clone() for name, tensor in child.state_dict().items()}
    found = inherit(child, parent.state_dict())
    shapes = {name: tensor.shape for name, tensor in parent.state_dict().items()}
    changed = {name for name, tensor in drawn.items() if shapes[name] != tensor.shape}
    assert kept in found.taken
    assert changed == {*found.fresh, *found.widened}
    assert found.fresh
    assert all(torch.equal(child.state_dict()[name], drawn[name]) for name in found.fresh)


def test_cell_without_a_straight_skip_does_not_begin_as_the_identity() -> None:
    cell = CellGenotype.parse("|conv3x3~0|+|skip~0|conv1x1~1|+|conv1x1~0|skip~1|conv3x3~2|").to_configuration()
    found, _, _ = child_of("nas_small", cell, {"cells_per_stage": 2})
    assert not found.identities
    assert all(".2." in name or name.startswith("stages.0.1.") for name in found.fresh)


def test_linear_layer_behind_another_activation_is_not_the_identity() -> None:
    found, _, _ = child_of("tabular_mlp", {"norm": "none", "activation": "gelu", "depth": 2}, {"depth": 3})
    assert found.identities == ()
    assert found.fresh == ("hidden.8.weight", "hidden.8.bias")


def flat(channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, channels, 3), nn.ReLU(), nn.Flatten(), nn.Linear(channels * 36, 3))


def joined(channels: int) -> nn.Module:
    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.ModuleList(nn.Conv2d(1, channels, 3) for _ in range(2))
            self.last = nn.Conv2d(2 * channels, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.last(torch.cat([conv(x) for conv in self.both], dim=1))
            return out

    return Joined()


def test_own_network_that_flattens_its_map_is_widened() -> None:
    parent, child = flat(2), flat(5)
    found = inherit(child, parent.state_dict())
    images = torch.randn(4, 1, 8, 8)
    assert found.fresh == ()
    torch.testing.assert_close(child(images), parent(images), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", [joined], ids=["concatenated"])
def test_own_network_whose_features_move_is_left_alone(build: Callable[[int], nn.Module]) -> None:
    found = inherit(build(4), build(2).state_dict())
    assert found.widened == ()
    assert found.taken == ("last.bias",)


class Concatenated(nn.Module):
    """Whose sizes look as if `wide` made what `joined` reads, which is two layers side by side instead."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second, self.wide = nn.Linear(8, width), nn.Linear(8, width), nn.Linear(8, 2 * width)
        self.alone, self.joined, self.other = nn.Linear(width, 4), nn.Linear(2 * width, 4), nn.Linear(2 * width, 4)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.first(x).relu(), self.second(x).relu()
        both = torch.cat([first, second], dim=1)
        answer: Tensor = self.alone(first) + self.joined(both) + self.other(self.wide(x).relu())
        return answer


class Mixed(nn.Module):
    """A softmax over the hidden features: each depends on all of them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, width), nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.last(self.first(x).softmax(dim=1))
        return answer


@pytest.mark.parametrize("build", [Concatenated, Mixed])
def test_network_that_would_read_its_new_features_is_not_widened(build: Callable[[int], nn.Module]) -> None:
    parent, child = build(8), build(12)
    drawn = {name: tensor.clone() for name, tensor in child.state_dict().items()}
    found = inherit(child, parent.state_dict(), (torch.randn(3, 8),))
    assert found.widened == ()
    assert found.fresh
    assert all(torch.equal(child.state_dict()[name], drawn[name]) for name in found.fresh)
    assert found.taken == tuple(name for name, tensor in parent.state_dict().items() if tensor.shape == (4,))
    assert child.training
    # sizes alone cannot tell
    assert inherit(build(12), parent.state_dict()).fresh == ()


def test_concatenation_whose_last_part_alone_grows_is_widened() -> None:
    class Beside(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.grows, self.alone, self.last = nn.Linear(8, width), nn.Linear(width, 4), nn.Linear(8 + width, 4)
            self.wide, self.other = nn.Linear(8, 8 + width), nn.Linear(8 + width, 4)

        def forward(self, x: Tensor) -> Tensor:
            grown = self.grows(x).relu()
            answer: Tensor = (
                self.last(torch.cat([x, grown], dim=1)) + self.alone(grown) + self.other(self.wide(x).relu())
            )
            return answer

    parent, child = Beside(4), Beside(8)
    x = torch.randn(3, 8)
    assert inherit(child, parent.state_dict(), (x,)).fresh == ()
    torch.testing.assert_close(child(x), parent(x))


def test_layer_of_another_kind_under_an_old_name_stays_as_it_was_drawn() -> None:
    def build(has_norm: bool) -> nn.Module:
        norm = [nn.BatchNorm2d(4)] if has_norm else []
        return nn.Sequential(nn.Conv2d(1, 4, 3), *norm, nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 2))

    found = inherit(build(False), build(True).state_dict(), (torch.randn(2, 1, 8, 8),))
    assert found.taken == ("0.weight", "0.bias", "1.bias")
    assert found.fresh == ("1.weight", "3.weight", "3.bias")


def test_states_other_than_tensors_are_left_aside() -> None:
    layer = nn.Linear(2, 2)
    assert inherit(layer, {**layer.state_dict(), "_extra_state": {"seen": 3}, "bias": 7}).fresh == ("bias",)


def test_chain_that_ends_in_nothing_cannot_be_silenced() -> None:
    assert not silence(nn.Sequential(nn.Dropout(), nn.Identity()))
    assert not silence(nn.Sequential())


def test_share_is_that_of_the_weights() -> None:
    parent, child = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), nn.Linear(2, 3)
    assert inherit(child, parent[0].state_dict()).share == 1.0
    wider = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1))
    assert inherit(wider, parent.state_dict()).share == pytest.approx((9 + 4) / (18 + 7))
    assert inherit(nn.Linear(2, 4), {}).share == 0.0


def test_every_weight_of_a_widened_network_moves() -> None:
    child = network("nas_small", 2, {"channels": 20, "cells_per_stage": 2})
    inherit(child, network("nas_small", 1, {"channels": 12}).state_dict())
    optimizer = torch.optim.SGD(child.parameters(), lr=0.1)
    before = {name: weight.detach().clone() for name, weight in child.named_parameters()}
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(child.train()(*inputs("nas_small")), torch.arange(5) % 3)
        loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
        optimizer.step()
    still = [name for name, weight in child.named_parameters() if torch.equal(weight, before[name])]
    assert still == []
