"""Large counts as people write them."""

import re

__all__ = ["count_in"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}


def count_in(text: str) -> int:
    """The whole number that a text such as `200000`, `1e6`, `1M` or `2.5k` means.

    Raises:
        ValueError: the text is no such number, or below 1.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\+?\d+)?)\s*([a-z]?)", text.strip().lower())
    factor = _UNITS.get(match[2]) if match else None
    number = float(match[1]) * factor if match is not None and factor is not None else 0.5  # no whole number
    if not number.is_integer() or number < 1:
        raise ValueError(f"{text!r} is not allowed: give a whole number from 1, such as 200000, 1e6 or 1M")
    return int(number)
