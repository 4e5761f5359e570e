"""Zero-cost scores: what an untrained network tells on one batch about how well it will learn.

One module computes one score, and its file name is the score's name; importing this package loads no torch. A score
orders networks of one space on one batch: higher is better. Its size means nothing beside that of another score.
"""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search_spaces.discovery import module_names
from search_spaces.errors import did_you_mean

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["NoScoreError", "Score", "UnknownScoreError", "available", "check_names", "explained_score", "score"]


class NoScoreError(ValueError):
    """A score is not defined for a network and a batch; the message says why."""


class UnknownScoreError(KeyError):
    """There are no scores of some names; the message lists all of them, and those that exist."""

    def __str__(self) -> str:
        """Return the message, without KeyError's quotes."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Score:
    """A score that may be missing.

    Attributes:
        value: higher is better; -inf where there is none, so that such a network comes last.
        reason: why there is none, a sentence; None: there is one.
    """

    value: float
    reason: str | None = None


def available() -> tuple[str, ...]:
    """Return the names of all scores, sorted; none of them is imported."""
    return module_names(__name__)


def check_names(names: Sequence[str]) -> None:
    """Refuse names of scores that do not exist.

    Raises:
        UnknownScoreError: some do not, or none is given.
    """
    known = available()
    problems = [f"no score {name!r};{did_you_mean(name, known)}" for name in names if name not in known]
    if not names:
        problems.append("no score is given;")
    if problems:
        raise UnknownScoreError(f"{' '.join(problems)} available: {', '.join(known)}")


def score(name: str, model: "nn.Module", inputs: "tuple[torch.Tensor, ...]", targets: "torch.Tensor") -> float:
    """Return the score of an untrained network; -inf where it has none (`explained_score` says why).

    Weights, their gradients, buffers, random states and training flags stay what they are, and equal arguments give
    equal scores: dropout is off, and batch normalisation uses the statistics of the batch.

    Args:
        name: one of `available`.
        model: with fresh weights.
        inputs: the arguments of its forward, on its device; the first dimension of each counts the N items. 32 to 64
            items are usual.
        targets: of these items: (N,) int64 classes, (N, K) float shares of the classes, or (N,) float numbers.

    Raises:
        UnknownScoreError: there is no such score.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(10, 11)
        >>> score("parameters", model, (torch.zeros(2, 10),), torch.tensor([0, 1]))
        121.0
    """
    return explained_score(name, model, inputs, targets).value


def explained_score(
    name: str, model: "nn.Module", inputs: "tuple[torch.Tensor, ...]", targets: "torch.Tensor"
) -> Score:
    """Return what `score` does, with the reason where a network has none.

    Raises:
        UnknownScoreError: there is no such score.
    """
    check_names([name])
    compute = getattr(importlib.import_module(f"{__name__}.{name}"), name)
    try:
        value = float(compute(model, inputs, targets))
    except NoScoreError as error:
        return Score(-math.inf, f"{name}: {error}")
    if not math.isfinite(value):
        return Score(-math.inf, f"{name}: the score left the range of numbers ({value})")
    return Score(value)
