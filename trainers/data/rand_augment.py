"""RandAugment: two random operations out of fourteen on each image, all of one strength.

Source: Cubuk et al. 2020, RandAugment, arXiv 1909.13719, section 3 and figure 2; the operations and their ranges are
those of AutoAugment (Cubuk et al. 2019, arXiv 1805.09501, table 6) with pixels in [0, 1].

Deviations: strength 1 is the end of AutoAugment's ranges (M = 10); operations that can go both ways do so from the
unchanged image, so that strength 0 changes nothing; the border fills what moves in, as for `augmentation`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from kornia import enhance

from trainers.data.augmentation import warp

__all__ = ["OPERATIONS", "Operations", "draw_operations", "operate"]

ROUNDS = 2
"""Operations on each image, N in the paper."""

Operation: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(images_NCHW, level_N) -> changed images_NCHW; the sign of a level, in [-1, 1], is a direction."""

# The largest changes, at level 1.
_ANGLE = np.pi / 6.0  # 30 degrees
_SHEAR = 0.3
_SHIFT = 2.0 * 10.0 / 32.0  # in half widths: 10 of 32 pixels
_FACTOR = 0.9  # colour, contrast, brightness and sharpness are multiplied by 0.1 to 1.9
_LOST_BITS = 4.0

_MOVES = {
    "shear_x": ((0.0, _SHEAR, 0.0), (0.0, 0.0, 0.0)),
    "shear_y": ((0.0, 0.0, 0.0), (_SHEAR, 0.0, 0.0)),
    "translate_x": ((0.0, 0.0, _SHIFT), (0.0, 0.0, 0.0)),
    "translate_y": ((0.0, 0.0, 0.0), (0.0, 0.0, _SHIFT)),
}


@dataclass(frozen=True, slots=True)
class Operations:
    """What is done to each of N images, one operation after the other.

    Attributes:
        chosen_N2: indices of `OPERATIONS`; on the host, so that images are gathered by them without waiting for a
            device.
        levels_N2: how strongly and in which direction, in [-1, 1]; on the device.
    """

    chosen_N2: npt.NDArray[np.int64]
    levels_N2: torch.Tensor

    def __getitem__(self, items: torch.Tensor | slice) -> "Operations":
        """Return what is done to some of the images; indices on the host cost no waiting either."""
        places = items.cpu().numpy() if isinstance(items, torch.Tensor) else items
        return Operations(self.chosen_N2[places], self.levels_N2[items])

    def to(self, device: torch.device) -> "Operations":
        """Return the operations for images on a device."""
        return Operations(self.chosen_N2, self.levels_N2.to(device))

    def apply(self, images_NCHW: torch.Tensor) -> torch.Tensor:
        """Return changed copies of the images."""
        return operate(images_NCHW, self)


def draw_operations(items: int, strength: float, generator: np.random.Generator) -> Operations:
    """Draw the operations on N images, each out of all fourteen, and the direction of each.

    Args:
        items: N.
        strength: of all operations, in [0, 1].
        generator: four numbers per image are taken from it.

    Raises:
        ValueError: `strength` is outside [0, 1].
    """
    if not 0.0 <= strength <= 1.0:
        raise ValueError(f"rand_augment={strength} is outside [0, 1]")
    chosen_N2 = generator.integers(len(OPERATIONS), size=(items, ROUNDS))
    signs_N2 = 2.0 * generator.integers(2, size=(items, ROUNDS)) - 1.0
    return Operations(chosen_N2, torch.from_numpy((strength * signs_N2).astype(np.float32)))


def operate(images_NCHW: torch.Tensor, operations: Operations) -> torch.Tensor:
    """Return changed copies of images; those with the same operation are changed together.

    Args:
        images_NCHW: (N, C, H, W) float32 in [0, 1].
        operations: for each of the images.
    """
    for turn in range(ROUNDS):
        levels_N = operations.levels_N2[:, turn]
        changed_NCHW = torch.empty_like(images_NCHW)
        for operation, rows in _groups(operations.chosen_N2[:, turn], images_NCHW.device):
            changed_NCHW[rows] = operation(images_NCHW[rows], levels_N[rows])
        images_NCHW = changed_NCHW
    return images_NCHW


def _groups(chosen_N: npt.NDArray[np.int64], device: torch.device) -> Iterator[tuple[Operation, torch.Tensor]]:
    """Yield each operation that was chosen, with the rows that chose it."""
    for index, operation in enumerate(OPERATIONS.values()):
        rows = np.flatnonzero(chosen_N == index)
        if len(rows):
            yield operation, torch.from_numpy(rows).to(device)


def _identity(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return images_NCHW


def _auto_contrast(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    stretched_NCHW = enhance.normalize_min_max(images_NCHW, eps=0.0)
    return torch.where(torch.isfinite(stretched_NCHW), stretched_NCHW, images_NCHW)  # a plane of one grey stays


def _equalize(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return enhance.equalize(images_NCHW)


def _solarize(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return enhance.solarize(images_NCHW, 1.0 - level_N.abs())


def _posterize(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return enhance.posterize(images_NCHW, (8.0 - _LOST_BITS * level_N.abs()).round().to(torch.int32))


def _color(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    if images_NCHW.shape[1] != 3:
        return images_NCHW
    return enhance.adjust_saturation_with_gray_subtraction(images_NCHW, 1.0 + _FACTOR * level_N)


def _contrast(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return enhance.adjust_contrast_with_mean_subtraction(images_NCHW, 1.0 + _FACTOR * level_N)


def _brightness(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    return enhance.adjust_brightness_accumulative(images_NCHW, 1.0 + _FACTOR * level_N)


def _sharpness(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    if min(images_NCHW.shape[2:]) < 3:
        return images_NCHW  # no pixel has all its neighbours
    return enhance.sharpness(images_NCHW, 1.0 + _FACTOR * level_N)


def _rotate(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
    cosine_N, sine_N, zero_N = (_ANGLE * level_N).cos(), (_ANGLE * level_N).sin(), torch.zeros_like(level_N)
    rows = torch.stack([cosine_N, -sine_N, zero_N, sine_N, cosine_N, zero_N], dim=1)
    return warp(images_NCHW, rows.view(-1, 2, 3))


def _moving(direction: tuple[tuple[float, ...], ...]) -> Operation:
    """Return the operation that moves each point along a direction, as far as the level says."""

    def move(images_NCHW: torch.Tensor, level_N: torch.Tensor) -> torch.Tensor:
        identity_23 = torch.eye(2, 3, device=level_N.device)
        return warp(images_NCHW, identity_23 + level_N.view(-1, 1, 1) * torch.tensor(direction, device=level_N.device))

    return move


OPERATIONS: dict[str, Operation] = {
    "identity": _identity,
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "rotate": _rotate,
    "solarize": _solarize,
    "color": _color,
    "posterize": _posterize,
    "contrast": _contrast,
    "brightness": _brightness,
    "sharpness": _sharpness,
    **{name: _moving(direction) for name, direction in _MOVES.items()},
}
"""The fourteen operations by name; an image without three channels has no colour to change."""
