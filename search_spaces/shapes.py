"""What a network is told about its inputs when it is built: one type for each kind of data."""

from typing import NamedTuple, TypeAlias

__all__ = ["ImageShape", "InputShape", "TableShape", "TextShape"]

ImageShape: TypeAlias = tuple[int, int, int]
"""(channels, height, width); the network takes images_NCHW, float32, normalised."""


class TextShape(NamedTuple):
    """Texts as numbered tokens; the network takes tokens_NL, int64 in [0, vocabulary), where 0 fills up short texts.

    Attributes:
        length: most tokens of a text; a batch may be shorter, when all its texts are.
        vocabulary: number of different tokens, the filling and the unknown one among them.
    """

    length: int
    vocabulary: int


class TableShape(NamedTuple):
    """Rows of a table; the network takes numbers_ND, float32, standardised, and categories_NC, int64.

    Attributes:
        numbers: D, the number of columns with numbers; may be 0.
        categories: for each of the C other columns its number of categories, the unknown one (0) among them.
    """

    numbers: int
    categories: tuple[int, ...] = ()


InputShape: TypeAlias = ImageShape | TextShape | TableShape
