"""Made-up data of each kind: what a network is built for and tried with where no data are given.

Importing this module loads no torch.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from search_spaces.shapes import InputShape, TableShape, TextShape

if TYPE_CHECKING:
    import torch

__all__ = ["EXAMPLE_OUTPUTS", "EXAMPLE_SHAPES", "example_inputs", "shape_in_words"]

EXAMPLE_SHAPES: Mapping[str, InputShape] = {
    "image_classification": (3, 32, 32),
    "text_classification": TextShape(length=64, vocabulary=2000),
    "tabular": TableShape(numbers=8, categories=(4, 7)),
    "tabular_classification": TableShape(numbers=8, categories=(4, 7)),
    "tabular_regression": TableShape(numbers=8, categories=(4, 7)),
}
"""Task -> what its networks are told about the inputs of data of a usual size."""
EXAMPLE_OUTPUTS = 10
"""Classes of made-up data."""


def example_inputs(shape: Any, items: int, generator: "torch.Generator | None" = None) -> "tuple[torch.Tensor, ...]":
    """Return random inputs of a network for this shape; none of the texts is filled up.

    Args:
        shape: an ImageShape, TextShape or TableShape.
        items: how many.
        generator: draws them; None: torch's global generator.

    Shapes: images_NCHW within [0, 1); tokens_NL; or numbers_ND and categories_NC.
    """
    import torch

    if isinstance(shape, TextShape):
        return (torch.randint(1, shape.vocabulary, (items, shape.length), generator=generator),)
    if isinstance(shape, TableShape):
        drawn = [torch.randint(0, size, (items,), generator=generator) for size in shape.categories]
        categories_NC = torch.stack(drawn, dim=1) if drawn else torch.empty((items, 0), dtype=torch.long)
        return torch.rand(items, shape.numbers, generator=generator), categories_NC
    return (torch.rand(items, *cast(tuple[int, int, int], shape), generator=generator),)


def shape_in_words(shape: Any) -> str:
    """Return what is fed in words: `images of 3 x 32 x 32`."""
    if isinstance(shape, TextShape):
        return f"texts of {shape.length} tokens out of {shape.vocabulary}"
    if isinstance(shape, TableShape):
        return f"rows of {shape.numbers} numbers and {len(shape.categories)} categories"
    return f"images of {' x '.join(map(str, shape))}"
