import io
from io import BufferedReader

import pytest

from trainers.custom.lines import LONGEST_LINE, json_object, lines_of


def lines(content: bytes) -> list[str]:
    return list(lines_of(BufferedReader(io.BytesIO(content))))


def test_lines_may_lack_their_end_and_be_empty_or_no_text() -> None:
    assert lines(b"a\n\nb\xff\r 10 %\r 20 %") == ["a", "", "b\ufffd", " 10 %", " 20 %"]
    assert lines(b"") == []


def test_huge_line_is_cut_and_the_next_one_is_whole(caplog: pytest.LogCaptureFixture) -> None:
    first, second = lines(b"x" * (3 * LONGEST_LINE) + b'\n{"a": 1}\n')
    assert (len(first), second) == (LONGEST_LINE, '{"a": 1}')
    assert "too long" in caplog.text


@pytest.mark.parametrize("line", ["", "loss 0.3", "[1]", "{'a': 1}", '{"a": 1', '{"a": 1} x', "{" * 100_000, "3"])
def test_what_is_no_json_object_is_an_ordinary_line(line: str) -> None:
    assert json_object(line) is None


def test_json_object_may_hold_what_json_lacks() -> None:
    found = json_object('  {"a": 1, "b": NaN}')
    assert found is not None
    assert found["a"] == 1 and found["b"] != found["b"]
