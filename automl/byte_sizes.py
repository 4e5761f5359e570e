"""Amounts of memory as people write them."""

import re

__all__ = ["bytes_in", "in_words"]

_UNITS = {
    "": 1, "b": 1, "k": 2**10, "kb": 10**3, "kib": 2**10, "m": 2**20, "mb": 10**6, "mib": 2**20,
    "g": 2**30, "gb": 10**9, "gib": 2**30, "t": 2**40, "tb": 10**12, "tib": 2**40,
}  # fmt: skip


def bytes_in(text: str) -> int:
    """The number of bytes that a text such as `8GiB`, `500 MB` or `4096` means; a bare K, M, G or T is binary.

    Raises:
        ValueError: the text is no such amount, or below one byte.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    factor = _UNITS.get(match[2]) if match else None
    if match is None or factor is None or float(match[1]) * factor < 1:
        raise ValueError(f"{text!r} is no amount of memory; give a number with a unit, such as 8GiB or 500MB")
    return int(float(match[1]) * factor)


def in_words(count: float) -> str:
    """An amount in the largest unit of which it has at least one: `7.5 GiB`."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} bytes"
