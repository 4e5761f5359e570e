"""Amounts of memory as people write them."""

import pytest

from automl.byte_sizes import bytes_in, in_words


@pytest.mark.parametrize(
    "text, count",
    [
        ("4096", 4096), ("8GiB", 8 * 2**30), ("8 gib", 8 * 2**30), ("8G", 8 * 2**30), ("500MB", 500_000_000),
        ("1.5k", 1536), ("2TB", 2 * 10**12), ("10 b", 10),
    ],
)  # fmt: skip
def test_amount_is_read(text: str, count: int) -> None:
    assert bytes_in(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "8 giga", "-1GB", "1,5GB", "0", "0.2", "nan", "1e9"])
def test_what_is_no_amount_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="8GiB"):
        bytes_in(text)


@pytest.mark.parametrize("count, text", [(7.5 * 2**30, "7.5 GiB"), (2**20, "1.0 MiB"), (12, "12 bytes")])
def test_amount_is_said_in_the_largest_unit(count: float, text: str) -> None:
    assert in_words(count) == text
