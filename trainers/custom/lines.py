"""What a script prints: lines of any length, among them JSON objects with what it has measured."""

import json
import logging
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

__all__ = ["LONGEST_LINE", "json_object", "lines_of"]

LONGEST_LINE = 2**20
"""Bytes of a line that are kept; the rest of a longer one is dropped, or one line could take all the memory."""
_CHUNK = 2**16

_log = logging.getLogger(__name__)


def lines_of(stream: BufferedReader) -> Iterator[str]:
    """Yield the lines of a stream as they come, without their ends; the last one may lack its end.

    Carriage returns end a line, too: progress bars are made of them. Bytes that are no UTF-8 are replaced.
    """
    kept, dropped = bytearray(), 0
    while chunk := stream.read1(_CHUNK):  # as soon as there is something, not when a buffer is full
        for piece in chunk.replace(b"\r", b"\n").splitlines(keepends=True):
            room = LONGEST_LINE - len(kept)
            kept += piece[:room]
            dropped += max(0, len(piece) - room)
            if piece.endswith(b"\n"):
                yield _text(kept, dropped)
                kept, dropped = bytearray(), 0
    if kept:
        yield _text(kept, dropped)


def json_object(line: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a line is; None: it is something else. NaN and Infinity are read as Python's."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(kept: bytearray, dropped: int) -> str:
    if dropped:
        _log.warning("a line of the script is too long; kept=%d B dropped=%d B", len(kept), dropped)
    return kept.decode("utf-8", errors="replace").rstrip("\n")
