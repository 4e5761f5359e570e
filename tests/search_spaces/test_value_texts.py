import pytest

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.value_texts import value_of_text


@pytest.mark.parametrize(
    "parameter, text, value",
    [
        (Float(low=0.0, high=9.0), "1e-3", 0.001),
        (Float(low=0.0, high=9.0), "3", 3),
        (Float(low=0.0, high=9.0), "three", "three"),
        (Integer(low=0, high=99), "16", 16),
        (Integer(low=0, high=99), "16.0", 16),
        (Integer(low=0, high=99), "1.5", 1.5),
        (Integer(low=0, high=99), "inf", float("inf")),
        (Categorical(choices=("conv3", "16", 16)), "conv3", "conv3"),
        (Categorical(choices=("conv3", "16", 16)), "16", "16"),
        (Categorical(choices=(8, 16)), "16", 16),
        (Categorical(choices=(0.5, 1.5)), "0.50", 0.5),
        (Categorical(choices=(True, False)), "true", True),
        (Categorical(choices=(True, False)), "False", False),
        (Categorical(choices=(None, "a")), "null", None),
        (Categorical(choices=(None, "a")), "b", "b"),
    ],
)
def test_text_is_read_by_the_kind_of_its_parameter(parameter: Parameter, text: str, value: JsonScalar) -> None:
    read = value_of_text(parameter, text)
    assert (type(read), read) == (type(value), value)


def test_list_is_read_as_its_label() -> None:
    kernel = Categorical(choices=([3, 5], [1, 1]))
    assert [value_of_text(kernel, text) for text in ("[3, 5]", "[3,5]", "1x1", "[7,7]")] == [
        "3x5", "3x5", "1x1", "[7,7]",
    ]  # fmt: skip
