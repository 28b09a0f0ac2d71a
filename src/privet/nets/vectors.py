"""Networks for tables: the plan of TIPRDC's Table 1 with fully connected layers for
convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from privet.nets.convolutions import Pair, scaled

LIFT = (256, 256, 128)
TRUNK = (256, 256, 256)


def layers(plan: Sequence[int], inside: int, width: float) -> tuple[nn.Sequential, int]:
    parts: list[nn.Module] = []
    for size in plan:
        out = scaled(size, width)
        parts += [nn.Linear(inside, out, bias=False), nn.BatchNorm1d(out), nn.ReLU()]
        inside = out
    return nn.Sequential(*parts), inside


class Extractor(nn.Module):
    """Rows to features."""

    def __init__(self, columns: int, width: float = 1.0) -> None:
        super().__init__()
        self.body, out = layers(LIFT, columns, width)
        self.shape = (out,)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]


class Classifier(nn.Module):
    """Features of a row to class scores."""

    def __init__(self, shape: Sequence[int], outputs: int, width: float = 1.0) -> None:
        super().__init__()
        self.trunk, out = layers(TRUNK, shape[0], width)
        self.head = nn.Linear(out, outputs)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.trunk(z))  # type: ignore[no-any-return]


class Estimator(nn.Module):
    """Scores of whether features belong to a row, given the private attribute: TIPRDC's J."""

    def __init__(
        self, columns: int, features: Sequence[int], private: int, width: float = 1.0
    ) -> None:
        super().__init__()
        self.lift, _ = layers(LIFT, columns, width)
        self.trunk, out = layers(TRUNK, features[0], width)
        self.pair = Pair(out, private, scaled(256, width), scaled(64, width))

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        from_x, from_z = self.trunk(torch.cat([self.lift(x), z])).chunk(2)
        return self.pair(from_x, from_z, u)  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """Features to a row again."""

    def __init__(self, columns: int, features: Sequence[int], width: float = 1.0) -> None:
        super().__init__()
        body, out = layers(LIFT[::-1], features[0], width)
        self.body = nn.Sequential(body, nn.Linear(out, columns))

    def forward(self, z: Tensor) -> Tensor:
        return self.body(z)  # type: ignore[no-any-return]
