"""CutMix: an image gets a rectangle of another one, and its class follows the area.

Source: Yun et al. 2019, CutMix, arXiv 1905.04899, section 3.1, equations 1 and 2.
"""

import numpy as np
import torch

from trainers.data.boxes import inside

__all__ = ["cutmix", "draw_boxes"]


def draw_boxes(items: int, alpha: float, generator: np.random.Generator) -> torch.Tensor:
    """Draw the rectangle that each image gets: any centre, the aspect of the image, cut at its borders.

    The paper draws one rectangle for a whole batch.

    Args:
        items: N.
        alpha: both parameters of the Beta distribution of the area, above 0; 1 is uniform.
        generator: three numbers per image are taken from it.

    Returns:
        boxes_N4: top, bottom, left and right as shares of height and width; parts outside [0, 1] do not count.
    """
    half_side_N = np.sqrt(generator.beta(alpha, alpha, items)) / 2.0
    row_N, column_N = generator.random((2, items))
    boxes_4N = [row_N - half_side_N, row_N + half_side_N, column_N - half_side_N, column_N + half_side_N]
    return torch.from_numpy(np.stack(boxes_4N, axis=1).astype(np.float32))


def cutmix(
    images_NCHW: torch.Tensor, partners_NCHW: torch.Tensor, boxes_N4: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images with a rectangle of their partners, and how much each has kept of itself.

    Args:
        images_NCHW: (N, C, H, W).
        partners_NCHW: the images that the rectangles come from, of the same shape.
        boxes_N4: as of `draw_boxes`.

    Returns:
        images_NCHW, and share_N, float32: the pixels that are the image's own, counted.
    """
    replaced_N1HW = inside(boxes_N4, *images_NCHW.shape[2:])
    share_N = 1.0 - replaced_N1HW.to(torch.float32).mean(dim=(1, 2, 3))
    return torch.where(replaced_N1HW, partners_NCHW, images_NCHW), share_N
