"""Veil's networks for codes that keep their places: maps of a few numbers for every patch.

    z: (channels, places, places), laid flat      x~ = D(z, u)

A vector of numbers has to say where everything is, and of few records it learns that badly: a
mouth that it saw here is another mouth two pixels further. Convolutions know it everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.nets.convolutions import scaled
from privet.nets.resnet import Block

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}
# Channels from full size on; coarser levels have those of the last.
CHANNELS = (64, 128, 256)
# Residual blocks at the size of the code, where a network sees whole records.
DEEP = 3


def sizes_of(shape: Sequence[int], places: int) -> list[tuple[int, ...]]:
    """The sizes of a record's maps, from its own down to about so many places a side.

    >>> sizes_of((3, 64, 64), 16)
    [(64, 64), (32, 32), (16, 16)]
    >>> sizes_of((6, 64), 8)[-1]
    (8,)
    """
    _, *size = shape
    levels = max(0, round(math.log2(min(size) / places)))
    return [tuple(math.ceil(s / 2**level) for s in size) for level in range(levels + 1)]


def _widths(levels: int, width: float) -> list[int]:
    return [scaled(CHANNELS[min(level, len(CHANNELS) - 1)], width) for level in range(levels)]


class PlacedEncoder(nn.Module):
    """A record and u to the mean and the log variance of every number of its code.

    Parameters:
        shape: Of a record.
        values: Length of u: one number for every value of every private attribute.
        dims: Numbers in the code: a multiple of its places.
        width: Factor on all layer sizes.
        places: Places a side.
    """

    def __init__(
        self, shape: Sequence[int], values: int, dims: int, width: float, places: int
    ) -> None:
        super().__init__()
        sizes = sizes_of(shape, places)
        wide, axes = _widths(len(sizes), width), len(sizes[0])
        conv, norm = _CONV[axes], _NORM[axes]
        layers: list[nn.Module] = [
            conv(shape[0] + values, wide[0], 3, padding=1, bias=False),
            norm(wide[0]),
            nn.SiLU(inplace=True),
        ]
        layers += [Block(inside, outside, axes, stride=2) for inside, outside in pairwise(wide)]
        layers += [Block(wide[-1], wide[-1], axes) for _ in range(DEEP)]
        self.body = nn.Sequential(*layers)
        self.head = conv(wide[-1], 2 * dims // math.prod(sizes[-1]), 1)

    def forward(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        planes = u.to(x.dtype).view(*u.shape, *(1,) * (x.dim() - 2))
        joined = torch.cat([x, planes.expand(-1, -1, *x.shape[2:])], 1)
        mean, log_variance = self.head(self.body(joined)).float().chunk(2, dim=1)
        return mean.flatten(1), log_variance.flatten(1)


class PlacedDecoder(nn.Module):
    """A code and u to a picture in [-1, 1] or to a window, doubled level by level."""

    def __init__(
        self,
        shape: Sequence[int],
        values: int,
        dims: int,
        width: float,
        places: int,
        picture: bool,
    ) -> None:
        super().__init__()
        self.sizes = sizes_of(shape, places)[::-1]
        wide, axes = _widths(len(self.sizes), width)[::-1], len(self.sizes[0])
        conv, norm = _CONV[axes], _NORM[axes]
        self.picture, self.channels = picture, dims // math.prod(self.sizes[0])
        self.enter = nn.Sequential(
            conv(self.channels + values, wide[0], 3, padding=1, bias=False),
            norm(wide[0]),
            nn.SiLU(inplace=True),
            *(Block(wide[0], wide[0], axes) for _ in range(DEEP)),
        )
        self.levels = nn.ModuleList(
            nn.Sequential(conv(inside, outside, 3, padding=1, bias=False), norm(outside))
            for inside, outside in pairwise(wide)
        )
        self.told = nn.ModuleList(nn.Linear(values, outside, bias=False) for outside in wide[1:])
        self.out = conv(wide[-1], shape[0], 3, padding=1)

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        x = z.view(-1, self.channels, *self.sizes[0])
        planes = u.to(x.dtype).view(*u.shape, *(1,) * (x.dim() - 2))
        x = self.enter(torch.cat([x, planes.expand(-1, -1, *x.shape[2:])], 1))
        for size, level, told in zip(self.sizes[1:], self.levels, self.told, strict=True):
            shift = told(u)
            x = level(F.interpolate(x, size=size, mode="nearest"))
            x = F.silu(x + shift.view(*shift.shape, *(1,) * len(size)))
        x = self.out(x).float()
        return torch.tanh(x) if self.picture else x
