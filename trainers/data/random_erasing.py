"""Random erasing: some training images lose a rectangle, so that no single part decides.

Source: Zhong et al. 2020, Random Erasing Data Augmentation, arXiv 1708.04896, section 3.2 and algorithm 1.
"""

from dataclasses import dataclass

import numpy as np
import torch

from trainers.data.boxes import inside

__all__ = ["Erasures", "draw_erasures", "erase"]

# The paper's settings: the area is 2 to 40 % of the image, the aspect 0.3 to 1 / 0.3.
_LEAST_AREA, _MOST_AREA = 0.02, 0.4
_LEAST_ASPECT = 0.3


@dataclass(frozen=True, slots=True)
class Erasures:
    """Which part of each of N images is lost.

    Attributes:
        boxes_N4: top, bottom, left and right as shares of the image; an empty box: nothing.
        fill_C: what is there afterwards.
    """

    boxes_N4: torch.Tensor
    fill_C: torch.Tensor

    def __getitem__(self, items: torch.Tensor | slice) -> "Erasures":
        """Return what some of the images lose."""
        return Erasures(self.boxes_N4[items], self.fill_C)

    def apply(self, images_NCHW: torch.Tensor) -> torch.Tensor:
        """Return copies of the images without these parts."""
        return erase(images_NCHW, self.boxes_N4, self.fill_C)


def draw_erasures(items: int, share: float, generator: np.random.Generator) -> torch.Tensor:
    """Draw a rectangle for each of N images; for most of them an empty one, where the share is small.

    Deviations from algorithm 1: the aspect is drawn on a logarithmic scale, so that high and wide ones are equally
    likely; a side that would be longer than the image is cut instead of drawn again.

    Args:
        items: N.
        share: how many of the images lose something, in [0, 1].
        generator: five numbers per image are taken from it.

    Returns:
        boxes_N4: top, bottom, left and right as shares of the image.

    Raises:
        ValueError: `share` is outside [0, 1].
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"random_erasing={share} is outside [0, 1]")
    draws_N5 = generator.random((items, 5))
    area_N = _LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * draws_N5[:, 1]
    aspect_N = _LEAST_ASPECT ** (1.0 - 2.0 * draws_N5[:, 2])
    is_erased_N = draws_N5[:, 0] < share
    height_N = np.minimum(1.0, np.sqrt(area_N * aspect_N)) * is_erased_N
    width_N = np.minimum(1.0, np.sqrt(area_N / aspect_N)) * is_erased_N
    top_N, left_N = (1.0 - height_N) * draws_N5[:, 3], (1.0 - width_N) * draws_N5[:, 4]
    boxes_N4 = np.stack([top_N, top_N + height_N, left_N, left_N + width_N], axis=1)
    return torch.from_numpy(boxes_N4.astype(np.float32))


def erase(images_NCHW: torch.Tensor, boxes_N4: torch.Tensor, fill_C: torch.Tensor) -> torch.Tensor:
    """Return copies of images with a rectangle of one colour in each.

    Args:
        images_NCHW: (N, C, H, W).
        boxes_N4: top, bottom, left and right as shares of the image.
        fill_C: the colour. The mean of the training images is 0 after they are normalised; the paper finds it as good
            as random noise, and both better than black or white.
    """
    return torch.where(inside(boxes_N4, *images_NCHW.shape[2:]), fill_C.view(-1, 1, 1), images_NCHW)
