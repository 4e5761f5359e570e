"""Rectangles in images of any size: sides are shares of the image's own, so that they are drawn before it is seen."""

import torch

__all__ = ["inside"]


def inside(boxes_N4: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return which pixels have their centre in the rectangle of their image.

    Args:
        boxes_N4: top, bottom, left and right as shares of height and width; what is outside [0, 1] is cut off.
        height: of the images, in pixels.
        width: of the images, in pixels.

    Returns:
        (N, 1, height, width) bool.
    """
    top_N1, bottom_N1, left_N1, right_N1 = boxes_N4.unsqueeze(2).unbind(1)
    rows_NH = _between(top_N1, bottom_N1, height)
    columns_NW = _between(left_N1, right_N1, width)
    return (rows_NH.unsqueeze(2) & columns_NW.unsqueeze(1)).unsqueeze(1)


def _between(low_N1: torch.Tensor, high_N1: torch.Tensor, pixels: int) -> torch.Tensor:
    centres = (torch.arange(pixels, device=low_N1.device, dtype=low_N1.dtype) + 0.5) / pixels
    return (centres >= low_N1) & (centres < high_N1)
