"""What networks for rows of a table are made of: categories become vectors, and fully connected layers do the rest.

Shapes: N rows, D numbers, C categories, E features of a category, F features.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor, nn

from search_spaces.shapes import TableShape

__all__ = ["ACTIVATIONS", "NORMS", "CategoryVectors", "TableChain", "TableInput", "TableNetwork", "check_sizes"]

ACTIVATIONS: Final[Mapping[str, Callable[[], nn.Module]]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
NORMS: Final[Mapping[str, Callable[[int], nn.Module]]] = {
    "none": lambda width: nn.Identity(),
    "batch": nn.BatchNorm1d,
    "layer": nn.LayerNorm,
}


class CategoryVectors(nn.Embedding):
    """Vectors for categories, which are learned.

    All columns share one table of vectors, each with rows of its own, so that a batch is one look-up.

    Args:
        categories: number of categories of each of the C columns, at least one column.
        embedding: E.

    Shapes: categories_NC (N, C) int64 -> (N, C, E).
    """

    def __init__(self, categories: Sequence[int], embedding: int) -> None:
        """Draw the vectors."""
        super().__init__(sum(categories), embedding)
        begins = torch.tensor([0, *categories[:-1]], dtype=torch.int64).cumsum(0)
        self.register_buffer("begins_C", begins, persistent=False)
        self.begins_C: Tensor

    def forward(self, categories_NC: Tensor) -> Tensor:
        """Look the categories up."""
        return super().forward(categories_NC + self.begins_C)


class TableInput(nn.Module):
    """Puts the numbers of a row beside vectors for its categories.

    Args:
        shape: the columns.
        embedding: E.

    Shapes: numbers_ND (N, D) float, categories_NC (N, C) int64 -> (N, D + C * E).
    """

    def __init__(self, shape: TableShape, embedding: int) -> None:
        """Draw the vectors."""
        super().__init__()
        self.features = shape.numbers + len(shape.categories) * embedding
        self.vectors = CategoryVectors(shape.categories, embedding) if shape.categories else None

    def forward(self, numbers_ND: Tensor, categories_NC: Tensor) -> Tensor:
        """Look the categories up."""
        if self.vectors is None:
            return numbers_ND
        return torch.cat([numbers_ND, self.vectors(categories_NC).flatten(1)], dim=1)


class TableChain(nn.Module):
    """A network for rows: its first part takes numbers and categories, each further one the answer of the one before.

    Args:
        parts: by name, in the order in which they are called.

    Shapes: numbers_ND, categories_NC -> (N, K).
    """

    def __init__(self, **parts: nn.Module) -> None:
        """Keep the parts."""
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)

    def chain(self) -> tuple[nn.Module, ...]:
        """Return the parts, each of which takes the answer of the one before."""
        return tuple(self.children())

    def forward(self, numbers_ND: Tensor, categories_NC: Tensor) -> Tensor:
        """Return logits, or a number for each row."""
        first, *others = self.children()
        answers: Tensor = first(numbers_ND, categories_NC)
        for part in others:
            answers = part(answers)
        return answers


class TableNetwork(TableChain):
    """Tells K logits, or one number, from a row.

    Args:
        shape: the columns.
        num_outputs: K, or 1 for a number.
        depth: number of hidden layers, at least 1.
        width: F, features of each hidden layer.
        embedding: features of a category.
        norm: one of `NORMS`.
        activation: one of `ACTIVATIONS`.
        dropout: share of the features that is dropped after each hidden layer while training, in [0, 1).

    Shapes: numbers_ND, categories_NC -> (N, K).

    Raises:
        ValueError: there is no column, or a size is not positive.
    """

    def __init__(
        self,
        shape: TableShape,
        num_outputs: int,
        *,
        depth: int,
        width: int,
        embedding: int,
        norm: str = "none",
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        """Build the layers, one after the other."""
        check_sizes(shape, num_outputs=num_outputs, depth=depth, width=width, embedding=embedding)
        first = TableInput(shape, embedding)
        layers: list[nn.Module] = []
        features = first.features
        for _ in range(depth):
            layers += [nn.Linear(features, width), NORMS[norm](width), ACTIVATIONS[activation](), nn.Dropout(dropout)]
            features = width
        super().__init__(input=first, hidden=nn.Sequential(*layers), head=nn.Linear(features, num_outputs))


def check_sizes(shape: TableShape, **sizes: int) -> None:
    """Refuse a network that would have a part of no size, or a table of no columns.

    Raises:
        ValueError: with all of them.
    """
    problems = [f"{name}={size} must be at least 1" for name, size in sizes.items() if size < 1]
    if shape.numbers + len(shape.categories) < 1:
        problems.append("a table without columns says nothing")
    if problems:
        raise ValueError("; ".join(problems))
