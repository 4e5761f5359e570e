from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

TableOf = Callable[..., Path]


@pytest.fixture
def table_of(tmp_path: Path) -> TableOf:
    """Write a table of lines with commas."""

    def write(lines: Sequence[str], name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
