import pytest

from search_spaces.bounds import parse_bound


@pytest.mark.parametrize(
    ("text", "value"),
    [("100 - a", 70.0), ("2 * a", 60.0), ("a * 2 - b / 4", 58.0), ("-(a + b) * 0.5", -19.0), ("7", 7.0)],
)
def test_value_of_sums(text: str, value: float) -> None:
    assert parse_bound(text).value({"a": 30, "b": 8}) == value


def test_bound_of_a_parameter_that_is_not_there_is_none() -> None:
    assert parse_bound("a + b").value({"a": 1}) is None


@pytest.mark.parametrize("text", ["a * b", "1 / a", "max(a, b)", "a **", "", "a / 0", "'x'", "__import__('os')"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no bound"):
        parse_bound(text)
