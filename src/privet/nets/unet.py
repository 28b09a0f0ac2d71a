"""U-Nets: one that marks what is where in a picture, and small ones that say how much noise each
place of it can bear.

Halve and double the channels, then the other way round, with every level's maps handed across
(Ronneberger, Fischer and Brox, U-Net, MICCAI 2015). Maps are brought to the size of those they
meet, so that any height and width will do.

    z = x + loud * m(x) * noise,    m(x) = sigmoid(N(x)) in (0, 1), one value per place

is U-Noise's release (methods/unoise.py); N is a U-Net of two, three or four levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, unknown
from privet.data.schema import Schema
from privet.nets.convolutions import prepare, scaled

# Channels per level of the network that makes noise maps; the published sizes (Koker and others,
# 2021).
SIZES = {"small": (16, 32), "medium": (16, 32, 64), "large": (16, 32, 64, 128)}
# Channels per level of a network that marks an object, at width 1.
SEGMENTER = (32, 64, 128, 256)
# The map's logit before anything is learned: an eighth of the loudest noise.
QUIET = -2.0
# Releases are rounded to multiples of this: finer than noise that hides anything, and coarser than
# what floats resolve.
STEP = 2.0**-14


class UNet(nn.Module):
    """Pictures (n, channels, height, width) -> (n, outputs, height, width)."""

    def __init__(self, shape: Sequence[int], outputs: int, levels: Sequence[int]) -> None:
        super().__init__()
        channels, *size = shape
        least = 2 ** len(levels)
        if min(size) < least:
            raise PrivetError(
                f"A U-Net of {len(levels)} levels needs pictures of at least {least} pixels a side,"
                f" not {min(size)}."
            )
        self.down = nn.ModuleList(
            [_convolutions(inside, outside) for inside, outside in pairwise((channels, *levels))]
        )
        self.up = nn.ModuleList(
            [
                _convolutions(below + beside, beside)
                for beside, below in reversed(list(pairwise(levels)))
            ]
        )
        self.last = nn.Conv2d(levels[0], outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        beside = [self.down[0](x)]
        for block in self.down[1:]:
            beside.append(block(F.max_pool2d(beside[-1], 2)))
        h = beside.pop()
        for block in self.up:
            across = beside.pop()
            h = block(
                torch.cat([across, F.interpolate(h, size=across.shape[2:], mode="nearest")], dim=1)
            )
        return self.last(h)  # type: ignore[no-any-return]

    @property
    def deepest(self) -> nn.Module:
        """The layer with the fewest places, which has seen most of the picture: where Grad-CAM
        looks."""
        return self.down[-1]


def _convolutions(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        layers += [
            nn.Conv2d(channels, outside, 3, padding=1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


def segmenter(shape: Sequence[int], width: float = 1.0) -> UNet:
    """Pictures in [-1, 1] to one score per place, above 0 where the object is."""
    return UNet(shape, 1, [scaled(size, width) for size in SEGMENTER])


class NoiseMap(nn.Module):
    """A picture and unit noise to a picture with as much noise at every place as the map says."""

    loud: Tensor

    def __init__(self, shape: Sequence[int], size: str = "small", loud: float = 1.0) -> None:
        super().__init__()
        if size not in SIZES:
            raise unknown("size of unoise", size, SIZES)
        self.shape = tuple(shape)
        self.body = UNet(shape, 1, SIZES[size])
        # Quiet at first: a service that is drowned from the start cannot say which pixels it would
        # need.
        nn.init.constant_(self.body.last.bias, QUIET)  # type: ignore[arg-type]
        self.register_buffer("loud", torch.tensor(float(loud)))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        x = prepare(x)
        # On a grid, because the sum of two floats keeps a trace of both in its last bits
        # (nets/additive.py).
        return torch.round(self.drown(x, self.map(x), noise) / STEP) * STEP

    def logits(self, x: Tensor) -> Tensor:
        """The map before the sigmoid, (n, 1, height, width), of pictures in [-1, 1]."""
        found: Tensor = self.body(x)
        return found.float()

    def map(self, x: Tensor) -> Tensor:
        """How much of the loudest noise each place gets, from 0 to 1."""
        return torch.sigmoid(self.logits(x))

    def drown(self, x: Tensor, share: Tensor, noise: Tensor) -> Tensor:
        return x + self.loud * share * noise


def noise_map(schema: Schema, size: str, loud: float) -> NoiseMap:
    """For pictures of `schema`."""
    return NoiseMap(cast(Sequence[int], schema.shape), size, loud)
