"""Counts, lists and durations in words, for sentences and small tables."""

from collections.abc import Sequence

__all__ = ["counted", "listed", "seconds_in_words"]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return `1 trial`, `2 trials`, `1,000 trials`; the plural has an s unless another one is given."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return `a, b and c`; more than `most` names are counted."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def seconds_in_words(seconds: float) -> str:
    """Return a duration: `0.4 s`, `38 s`, `1 min 50 s`, `2 h 05 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
