import numpy as np
import pytest
import torch

from trainers.data.boxes import inside
from trainers.data.random_erasing import Erasures, draw_erasures, erase


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_box_holds_the_pixels_whose_centres_it_covers() -> None:
    boxes = torch.tensor([[0.0, 0.5, 0.25, 1.0], [-1.0, 2.0, -1.0, 2.0], [0.3, 0.3, 0.1, 0.9]])
    first, second, third = inside(boxes, 4, 4).squeeze(1)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[:2, 1:] = True
    assert torch.equal(first, expected) and bool(second.all()) and not bool(third.any())


def test_share_areas_and_aspects_of_what_is_erased_are_those_of_the_paper() -> None:
    boxes = draw_erasures(20_000, 0.25, rng()).numpy()
    height, width = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    area = height * width
    erased = area > 0.0
    assert abs(float(erased.mean()) - 0.25) < 0.02
    assert boxes.min() >= 0.0 and boxes.max() <= 1.0 + 1e-6
    uncut = erased & (height < 1.0) & (width < 1.0)
    assert 0.02 - 1e-4 <= area[uncut].min() and area[uncut].max() <= 0.4 + 1e-4
    aspect = height[uncut] / width[uncut]
    assert 0.3 - 1e-3 <= aspect.min() and aspect.max() <= 1.0 / 0.3 + 1e-2
    assert abs(float(np.log(aspect).mean())) < 0.05


@pytest.mark.parametrize("channels", [1, 3])
def test_erased_part_has_the_colour_and_the_rest_stays(channels: int) -> None:
    x = torch.rand(3, channels, 8, 6, generator=torch.Generator().manual_seed(0))
    before, fill = x.clone(), torch.tensor([0.2, 0.4, 0.6][:channels])
    boxes = torch.tensor([[0.0, 0.25, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    first, second, third = erase(x, boxes, fill)
    assert torch.equal(x, before)
    assert torch.equal(first[:, :2, :3], fill.view(-1, 1, 1).expand(-1, 2, 3))
    assert torch.equal(first[:, 2:], x[0, :, 2:]) and torch.equal(second, x[1])
    assert torch.equal(third, fill.view(-1, 1, 1).expand_as(third))


def test_images_change_independently_of_how_a_batch_is_cut() -> None:
    x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    drawn = Erasures(draw_erasures(6, 0.8, rng()), torch.zeros(1))
    parts = [drawn[part].apply(x[part]) for part in (slice(0, 1), slice(1, 4), slice(4, 6))]
    assert torch.equal(torch.cat(parts), drawn.apply(x))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"random_erasing=.* is outside"):
        draw_erasures(1, share, rng())
