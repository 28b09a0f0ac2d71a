"""A residual network whose body is the same for every shape of input, so that what it learned from
one serves another.

Basic blocks (He and others, 2016) with the shortcut of ResNet-D (He and others, "Bag of tricks",
2019: average, then 1 x 1), squeeze-and-excitation (Hu and others, 2018) and SiLU. The stem halves
the input until it has about the body's size; signals use the same plan in one dimension. The
shortcuts have no strided 1 x 1 convolution: see oneDNN issue 6035.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.nets.convolutions import scaled

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}
_MEAN = {1: nn.AvgPool1d, 2: nn.AvgPool2d}

# Channels of the body's stages; each but the first halves every axis. The first fits a quarter-size
# map of 128 channels.
BODY = (128, 256, 448)
PER_STAGE = 2
# About how many steps per axis the body starts from, for signals and for maps.
ENTRANCE = {1: 32, 2: 16}
# The stem has at least one of this many of the body's first channels.
NARROWEST = 4


def halvings(size: Sequence[int]) -> int:
    """How often the stem halves an input of this size.

    >>> [halvings((s, s)) for s in (4, 16, 32, 64, 218)]
    [0, 0, 1, 2, 4]
    """
    return max(0, round(math.log2(min(size) / ENTRANCE[len(size)])))


class Block(nn.Module):
    """SiLU(shortcut(x) + excite(conv(SiLU(conv(x)))))."""

    def __init__(self, channels: int, out: int, dims: int, stride: int = 1) -> None:
        super().__init__()
        conv, norm = _CONV[dims], _NORM[dims]
        self.body = nn.Sequential(
            conv(channels, out, 3, stride=stride, padding=1, bias=False),
            norm(out),
            nn.SiLU(inplace=True),
            conv(out, out, 3, padding=1, bias=False),
            norm(out),
        )
        middle = max(4, out // 8)
        self.excite = nn.Sequential(
            nn.Linear(out, middle), nn.SiLU(), nn.Linear(middle, out), nn.Sigmoid()
        )
        shortcut: list[nn.Module] = []
        if stride > 1:
            shortcut.append(_MEAN[dims](stride, ceil_mode=True, count_include_pad=False))
        if channels != out:
            shortcut += [conv(channels, out, 1, bias=False), norm(out)]
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        gate = self.excite(y.flatten(2).mean(2))
        return F.silu(self.shortcut(x) + y * gate.view(*gate.shape, *(1,) * (y.dim() - 2)))


class Stem(nn.Sequential):
    """One convolution at full size, then a block for every halving; channels double towards the
    body's."""

    def __init__(self, shape: Sequence[int], out: int) -> None:
        channels, *size = shape
        dims, times = len(size), halvings(size)
        widths = [out // min(NARROWEST, 2 ** (times - level)) for level in range(times + 1)]
        # Maps of many channels are features already, and are not squeezed before they are looked
        # at.
        widths[0] = max(widths[0], min(channels, out))
        first = _CONV[dims](channels, widths[0], 3, padding=1, bias=False)
        layers: list[nn.Module] = [first, _NORM[dims](widths[0]), nn.SiLU(inplace=True)]
        layers += [Block(inside, outside, dims, stride=2) for inside, outside in pairwise(widths)]
        super().__init__(*layers)


class ResNet(nn.Module):
    """Maps (channels, height, width) or signals (channels, time) -> outputs."""

    def __init__(
        self, shape: Sequence[int], outputs: int, width: float = 1.0, dropout: float = 0.2
    ) -> None:
        super().__init__()
        dims, sizes = len(shape) - 1, [scaled(size, width) for size in BODY]
        self.stem = Stem(shape, sizes[0])
        blocks: list[nn.Module] = []
        inside = sizes[0]
        for stage, size in enumerate(sizes):
            for place in range(PER_STAGE):
                blocks.append(Block(inside, size, dims, stride=2 if stage and not place else 1))
                inside = size
        self.body = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(inside, outputs))

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.body(self.stem(z)).flatten(2).mean(2))  # type: ignore[no-any-return]


class Jitter(nn.Module):
    """Pictures mirrored at random and shifted by up to `reach` pixels, with the border repeated; in
    training only."""

    def __init__(self, reach: int, mirror: bool = True) -> None:
        super().__init__()
        self.reach, self.mirror = reach, mirror

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        n, _, height, width = x.shape
        rows, columns = self._moved(n, height, x.device), self._moved(n, width, x.device)
        if self.mirror:
            turned = torch.rand(n, 1, device=x.device) < 0.5
            columns = torch.where(turned, width - 1 - columns, columns)
        record = torch.arange(n, device=x.device)[:, None, None]
        return x.permute(0, 2, 3, 1)[record, rows[:, :, None], columns[:, None, :]].permute(
            0, 3, 1, 2
        )

    def _moved(self, n: int, size: int, device: torch.device) -> Tensor:
        """Where each row or column of the result is taken from."""
        by = torch.randint(-self.reach, self.reach + 1, (n, 1), device=device)
        return (torch.arange(size, device=device) + by).clamp(0, size - 1)
