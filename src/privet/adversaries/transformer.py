"""A small transformer: over the words of a text, or over short segments of a signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.network import StandardisedInput
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.recurrent import WordVectors
from privet.adversaries.view import View
from privet.nets.transformer import HEADS, Encoder

# A signal is cut into about as many tokens.
SEGMENTS = 32


class TextTransformer(nn.Module):
    """Word vectors, then an encoder."""

    def __init__(self, words: WordVectors, encoder: Encoder) -> None:
        super().__init__()
        self.words, self.encoder = words, encoder

    def forward(self, z: Tensor) -> Tensor:
        x, where = self.words(z)
        return self.encoder(x, where)  # type: ignore[no-any-return]


class SignalTransformer(nn.Module):
    """Segments of equal length, each laid flat and projected; the last is filled up with zeros."""

    def __init__(
        self, shape: Sequence[int], outputs: int, size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        channels, time = shape
        step = max(1, time // SEGMENTS)
        self.missing = -time % step
        self.standard = StandardisedInput(channels)
        self.cut = nn.Conv1d(channels, size, step, stride=step)
        self.encoder = Encoder(size, outputs, layers, dropout)

    def forward(self, z: Tensor) -> Tensor:
        x = F.pad(self.standard(z), (0, self.missing))
        return self.encoder(self.cut(x).transpose(1, 2))  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Transformer(NetworkAdversary):
    """A transformer encoder on texts and signals. Settings of training are those of
    `NetworkAdversary`.

    Parameters:
        layers: How many.
        size: Of a token.
        word_dropout: Share of words that are left out in training.
        dropout: Share of units that are left out in training.
    """

    layers: int = 2
    size: int = 128
    word_dropout: float = 0.15
    dropout: float = 0.1
    name: ClassVar[str] = "transformer"
    title: ClassVar[str] = "small transformer"

    def takes(self, view: View) -> bool:
        return view.is_text or view.is_series

    def build(self, view: View, outputs: int) -> nn.Module:
        # Heads divide the size, and sines and cosines come in pairs.
        size = max(4, round(self.size * self.width / HEADS)) * HEADS
        if view.is_text:
            words = WordVectors(view, size, self.word_dropout)
            return TextTransformer(words, Encoder(size, outputs, self.layers, self.dropout))
        shape = cast(Sequence[int], view.shape)
        return SignalTransformer(shape, outputs, size, self.layers, self.dropout)
