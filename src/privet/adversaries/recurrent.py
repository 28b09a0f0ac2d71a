"""An LSTM that reads texts in both directions: word ids, or one released vector per word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from privet.adversaries.network import Standard, readable
from privet.adversaries.network_training import Learned
from privet.adversaries.view import View
from privet.data.dataset import Attribute
from privet.nets.convolutions import scaled
from privet.nets.sequences import present

SPREAD = 0.1
"""Deviation of untrained word vectors: a word that *attack* lacks then says next to nothing."""


class Words(nn.Module):
    """A text as vectors (records, words, size), zero at the padding, and which positions hold a
    word.

    In training whole words are left out at random (Iyyer and others, "Deep unordered composition",
    ACL 2015).
    """

    def __init__(self, view: View, size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        if view.vocabulary:
            self.words = nn.Embedding(view.vocabulary, size, padding_idx=0)
            nn.init.normal_(self.words.weight, std=SPREAD)
        else:
            given = view.shape[-1]
            assert given is not None, "the last axis of a released text has a fixed size"
            self.standard, self.project = Standard(given), nn.Linear(given, size)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        ids = not z.is_floating_point()
        where = reached(z != 0 if ids else present(z))
        x: Tensor = (
            self.words(z)
            if ids
            else self.project(self.standard(z.transpose(1, 2), where).transpose(1, 2))
        )
        kept = (
            where & (torch.rand(where.shape, device=z.device) >= self.dropout)
            if self.training
            else where
        )
        return x * kept.unsqueeze(2), where


def reached(where: Tensor) -> Tensor:
    """Every position up to the last that holds a word; the first always, so that an empty text has
    an answer too."""
    position = torch.arange(where.shape[1], device=where.device)
    return position <= (where * position).amax(1, keepdim=True)


class BothWays(nn.Module):
    """An LSTM from the first word on and one from the last word on, each blind to padding."""

    def __init__(self, inside: int, size: int) -> None:
        super().__init__()
        self.onward, self.back = (nn.LSTM(inside, size, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor, turned: Tensor) -> Tensor:
        """`turned` (records, words): for each position, the one it has when the text is read from
        its last word."""
        back = _take(self.back(_take(x, turned))[0], turned)
        return torch.cat([self.onward(x)[0], back], dim=2)


class Reader(nn.Module):
    """Two layers in both directions; each unit's largest value and its last one are what is
    judged."""

    def __init__(
        self, view: View, outputs: int, width: float, word_dropout: float, dropout: float
    ) -> None:
        super().__init__()
        size, hidden = scaled(300, width), scaled(150, width)
        self.size = hidden
        self.words = Words(view, size, word_dropout)
        self.first, self.second = BothWays(size, hidden), BothWays(2 * hidden, hidden)
        self.between = nn.Dropout(dropout)
        self.head = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, z: Tensor) -> Tensor:
        x, where = self.words(z)
        length, position = where.sum(1, keepdim=True), torch.arange(where.shape[1], device=z.device)
        turned = torch.where(where, length - 1 - position, position)
        states = self.second(self.between(self.first(self.between(x), turned)), turned)
        top = states.masked_fill(~where.unsqueeze(2), -1.0).amax(1)
        end = _take(states[:, :, : self.size], length - 1)[:, 0]
        return self.head(torch.cat([top, end, states[:, 0, self.size :]], dim=1))  # type: ignore[no-any-return]


def _take(x: Tensor, positions: Tensor) -> Tensor:
    """x (records, words, size) at these positions (records, any)."""
    return x.gather(1, positions.unsqueeze(2).expand(-1, -1, x.shape[2]))


@dataclass(frozen=True, kw_only=True)
class Recurrent(Learned):
    """The sizes of TIPRDC's Table 2 (embedding 300, two LSTM layers of 300), half of each layer for
    either direction."""

    word_dropout: float = 0.15
    dropout: float = 0.2
    name: ClassVar[str] = "lstm"
    title: ClassVar[str] = "LSTM"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return view.is_text and readable(attribute)

    def build(self, view: View, outputs: int) -> nn.Module:
        return Reader(view, outputs, self.width, self.word_dropout, self.dropout)
