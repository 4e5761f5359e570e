"""Random small changes to training images: shift, turn, zoom, contrast, brightness; one strength for all.

The changes to an epoch are drawn once for all its items in order, so they do not depend on how many ranks or
micro-batches share a batch. Nothing is mirrored: a mirrored 2 is no 2. All sizes are relative to the image,
so that 8x8 digits and photographs are changed alike.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

__all__ = ["Changes", "apply_changes", "draw_changes", "warp"]

# The largest changes, at strength 1.
_SHIFT = 0.25  # in half widths: an eighth of the image
_ANGLE = np.pi / 12.0  # 15 degrees
_LOG_ZOOM = 0.2  # 0.82 to 1.22 times
_LOG_CONTRAST = 0.4  # 0.67 to 1.49 times
_BRIGHTNESS = 0.1  # of the range of pixel values


@dataclass(frozen=True, slots=True)
class Changes:
    """What is done to each of N images.

    Attributes:
        affine_N23: output to input coordinates of square images, in half widths, as `affine_grid` takes them.
        contrast_N: factor of the distance from the image's mean.
        brightness_N: added to every pixel; pixels are in [0, 1].
    """

    affine_N23: torch.Tensor
    contrast_N: torch.Tensor
    brightness_N: torch.Tensor

    def __getitem__(self, items: torch.Tensor | slice) -> "Changes":
        """Return the changes to some of the images."""
        return Changes(self.affine_N23[items], self.contrast_N[items], self.brightness_N[items])

    def to(self, device: torch.device) -> "Changes":
        """Return the changes on a device."""
        return Changes(self.affine_N23.to(device), self.contrast_N.to(device), self.brightness_N.to(device))

    def apply(self, images_NCHW: torch.Tensor) -> torch.Tensor:
        """Return changed copies of the images."""
        return apply_changes(images_NCHW, self)


def draw_changes(items: int, strength: float, generator: np.random.Generator) -> Changes:
    """Draw the changes to N images, each uniformly in its range, independently of each other.

    Args:
        items: N.
        strength: scales every range, in [0, 1]; 0 changes nothing.
        generator: six numbers per image are taken from it.

    Raises:
        ValueError: `strength` is outside [0, 1].
    """
    if not 0.0 <= strength <= 1.0:
        raise ValueError(f"augmentation strength {strength} is outside [0, 1]")
    draws = strength * generator.uniform(-1.0, 1.0, size=(items, 6))
    angle, zoom = _ANGLE * draws[:, 2], np.exp(_LOG_ZOOM * draws[:, 3])
    cosine, sine = np.cos(angle) / zoom, np.sin(angle) / zoom
    affine = np.stack([cosine, -sine, _SHIFT * draws[:, 0], sine, cosine, _SHIFT * draws[:, 1]], axis=1)
    return Changes(
        affine_N23=torch.from_numpy(affine.astype(np.float32)).view(items, 2, 3),
        contrast_N=torch.from_numpy(np.exp(_LOG_CONTRAST * draws[:, 4]).astype(np.float32)),
        brightness_N=torch.from_numpy((_BRIGHTNESS * draws[:, 5]).astype(np.float32)),
    )


def apply_changes(images_NCHW: torch.Tensor, changes: Changes) -> torch.Tensor:
    """Return changed copies of images with pixels in [0, 1]; the border fills what moves in."""
    moved_NCHW = warp(images_NCHW, changes.affine_N23)
    mean_N111 = moved_NCHW.mean(dim=(1, 2, 3), keepdim=True)
    level_N111 = mean_N111 + changes.brightness_N.view(-1, 1, 1, 1)
    return ((moved_NCHW - mean_N111) * changes.contrast_N.view(-1, 1, 1, 1) + level_N111).clamp_(0.0, 1.0)


def warp(images_NCHW: torch.Tensor, affine_N23: torch.Tensor) -> torch.Tensor:
    """Return moved, turned or sheared copies of images; the border fills what moves in.

    Args:
        images_NCHW: (N, C, H, W) float32.
        affine_N23: output to input coordinates of square images, in half widths.
    """
    height, width = images_NCHW.shape[2:]
    if height != width:  # a turn mixes half widths with half heights
        aspect = torch.tensor([[1.0, height / width, 1.0], [width / height, 1.0, 1.0]], device=affine_N23.device)
        affine_N23 = affine_N23 * aspect
    grid = functional.affine_grid(affine_N23, list(images_NCHW.shape), align_corners=False)
    return functional.grid_sample(images_NCHW, grid, mode="bilinear", padding_mode="border", align_corners=False)
