import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from trainers.data.rand_augment import OPERATIONS, Operations, draw_operations, operate

NAMES = list(OPERATIONS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def photographs(items: int = 5, channels: int = 3, height: int = 12, width: int = 10) -> torch.Tensor:
    """Smooth images of bytes between black and white, divided by 255."""
    noise = torch.rand(items, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.interpolate(noise, size=(height, width), mode="bilinear")
    return (smooth * 255.0).round() / 255.0


def by_pillow(name: str, image: Image.Image, level: float) -> Image.Image:
    factor = 1.0 + 0.9 * level
    return {
        "identity": lambda: image,
        "auto_contrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "solarize": lambda: ImageOps.solarize(image, 256 - round(256 * abs(level))),
        "posterize": lambda: ImageOps.posterize(image, 8 - round(4 * abs(level))),
        "color": lambda: ImageEnhance.Color(image).enhance(factor),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(factor),
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(factor),
        "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(factor),
        "rotate": lambda: image.rotate(30.0 * level, Image.Resampling.BILINEAR),
    }[name]()


@pytest.mark.parametrize("level", [0.5, -0.5])
@pytest.mark.parametrize("name", NAMES[:10])
def test_operation_does_what_pillow_does(name: str, level: float) -> None:
    x = photographs(height=24, width=24)
    ours = OPERATIONS[name](x, torch.full((len(x),), level))
    for image, changed in zip(x, ours, strict=True):
        bytes_HWC = (image * 255.0).round().to(torch.uint8).permute(1, 2, 0).numpy()
        theirs = np.asarray(by_pillow(name, Image.fromarray(bytes_HWC), level)).astype(np.float32) / 255.0
        inner = slice(6, 18) if name == "rotate" else slice(None)  # what moves in is black there
        difference = np.abs(changed.permute(1, 2, 0).numpy() - theirs)[inner, inner]
        assert difference.max() <= 2.0 / 255.0


@pytest.mark.parametrize(("name", "axis"), [("translate_x", 3), ("translate_y", 2)])
def test_shift_moves_by_ten_of_thirty_two_pixels_one_way_or_the_other(name: str, axis: int) -> None:
    x = photographs(2, 1, 32, 32)
    moved = OPERATIONS[name](x, torch.tensor([1.0, -1.0]))
    rest = 32 - 10
    torch.testing.assert_close(moved[0].narrow(axis - 1, 0, rest), x[0].narrow(axis - 1, 10, rest), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(moved[1].narrow(axis - 1, 10, rest), x[1].narrow(axis - 1, 0, rest), atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("name", ["shear_x", "shear_y"])
def test_shear_leaves_the_middle_and_moves_opposite_sides_apart(name: str) -> None:
    x = torch.zeros(1, 1, 21, 21)
    x[..., 10 if name == "shear_y" else slice(None), 10 if name == "shear_x" else slice(None)] = 1.0
    sheared = OPERATIONS[name](x, torch.ones(1))[0, 0]
    rows = sheared if name == "shear_x" else sheared.T
    middle, first, last = (int(rows[row].argmax()) for row in (10, 0, 20))
    assert middle == 10 and first - middle == middle - last == 3


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 1), (2, 7), (12, 10)])
def test_every_operation_keeps_the_form_and_the_range_of_pixels(channels: int, size: tuple[int, int]) -> None:
    x = photographs(28, channels, *size)
    before = x.clone()
    chosen = np.arange(28) % 14
    operations = Operations(np.stack([chosen, chosen[::-1]], axis=1), torch.linspace(-1.0, 1.0, 56).view(28, 2))
    changed = operate(x, operations)
    assert changed.shape == x.shape and torch.equal(x, before)
    assert bool(torch.isfinite(changed).all()) and 0.0 <= float(changed.min()) <= float(changed.max()) <= 1.0


@pytest.mark.parametrize("channels", [1, 3])
def test_images_change_independently_of_how_a_batch_is_cut(channels: int) -> None:
    x, drawn = photographs(40, channels), draw_operations(40, 0.7, rng())
    shuffled = torch.from_numpy(rng(1).permutation(40))
    parts = [x[part] for part in (slice(0, 1), slice(1, 17), slice(17, 40))]
    changes = [drawn[part] for part in (slice(0, 1), slice(1, 17), slice(17, 40))]
    whole = operate(x, drawn)
    again = torch.cat([change.apply(part) for change, part in zip(changes, parts, strict=True)])
    torch.testing.assert_close(again, whole, atol=1e-6, rtol=0.0)
    torch.testing.assert_close(drawn[shuffled].apply(x[shuffled]), whole[shuffled], atol=1e-6, rtol=0.0)


def test_strength_0_only_stretches_the_contrast() -> None:
    x, drawn = photographs(60), draw_operations(60, 0.0, rng())
    stretches = {NAMES.index("auto_contrast"), NAMES.index("equalize")}
    still = np.array([not stretches & set(row) for row in drawn.chosen_N2.tolist()])
    assert still.any()
    rows = torch.from_numpy(np.flatnonzero(still))
    # solarising inverts what is white, which is there at strength 0, too
    unlike_white = x[rows] < 1.0
    torch.testing.assert_close(operate(x, drawn)[rows][unlike_white], x[rows][unlike_white], atol=1e-5, rtol=0.0)


def test_draws_use_all_operations_alike_in_both_directions() -> None:
    drawn = draw_operations(14_000, 0.5, rng())
    counts = np.bincount(drawn.chosen_N2.reshape(-1), minlength=14)
    assert len(counts) == 14 and abs(counts - 2_000).max() < 250
    assert sorted(set(drawn.levels_N2.view(-1).tolist())) == [-0.5, 0.5]


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_strength_outside_its_range_is_refused(strength: float) -> None:
    with pytest.raises(ValueError, match=r"rand_augment=.* is outside"):
        draw_operations(1, strength, rng())
