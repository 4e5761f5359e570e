"""Networks that read rows of a table: categories become vectors, and fully connected layers do the rest.

Shapes: N rows, D numbers, C categories, E features of a category, F features.
"""

from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor, nn

from search_spaces.shapes import TableShape

__all__ = ["ACTIVATIONS", "NORMS", "TableInput", "TableNetwork"]

ACTIVATIONS: Final[Mapping[str, Callable[[], nn.Module]]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
NORMS: Final[Mapping[str, Callable[[int], nn.Module]]] = {
    "none": lambda width: nn.Identity(),
    "batch": nn.BatchNorm1d,
    "layer": nn.LayerNorm,
}


class TableInput(nn.Module):
    """Puts the numbers of a row beside vectors for its categories, which are learned.

    All columns share one table of vectors, each with rows of its own, so that a batch is one look-up.

    Args:
        shape: the columns.
        embedding: E.

    Shapes: numbers_ND (N, D) float, categories_NC (N, C) int64 -> (N, D + C * E).
    """

    def __init__(self, shape: TableShape, embedding: int) -> None:
        """Draw the vectors."""
        super().__init__()
        self.features = shape.numbers + len(shape.categories) * embedding
        self.vectors = nn.Embedding(sum(shape.categories), embedding) if shape.categories else None
        begins = torch.tensor([0, *shape.categories[:-1]], dtype=torch.int64).cumsum(0)[: len(shape.categories)]
        self.register_buffer("begins_C", begins, persistent=False)
        self.begins_C: Tensor

    def forward(self, numbers_ND: Tensor, categories_NC: Tensor) -> Tensor:
        """Look the categories up."""
        if self.vectors is None:
            return numbers_ND
        vectors_NCE = self.vectors(categories_NC + self.begins_C)
        return torch.cat([numbers_ND, vectors_NCE.flatten(1)], dim=1)


class TableNetwork(nn.Module):
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
        super().__init__()
        sizes = {"num_outputs": num_outputs, "depth": depth, "width": width, "embedding": embedding}
        problems = [f"{name}={size} must be at least 1" for name, size in sizes.items() if size < 1]
        if shape.numbers + len(shape.categories) < 1:
            problems.append("a table without columns says nothing")
        if problems:
            raise ValueError("; ".join(problems))
        self.input = TableInput(shape, embedding)
        layers: list[nn.Module] = []
        features = self.input.features
        for _ in range(depth):
            layers += [nn.Linear(features, width), NORMS[norm](width), ACTIVATIONS[activation](), nn.Dropout(dropout)]
            features = width
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Linear(features, num_outputs)

    def chain(self) -> tuple[nn.Module, ...]:
        """Return the parts, each of which takes the answer of the one before."""
        return (self.input, self.hidden, self.head)

    def forward(self, numbers_ND: Tensor, categories_NC: Tensor) -> Tensor:
        """Return logits, or a number for each row."""
        answers: Tensor = self.head(self.hidden(self.input(numbers_ND, categories_NC)))
        return answers
