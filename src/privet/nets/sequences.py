"""Networks for texts, after TIPRDC's Table 2: embedding 300 and LSTM 300 in front, two LSTMs 300
and fc 150 behind.

Padding is zero everywhere: a padded position of x is word 0, and a padded position of z is a vector
of zeros, so that whoever receives z can see where a text ends without being told.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from privet.nets.convolutions import Pair, scaled


def last(states: Tensor, present: Tensor) -> Tensor:
    """The state at the last position that is present."""
    position = present.long().sum(1).clamp(min=1) - 1
    return states[torch.arange(states.shape[0], device=states.device), position]


def present(z: Tensor) -> Tensor:
    """Which positions of a released text hold a word."""
    return z.abs().amax(2) > 0


class Extractor(nn.Module):
    """Word ids -> one vector per word."""

    def __init__(self, vocabulary: int, width: float = 1.0) -> None:
        super().__init__()
        size = scaled(300, width)
        self.words = nn.Embedding(vocabulary, size, padding_idx=0)
        self.lstm = nn.LSTM(size, size, batch_first=True)
        self.shape: tuple[int | None, ...] = (None, size)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.lstm(self.words(x))[0]
        return states * (x != 0).unsqueeze(2).to(states.dtype)


class Trunk(nn.Module):
    """Two LSTM layers that read a text's features to its end."""

    def __init__(self, features: int, width: float) -> None:
        super().__init__()
        self.features = scaled(300, width)
        self.lstm = nn.LSTM(features, self.features, num_layers=2, batch_first=True)

    def forward(self, z: Tensor, where: Tensor) -> Tensor:
        return last(self.lstm(z)[0], where)


class Classifier(nn.Module):
    """Features of a text to class scores."""

    def __init__(self, shape: Sequence[int | None], outputs: int, width: float = 1.0) -> None:
        super().__init__()
        self.trunk = Trunk(_size(shape), width)
        hidden = scaled(150, width)
        self.head = nn.Sequential(
            nn.Linear(self.trunk.features, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
        )

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.trunk(z, present(z)))  # type: ignore[no-any-return]


class Estimator(nn.Module):
    """As for pictures: own embedding and LSTM for x, then one trunk for x and z, then u."""

    def __init__(
        self, vocabulary: int, features: Sequence[int | None], private: int, width: float = 1.0
    ) -> None:
        super().__init__()
        self.lift = Extractor(vocabulary, width)
        self.trunk = Trunk(_size(features), width)
        self.pair = Pair(self.trunk.features, private, scaled(150, width))

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        where = x != 0
        from_x, from_z = self.trunk(torch.cat([self.lift(x), z]), torch.cat([where, where])).chunk(
            2
        )
        return self.pair(from_x, from_z, u)  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """z -> a score for every word of the vocabulary at every position: which words were there?"""

    def __init__(self, vocabulary: int, features: Sequence[int | None], width: float = 1.0) -> None:
        super().__init__()
        size = scaled(300, width)
        self.lstm = nn.LSTM(_size(features), size, batch_first=True)
        self.words = nn.Linear(size, vocabulary)

    def forward(self, z: Tensor) -> Tensor:
        return self.words(self.lstm(z)[0])  # type: ignore[no-any-return]


def _size(shape: Sequence[int | None]) -> int:
    size = shape[-1]
    assert size is not None, "the last axis of a released text has a fixed size"
    return size
