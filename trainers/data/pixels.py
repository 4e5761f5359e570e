"""Pixels of every kind become bytes: one rule for arrays of any number type and for pictures of any mode."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from trainers.errors import BadDataError

__all__ = ["arrays_to_bytes", "decode_picture", "images_to_NCHW"]

_CHANNELS = (1, 3)


def arrays_to_bytes(values: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint8]:
    """Return pixel values as uint8.

    uint8 stays; booleans become 0 and 255; uint16 beyond 255 is divided by 257; other integers must lie in
    [0, 255]; floats must lie in [0, 1] and are multiplied by 255, or be whole numbers in [0, 255].

    Args:
        values: an array of any shape.
        name: what it is called, for the message.

    Raises:
        BadDataError: the values are no pixels (out of range, NaN, no numbers).
    """
    kind = values.dtype.kind
    if values.dtype == np.uint8:
        return values
    if kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    if kind not in "iuf":
        raise BadDataError(f"{name} has type {values.dtype}; pixels are integers or floats")
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if values.dtype == np.uint16 and high > 255.0:
        return np.round(values / 257.0).astype(np.uint8)
    if kind == "f" and 0.0 <= low and high <= 1.0:
        return np.round(values * 255.0).astype(np.uint8)
    if 0.0 <= low and high <= 255.0 and (kind != "f" or bool((values == np.round(values)).all())):
        return values.astype(np.uint8)
    raise BadDataError(
        f"{name} ({values.dtype}) spans {low:g} to {high:g}; needed: integers in [0, 255], floats in [0, 1] or uint16"
    )


def images_to_NCHW(images: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.uint8]:
    """Return images as a contiguous (N, C, H, W) array.

    Args:
        images: (N, H, W), (N, H, W, C) or (N, C, H, W) with C 1 or 3; the last axis is looked at first.
        name: what it is called, for the message.

    Raises:
        BadDataError: the shape is none of these, or a side is 0.
    """
    if 0 not in images.shape:
        if images.ndim == 3:
            return np.ascontiguousarray(images[:, np.newaxis])
        if images.ndim == 4 and images.shape[3] in _CHANNELS:
            return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        if images.ndim == 4 and images.shape[1] in _CHANNELS:
            return np.ascontiguousarray(images)
    raise BadDataError(
        f"{name} has shape {images.shape}; allowed: (N, height, width), (N, height, width, 1 or 3) "
        "or (N, 1 or 3, height, width), none of them 0"
    )


def decode_picture(picture: Path | io.BytesIO, size: tuple[int, int] | None) -> npt.NDArray[np.uint8]:
    """Decode one picture, turned as its EXIF orientation says.

    Transparent pixels show white; 16-bit levels become 8-bit; palettes and other colour systems become RGB.

    Args:
        picture: a file or its bytes.
        size: (height, width) to scale to, or None to keep the picture's own.

    Returns:
        (H, W) uint8 for a picture without colour, otherwise (H, W, 3).

    Raises:
        OSError: it is no picture, or incomplete. Pillow raises further kinds for some broken files.
    """
    with Image.open(picture) as opened:
        plain = _plain(ImageOps.exif_transpose(opened))
    if size is not None and plain.size != (size[1], size[0]):
        plain = plain.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels: npt.NDArray[np.uint8] = np.asarray(plain, dtype=np.uint8)
    return pixels


def _plain(image: Image.Image) -> Image.Image:
    """Return the picture in mode L or RGB."""
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_deep_levels(np.asarray(image)))
    if image.has_transparency_data:
        layers = image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
        white = Image.new(layers.mode, layers.size, "white")
        image = Image.alpha_composite(white.convert("RGBA"), layers.convert("RGBA"))
        return image.convert("L" if layers.mode == "LA" else "RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _deep_levels(levels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return 16-bit (or 32-bit, or float) grey levels as bytes."""
    if levels.dtype.kind in "iu" and levels.dtype.itemsize > 1:
        # Pillow widens 16-bit levels to 32 bits in some formats; they still span 0 to 65535.
        levels = (np.clip(levels, 0, 65535) / 65535.0).astype(np.float64)
    return arrays_to_bytes(levels, "the picture's levels")
