import numpy as np
import pytest
import torch

from trainers.data.augmentation import Changes, apply_changes, draw_changes


def images(items: int = 6, channels: int = 1, height: int = 8, width: int = 8) -> torch.Tensor:
    return torch.rand(items, channels, height, width, generator=torch.Generator().manual_seed(0))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def changes(angle: float = 0.0, shift: tuple[float, float] = (0.0, 0.0)) -> Changes:
    cosine, sine = np.cos(angle), np.sin(angle)
    affine = [[[cosine, -sine, shift[0]], [sine, cosine, shift[1]]]]
    return Changes(torch.tensor(affine, dtype=torch.float32), torch.ones(1), torch.zeros(1))


def changed(images_NCHW: torch.Tensor, strength: float, seed: int = 0) -> torch.Tensor:
    return draw_changes(len(images_NCHW), strength, rng(seed)).apply(images_NCHW)


def test_strength_0_changes_nothing() -> None:
    x = images()
    torch.testing.assert_close(apply_changes(x, draw_changes(len(x), 0.0, rng())), x, atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_result_is_a_pure_function_within_the_range_of_pixels(strength: float) -> None:
    x = images(channels=3, height=9, width=5)
    before = x.clone()
    first, again, other = (changed(x, strength, seed) for seed in (1, 1, 2))
    assert torch.equal(x, before)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert first.shape == x.shape and float(first.min()) >= 0.0 and float(first.max()) <= 1.0


def test_more_strength_changes_more() -> None:
    x = images(64)
    distances = [float((changed(x, strength) - x).abs().mean()) for strength in (0.05, 0.3, 1.0)]
    assert distances == sorted(distances) and distances[0] > 0.0


def test_images_change_independently_of_how_a_batch_is_cut() -> None:
    x, drawn = images(), draw_changes(6, 1.0, rng())
    parts = [apply_changes(x[part], drawn[part]) for part in (slice(0, 1), slice(1, 4), slice(4, 6))]
    torch.testing.assert_close(torch.cat(parts), apply_changes(x, drawn), atol=1e-6, rtol=0.0)


def test_half_turn_of_a_wide_image_keeps_its_shape() -> None:
    x = images(1, height=4, width=6)
    torch.testing.assert_close(apply_changes(x, changes(angle=np.pi)), x.flip(2, 3), atol=1e-5, rtol=0.0)


def test_quarter_turn_of_a_wide_image_turns_pixels_not_half_widths() -> None:
    x = torch.zeros(1, 1, 5, 9)
    x[0, 0, 2, 3] = 1.0  # one pixel left of the centre
    turned = apply_changes(x, changes(angle=np.pi / 2.0))[0, 0]
    assert sorted(torch.nonzero(turned > 0.5).tolist()) in ([[1, 4]], [[3, 4]])


def test_shift_is_relative_to_the_size() -> None:
    for size in (8, 32):
        x = images(1, height=size, width=size)
        moved = apply_changes(x, changes(shift=(0.25, 0.0)))  # an eighth of the width
        step = size // 8
        torch.testing.assert_close(moved[..., :-step], x[..., step:], atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_strength_outside_its_range_is_refused(strength: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        draw_changes(1, strength, rng())
