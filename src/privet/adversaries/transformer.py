"""A small transformer: over the words of a text, or over short stretches of a signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.network import Standard, readable
from privet.adversaries.network_training import Learned
from privet.adversaries.recurrent import Words
from privet.adversaries.view import View
from privet.data.dataset import Attribute
from privet.nets.transformer import HEADS, Encoder

STRETCHES = 32
"""About as many tokens a signal is cut into."""


class OfText(nn.Module):
    def __init__(
        self, view: View, outputs: int, size: int, layers: int, word_dropout: float, dropout: float
    ) -> None:
        super().__init__()
        self.words, self.encoder = (
            Words(view, size, word_dropout),
            Encoder(size, outputs, layers, dropout),
        )

    def forward(self, z: Tensor) -> Tensor:
        x, where = self.words(z)
        return self.encoder(x, where)  # type: ignore[no-any-return]


class OfSignal(nn.Module):
    """Stretches of equal length, each laid flat and projected; the last is filled up with zeros."""

    def __init__(
        self, shape: Sequence[int], outputs: int, size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        channels, time = shape
        self.step = max(1, time // STRETCHES)
        self.missing = -time % self.step
        self.standard = Standard(channels)
        self.cut = nn.Conv1d(channels, size, self.step, stride=self.step)
        self.encoder = Encoder(size, outputs, layers, dropout)

    def forward(self, z: Tensor) -> Tensor:
        x = F.pad(self.standard(z), (0, self.missing))
        return self.encoder(self.cut(x).transpose(1, 2))  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Transformer(Learned):
    layers: int = 2
    size: int = 128
    word_dropout: float = 0.15
    dropout: float = 0.1
    name: ClassVar[str] = "transformer"
    title: ClassVar[str] = "small transformer"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return (view.is_text or view.is_series) and readable(attribute)

    def build(self, view: View, outputs: int) -> nn.Module:
        # Heads divide the size, and sines and cosines come in pairs.
        size = max(4, round(self.size * self.width / HEADS)) * HEADS
        if view.is_text:
            return OfText(view, outputs, size, self.layers, self.word_dropout, self.dropout)
        return OfSignal(cast(Sequence[int], view.shape), outputs, size, self.layers, self.dropout)
