"""Networks for pictures and signals, after TIPRDC's Tables 1 and 3 (KDD 2020). Signals use the same
plan in one dimension.

`width` scales every channel count, for small machines; 1.0 is the published size. The tables name
convolutions and pooling only; batch normalisation follows every convolution here, without which the
deep classifiers do not train from scratch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}
_POOL = {1: nn.MaxPool1d, 2: nn.MaxPool2d}
_MODE = {1: "linear", 2: "bilinear"}

# Feature extractor: 2 x conv3-64, pool, 2 x conv3-128, pool.
LIFT = ((2, 64), (2, 128))
LIFT_OF_ESTIMATOR = ((3, 64), (2, 128))
# Classifier, and the estimator from the features' depth on; also V-CL#16.
TRUNK = ((3, 256), (3, 512), (3, 512))
# V-CL#19.
TRUNK_19 = ((4, 256), (4, 512), (4, 512))
# Res-CL.
RESIDUAL = (128, 256, 512)
# Steps per axis below which the classifiers' poolings leave nothing.
SMALLEST = 32


def scaled(size: int, width: float) -> int:
    """A channel count times `width`, at least 4."""
    return max(4, round(size * width))


def blocks(
    plan: Sequence[tuple[int, int]], channels: int, dims: int, width: float
) -> tuple[nn.Sequential, int]:
    """Blocks of convolutions, each closed by a pooling that halves every axis; and the channels
    that come out."""
    layers: list[nn.Module] = []
    for convolutions, size in plan:
        for _ in range(convolutions):
            out = scaled(size, width)
            layers += [
                _CONV[dims](channels, out, 3, padding=1, bias=False),
                _NORM[dims](out),
                nn.ReLU(inplace=True),
            ]
            channels = out
        layers.append(_POOL[dims](2))
    return nn.Sequential(*layers), channels


def halved(size: Sequence[int], times: int) -> tuple[int, ...]:
    return tuple(s // 2**times for s in size)


def prepare(x: Tensor) -> Tensor:
    """Pictures arrive as bytes and leave in [-1, 1]; signals were standardised by their schema."""
    return x.float() / 127.5 - 1.0 if x.dtype == torch.uint8 else x


class Extractor(nn.Module):
    """x -> z: feature maps a quarter of the size."""

    def __init__(self, shape: Sequence[int], width: float = 1.0) -> None:
        super().__init__()
        channels, *size = shape
        if min(size) < SMALLEST:
            raise PrivetError(
                f"The networks need at least {SMALLEST} steps per axis, and these records have"
                f" {'x'.join(map(str, size))}."
            )
        self.body, out = blocks(LIFT, channels, len(size), width)
        self.shape = (out, *halved(size, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(prepare(x))  # type: ignore[no-any-return]


class Trunk(nn.Module):
    """Feature maps to one long vector."""

    def __init__(
        self, shape: Sequence[int], width: float, plan: Sequence[tuple[int, int]] = TRUNK
    ) -> None:
        super().__init__()
        channels, *size = shape
        if min(size) < 2 ** len(plan):
            plan = plan[: max(1, int(math.log2(min(size))))]
        self.body, out = blocks(plan, channels, len(size), width)
        self.features = out * math.prod(halved(size, len(plan)))

    def forward(self, z: Tensor) -> Tensor:
        return self.body(z).flatten(1)  # type: ignore[no-any-return]


class Classifier(nn.Module):
    """z -> classes: Table 1's classifier (also V-CL#16), or V-CL#19 with `plan=TRUNK_19`."""

    def __init__(
        self,
        shape: Sequence[int],
        outputs: int,
        width: float = 1.0,
        plan: Sequence[tuple[int, int]] = TRUNK,
    ) -> None:
        super().__init__()
        self.trunk = Trunk(shape, width, plan)
        hidden = scaled(4096, width)
        self.head = nn.Sequential(
            nn.Linear(self.trunk.features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.trunk(z))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Two convolutions and a way around them; the first has stride 2."""

    def __init__(self, channels: int, out: int, dims: int) -> None:
        super().__init__()
        conv, norm = _CONV[dims], _NORM[dims]
        self.body = nn.Sequential(
            conv(channels, out, 3, stride=2, padding=1, bias=False),
            norm(out),
            nn.ReLU(inplace=True),
            conv(out, out, 3, padding=1, bias=False),
            norm(out),
        )
        self.way_around = nn.Sequential(conv(channels, out, 1, bias=False), norm(out))

    def forward(self, x: Tensor) -> Tensor:
        # Every second step, then a plain 1 x 1: the same as stride 2, whose gradient on a CPU
        # writes past its memory for fewer than 16 channels stored last (oneDNN issue 6035).
        every_second = x[..., ::2] if x.dim() == 3 else x[..., ::2, ::2]
        return F.relu(self.body(x) + self.way_around(every_second))


class ResidualClassifier(nn.Module):
    """z -> classes: Table 3's Res-CL. Each step halves the maps; whole pictures and signals need
    more of them."""

    def __init__(
        self,
        shape: Sequence[int],
        outputs: int,
        width: float = 1.0,
        steps: Sequence[int] = RESIDUAL,
    ) -> None:
        super().__init__()
        channels, *size = shape
        layers: list[nn.Module] = []
        for step in steps:
            out = scaled(step, width)
            layers.append(Residual(channels, out, len(size)))
            channels = out
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels, outputs)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.body(prepare(z)).flatten(2).mean(2))  # type: ignore[no-any-return]


class Estimator(nn.Module):
    """Scores (x, z, u) as belonging together, and (x', z, u) as not, x' being the next record of
    the batch.

    x passes the extractor's plan, then x and z share one trunk; the private attribute joins after
    it. The first fully connected layer is linear in each of its three inputs, so x is lifted once
    and shifted afterwards.
    """

    def __init__(
        self, shape: Sequence[int], features: Sequence[int], private: int, width: float = 1.0
    ) -> None:
        super().__init__()
        channels, *size = shape
        self.lift, _ = blocks(LIFT_OF_ESTIMATOR, channels, len(size), width)
        self.trunk = Trunk(features, width)
        self.pair = Pair(self.trunk.features, private, scaled(4096, width), scaled(512, width))

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        from_x, from_z = self.trunk(torch.cat([self.lift(prepare(x)), z])).chunk(2)
        return self.pair(from_x, from_z, u)  # type: ignore[no-any-return]


class Pair(nn.Module):
    """fc on [x, z, u], then fc, then one score; for the matching pair and for the shifted one."""

    def __init__(self, features: int, private: int, first: int, second: int | None = None) -> None:
        super().__init__()
        self.of_x, self.of_z = nn.Linear(features, first), nn.Linear(features, first, bias=False)
        self.of_u = nn.Linear(private, first, bias=False)
        deeper = [nn.Linear(first, second), nn.ReLU()] if second else []
        self.score = nn.Sequential(nn.ReLU(), *deeper, nn.Linear(second or first, 1))

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        of_x, rest = self.of_x(x), self.of_z(z) + self.of_u(u)
        together, apart = (
            self.score(torch.cat([of_x + rest, of_x.roll(1, 0) + rest])).squeeze(1).chunk(2)
        )
        return together, apart


class Decoder(nn.Module):
    """z -> x: the extractor reversed. Pictures come out in 0..255."""

    def __init__(
        self,
        shape: Sequence[int],
        features: Sequence[int],
        width: float = 1.0,
        picture: bool = True,
    ) -> None:
        super().__init__()
        channels, *size = shape
        self.sizes, self.mode, self.picture = (
            (halved(size, 1), tuple(size)),
            _MODE[len(size)],
            picture,
        )
        conv, norm = _CONV[len(size)], _NORM[len(size)]
        wide, narrow = scaled(128, width), scaled(64, width)

        def twice(inside: int, middle: int, outside: nn.Module) -> nn.Sequential:
            return nn.Sequential(
                conv(inside, middle, 3, padding=1), norm(middle), nn.ReLU(inplace=True), outside
            )

        self.first = twice(
            features[0],
            wide,
            nn.Sequential(conv(wide, narrow, 3, padding=1), norm(narrow), nn.ReLU(inplace=True)),
        )
        self.second = twice(narrow, narrow, conv(narrow, channels, 3, padding=1))

    def forward(self, z: Tensor) -> Tensor:
        half = self.first(F.interpolate(z, size=self.sizes[0], mode=self.mode))
        x = self.second(F.interpolate(half, size=self.sizes[1], mode=self.mode))
        return 255.0 * torch.sigmoid(x.float()) if self.picture else x
