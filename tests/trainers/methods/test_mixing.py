from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from trainers.config import TrainConfig
from trainers.methods.cutmix import cutmix, draw_boxes
from trainers.methods.mixing import Mixing, draw_partners, mix_classes, mixed_batches
from trainers.methods.mixup import draw_shares, mixup
from trainers.problem import Batch

BATCHES = [slice(0, 6), slice(6, 12), slice(12, 15)]
CPU = torch.device("cpu")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def images(items: int = 15) -> torch.Tensor:
    return torch.rand(items, 2, 8, 8, generator=torch.Generator().manual_seed(0))


class Fetching:
    """Gives the images at any places, and remembers how many it had to make."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, positions: Sequence[torch.Tensor | slice]) -> Iterator[Batch]:
        for places in positions:
            batch = Batch((images()[places],), (torch.arange(15) % 5)[places])
            self.made += len(batch)
            yield batch


def mixed(parts: list[slice], epoch: int = 1, **training: Any) -> tuple[list[Batch], int]:
    mixing, fetch = Mixing(TrainConfig(seed=3, **training), num_classes=5), Fetching()
    mixing.begin_epoch(epoch, BATCHES, CPU)
    return list(mixed_batches(mixing, parts, fetch)), fetch.made


def test_mixup_is_a_weighted_mean_of_inputs_and_classes() -> None:
    x, partners = images(3), images(6)[3:]
    share = torch.tensor([1.0, 0.25, 0.0])
    result = mixup(x, partners, share)
    assert torch.equal(result[0], x[0]) and torch.equal(result[2], partners[2])
    torch.testing.assert_close(result[1], 0.25 * x[1] + 0.75 * partners[1])
    classes = mix_classes(torch.tensor([0, 1, 2]), torch.tensor([2, 0, 2]), share, 3)
    assert classes.tolist() == [[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.0, 0.0, 1.0]]


def test_cutmix_counts_the_pixels_that_an_image_keeps() -> None:
    x, partners = torch.zeros(3, 1, 8, 8), torch.ones(3, 1, 8, 8)
    boxes = torch.tensor([[0.0, 0.5, 0.5, 1.5], [-1.0, 2.0, -1.0, 2.0], [0.5, 0.5, 0.5, 0.5]])
    result, share = cutmix(x, partners, boxes)
    assert share.tolist() == [0.75, 0.0, 1.0]
    assert torch.equal(result.mean(dim=(1, 2, 3)), 1.0 - share)
    assert float(result[0, 0, :4, 4:].min()) == 1.0


def test_shares_and_boxes_follow_the_beta_distribution() -> None:
    from scipy.stats import beta, kstest

    assert kstest(draw_shares(4000, 0.4, rng()).numpy(), beta(0.4, 0.4).cdf).pvalue > 0.01
    boxes = draw_boxes(4000, 1.0, rng()).double()
    sides = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    torch.testing.assert_close(sides[0], sides[1], atol=1e-6, rtol=0.0)
    assert kstest((sides[0] * sides[1]).numpy(), "uniform").pvalue > 0.01


def test_partners_permute_each_batch() -> None:
    partners = draw_partners(BATCHES, rng())
    for batch in BATCHES:
        assert sorted(partners[batch].tolist()) == list(range(batch.start, batch.stop))
    assert partners.tolist() != list(range(15))


@pytest.mark.parametrize("training", [{"mixup": 0.5}, {"cutmix": 1.0}, {"mixup": 0.5, "cutmix": 1.0}], ids=str)
def test_items_are_mixed_alike_however_a_batch_is_cut(training: dict[str, Any]) -> None:
    whole, made = mixed(BATCHES, **training)
    parts = [*(slice(at, at + 2) for at in range(0, 12, 2)), slice(12, 15)]
    cut, made_in_parts = mixed(parts, **training)
    for field in ("inputs", "targets"):
        left, right = (
            torch.cat([batch.inputs[0] if field == "inputs" else batch.targets for batch in batches])
            for batches in (whole, cut)
        )
        assert torch.equal(left, right)
    assert made == 15 < made_in_parts <= 30  # whole batches hold their partners already
    torch.testing.assert_close(torch.cat([batch.targets for batch in whole]).sum(dim=1), torch.ones(15))


def test_epochs_differ_and_repeat() -> None:
    first, again, second = (mixed(BATCHES, epoch, mixup=0.5)[0][0].inputs[0] for epoch in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, second)


def test_with_both_each_batch_has_one_of_them() -> None:
    mixing = Mixing(TrainConfig(mixup=1.0, cutmix=1.0), num_classes=2)
    batches = [slice(at, at + 4) for at in range(0, 400, 4)]
    mixing.begin_epoch(1, batches, CPU)
    black, white = (Batch((torch.full((4, 1, 8, 8), grey),), torch.zeros(4, dtype=torch.int64)) for grey in (0.0, 1.0))
    blended = [bool(torch.frac(mixing.mix(black, white, part).inputs[0]).any()) for part in batches]
    assert 30 < sum(blended) < 70
