"""Codes: a record as a few bounded numbers, for releases that add noise to them and are certified.

    c(x) = tanh((f(x) - mean) / deviation),   mean and deviation of f over the people of *fit*

Standardised before it is squashed, so that no code can collapse to a constant or run off to the
ends unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema, TextSchema
from privet.nets import sequences
from privet.nets.additive import Additive
from privet.nets.convolutions import prepare, scaled
from privet.nets.resnet import Jitter, ResNet

# Frequencies per column of a table.
WAVES = 8
# Largest shift of a picture in learning, as a share of its shorter side.
REACH = 1 / 16


class Code(nn.Module):
    """A record as `dims` numbers between -1 and 1.

    Parameters:
        schema: Of the records.
        dims: How many numbers.
        width: Of all layers; 1 is the largest.
        dropout: In training.
    """

    def __init__(self, schema: Schema, dims: int, width: float = 1.0, dropout: float = 0.2) -> None:
        super().__init__()
        self.shape = (dims,)
        self.picture = isinstance(schema, ImageSchema)
        self.body = body(schema, dims, width, dropout)
        self.jitter = (
            Jitter(max(1, round(REACH * min(cast(Sequence[int], schema.shape[1:])))))
            if self.picture
            else None
        )
        self.standard = nn.BatchNorm1d(dims, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.jitter is None:
            return torch.tanh(self.standard(self.body(prepare(x)).float()))
        x = prepare(x)
        if self.training:
            return torch.tanh(self.standard(self.body(_light(self.jitter(x))).float()))
        # The mean of a picture's code and of its mirror image's: the same face, seen twice.
        return (
            torch.tanh(self.standard(self.body(x).float()))
            + torch.tanh(self.standard(self.body(x.flip(3)).float()))
        ) / 2


def _light(x: Tensor) -> Tensor:
    """Pictures in [-1, 1] under another light: contrast, and the balance of colours."""
    contrast = 1 + 0.2 * torch.randn(len(x), 1, 1, 1, device=x.device)
    colour = 0.1 * torch.randn(len(x), x.shape[1], 1, 1, device=x.device)
    return x * contrast + colour


def body(schema: Schema, outputs: int, width: float, dropout: float) -> nn.Module:
    """The strongest plain reader of a record of this kind: encoded, in the network's scale, to so
    many numbers."""
    if isinstance(schema, ImageSchema | SignalSchema):
        return ResNet(cast(Sequence[int], schema.shape), outputs, width, dropout)
    if isinstance(schema, TextSchema):
        words = sequences.Extractor(schema.vocabulary, width)
        return nn.Sequential(
            words, nn.Dropout(dropout), sequences.Classifier(words.shape, outputs, width)
        )
    assert isinstance(schema, TableSchema)
    return Rows(schema.shape[0] or 0, outputs, width, dropout)


class Rows(nn.Module):
    """A table's row: every column as waves of learned lengths, then residual layers.

    Source: Gorishniy, Rubachev and Babenko, On embeddings for numerical features in tabular deep
    learning, NeurIPS (2022).
    """

    def __init__(
        self, columns: int, outputs: int, width: float = 1.0, dropout: float = 0.2, each: int = 8
    ) -> None:
        super().__init__()
        size = max(16, scaled(256, width))
        self.lengths = nn.Parameter(torch.randn(columns, WAVES) * 0.5)
        self.mix = nn.Parameter(torch.randn(columns, 2 * WAVES + 1, each) / (2 * WAVES) ** 0.5)
        self.first = nn.Sequential(nn.Linear(columns * each, size), nn.GELU())
        self.steps = nn.ModuleList([_Step(size, dropout) for _ in range(3)])
        self.last = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, outputs))

    def forward(self, x: Tensor) -> Tensor:
        angle = 2 * torch.pi * x.unsqueeze(2) * self.lengths
        waves = torch.cat([x.unsqueeze(2), angle.sin(), angle.cos()], dim=2)
        h = self.first(torch.relu(torch.einsum("bcw,cwe->bce", waves, self.mix)).flatten(1))
        for step in self.steps:
            h = step(h)
        return self.last(h)  # type: ignore[no-any-return]


class _Step(nn.Module):
    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, 2 * size),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(2 * size, size),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)  # type: ignore[no-any-return]


def noisy_code(
    schema: Schema, dims: int, sigma: float, width: float = 1.0, dropout: float = 0.0
) -> Additive:
    """A code of `dims` bounded numbers with Gaussian noise: what hedge releases."""
    return Additive(Code(schema, dims, width, dropout), sigma)
