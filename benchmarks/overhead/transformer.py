"""A small Transformer for short texts."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from search_spaces.parameters import Integer
from search_spaces.shapes import TextShape
from search_spaces.space import SearchSpace

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "transformer",
    {"width": Integer(low=16, high=256, role="architecture")},
    defaults={"width": 64},
    task="text_classification",
)


class Transformer(nn.Module):
    def __init__(self, width: int, shape: TextShape, num_classes: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, width)
        self.places = nn.Parameter(torch.randn(shape.length, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, tokens_NL: torch.Tensor) -> torch.Tensor:
        is_filling_NL = tokens_NL == 0
        hidden_NLW = self.tokens(tokens_NL) + self.places[: tokens_NL.shape[1]]
        for block in self.blocks:
            hidden_NLW = block(hidden_NLW, src_key_padding_mask=is_filling_NL)
        weight_NL1 = (~is_filling_NL).unsqueeze(2).to(hidden_NLW.dtype)
        mean_NW = (hidden_NLW * weight_NL1).sum(dim=1) / weight_NL1.sum(dim=1).clamp(min=1.0)
        logits: torch.Tensor = self.head(mean_NW)
        return logits


def build_model(configuration: Mapping[str, Any], input_shape: TextShape, num_classes: int) -> nn.Module:
    return Transformer(configuration["width"], input_shape, num_classes)
