"""An LSTM that reads texts in both directions: word ids, or one released vector per word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from privet.adversaries.network import StandardisedInput
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.view import View
from privet.nets.convolutions import scaled
from privet.nets.sequences import present

# Deviation of untrained word vectors: a word that *attack* lacks then says next to nothing.
DEVIATION = 0.1


class WordVectors(nn.Module):
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
            nn.init.normal_(self.words.weight, std=DEVIATION)
        else:
            width = view.shape[-1]
            assert width is not None, "the last axis of a released text has a fixed size"
            self.standard, self.project = StandardisedInput(width), nn.Linear(width, size)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        if z.is_floating_point():
            where = up_to_last(present(z))
            x = self.project(self.standard(z.transpose(1, 2), where).transpose(1, 2))
        else:
            where = up_to_last(z != 0)
            x = self.words(z)
        kept = where
        if self.training:
            kept = where & (torch.rand(where.shape, device=z.device) >= self.dropout)
        return x * kept.unsqueeze(2), where


def up_to_last(where: Tensor) -> Tensor:
    """Every position up to the last that holds a word; the first always, so that an empty text has
    an answer too."""
    position = torch.arange(where.shape[1], device=where.device)
    return position <= (where * position).amax(1, keepdim=True)


class BidirectionalLSTM(nn.Module):
    """An LSTM from the first word on and one from the last word on, each blind to padding."""

    def __init__(self, inside: int, size: int) -> None:
        super().__init__()
        self.onward, self.back = (nn.LSTM(inside, size, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor, reverse: Tensor) -> Tensor:
        """`reverse` (records, words): for each position, the one it has when the text is read from
        its last word."""
        back = _take(self.back(_take(x, reverse))[0], reverse)
        return torch.cat([self.onward(x)[0], back], dim=2)


class TextLSTM(nn.Module):
    """Two layers in both directions; the head takes each unit's largest value and its last one."""

    def __init__(
        self, view: View, outputs: int, width: float, word_dropout: float, dropout: float
    ) -> None:
        super().__init__()
        size, hidden = scaled(300, width), scaled(150, width)
        self.size = hidden
        self.words = WordVectors(view, size, word_dropout)
        self.first, self.second = (
            BidirectionalLSTM(size, hidden),
            BidirectionalLSTM(2 * hidden, hidden),
        )
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
        reverse = torch.where(where, length - 1 - position, position)
        states = self.second(self.between(self.first(self.between(x), reverse)), reverse)
        top = states.masked_fill(~where.unsqueeze(2), -1.0).amax(1)
        end = _take(states[:, :, : self.size], length - 1)[:, 0]
        scores: Tensor = self.head(torch.cat([top, end, states[:, 0, self.size :]], dim=1))
        return scores


def _take(x: Tensor, positions: Tensor) -> Tensor:
    """x (records, words, size) at these positions (records, any)."""
    return x.gather(1, positions.unsqueeze(2).expand(-1, -1, x.shape[2]))


@dataclass(frozen=True, kw_only=True)
class Recurrent(NetworkAdversary):
    """The sizes of TIPRDC's Table 2 (embedding 300, two LSTM layers of 300), half of each layer for
    either direction. Settings of training are those of `NetworkAdversary`.

    Parameters:
        word_dropout: Share of words that are left out in training.
        dropout: Share of units that are left out in training.
    """

    word_dropout: float = 0.15
    dropout: float = 0.2
    name: ClassVar[str] = "lstm"
    title: ClassVar[str] = "LSTM"

    def takes(self, view: View) -> bool:
        return view.is_text

    def build(self, view: View, outputs: int) -> nn.Module:
        return TextLSTM(view, outputs, self.width, self.word_dropout, self.dropout)
