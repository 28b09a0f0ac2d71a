"""What describes a record before anything is learned: edges, colours and contrast of a picture, the
frequencies of a window, the numbers of a row.

Of a picture: how much edge of each orientation there is at each of 16 x 16 places, divided by the
edges around it, as in histograms of oriented gradients (Dalal and Triggs, CVPR 2005); colours at
8 x 8 places; brightness at 32 x 32 places, less that around it and in its deviation. Only
convolutions, so that a browser runs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.schema import ImageSchema, Schema, SignalSchema
from privet.nets.contrast_within import ContrastWithin

# Pixels a side that pictures are brought to, and of a place of edges and of colours.
SIDE, EDGES, COLOURS = 64, 4, 8
ORIENTATIONS = 12
# Power to which the agreement of an edge with an orientation is taken, so that it counts for the
# nearest ones.
SHARPNESS = 4
# Places around one whose edges, or whose brightness, it is compared with.
AROUND_EDGES, AROUND_LIGHT = 3, 9
# What edges, colours and contrast count for, alone and beside learned features.
ALONE = (1.0, 0.6, 0.5)
BESIDE = (0.7, 0.4, 0.4, 1.0)
TINY = 1e-8


class PictureDescriptors(nn.Module):
    """Edges, colours and contrast of pictures in [-1, 1], and learned features where asked for.

    Parameters:
        shape: Of a picture: channels, height, width.
        learned: Whether there are learned features as well.
        width: Factor on the layer sizes of the network that learns them.
    """

    def __init__(self, shape: Sequence[int], learned: bool, width: float) -> None:
        super().__init__()
        self.channels = shape[0]
        self.learned = ContrastWithin(shape, width) if learned else None
        places = [(SIDE // size) ** 2 for size in (EDGES, COLOURS, 2)]
        sizes = [ORIENTATIONS * places[0], self.channels * places[1], places[2]]
        self.sizes = sizes if self.learned is None else [*sizes, self.learned.dims]
        self.weights = ALONE if self.learned is None else BESIDE

    def forward(self, x: Tensor) -> Tensor:
        fixed = resized(x.float())
        light = fixed.mean(1, keepdim=True)
        parts = [edges(light / 2), 2 * F.avg_pool2d(fixed, COLOURS), contrast(light / 2)]
        if self.learned is not None:
            parts.append(self.learned(x))
        return torch.cat([part.float().flatten(1) for part in parts], 1)


class WindowDescriptors(nn.Module):
    """Mean and amplitudes of the frequencies of every channel of a window."""

    turns: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        channels, steps = shape
        angles = torch.outer(torch.arange(steps), torch.arange(1, steps // 2 + 1)) / steps
        waves = [(2 * math.pi * angles).cos(), (2 * math.pi * angles).sin()]
        self.register_buffer("turns", torch.cat(waves, 1) / math.sqrt(steps))
        self.sizes, self.weights = [channels * (1 + steps // 2)], (1.0,)

    def forward(self, x: Tensor) -> Tensor:
        cosine, sine = (x.float() @ self.turns).chunk(2, dim=2)
        size = (cosine.square() + sine.square() + TINY).sqrt()
        return torch.cat([x.float().mean(2, keepdim=True), size], 2).flatten(1)


class RowDescriptors(nn.Module):
    """The encoded numbers of a row."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.sizes, self.weights = [columns], (1.0,)

    def forward(self, x: Tensor) -> Tensor:
        return x.float().flatten(1)


def descriptors_of(schema: Schema, learned: bool, width: float) -> nn.Module:
    """What describes records of this schema: a module with the sizes of its parts and what each
    counts for."""
    shape = cast(Sequence[int], schema.shape)
    if isinstance(schema, ImageSchema):
        return PictureDescriptors(shape, learned, width)
    if isinstance(schema, SignalSchema):
        return WindowDescriptors(shape)
    return RowDescriptors(shape[0])


def resized(x: Tensor) -> Tensor:
    """Pictures of 64 x 64, whatever their size."""
    smaller = min(x.shape[2:]) // SIDE
    if smaller > 1:
        x = F.avg_pool2d(x, smaller)
    if tuple(x.shape[2:]) != (SIDE, SIDE):
        x = F.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return x


def edges(light: Tensor) -> Tensor:
    """How much edge of each orientation every place has, beside those around it."""
    framed = F.pad(light, (1, 1, 1, 1), mode="replicate")
    right = framed[:, :, 1:-1, 2:] - framed[:, :, 1:-1, :-2]
    down = framed[:, :, 2:, 1:-1] - framed[:, :, :-2, 1:-1]
    angles = torch.arange(ORIENTATIONS, device=light.device) * (2 * math.pi / ORIENTATIONS)
    along = right * angles.cos().view(1, -1, 1, 1) + down * angles.sin().view(1, -1, 1, 1)
    along = torch.relu(along)
    strength = (right * right + down * down + TINY).sqrt()
    found = F.avg_pool2d(along * (along / strength) ** SHARPNESS, EDGES)
    near = average_around((found * found).sum(1, keepdim=True), AROUND_EDGES).sqrt()
    return (found / (near + 0.01) + 1e-6).sqrt()


def contrast(light: Tensor) -> Tensor:
    """Brightness of 2 x 2 pixels less that around them, in its deviation there."""
    coarse = F.avg_pool2d(light, 2)
    apart = coarse - average_around(coarse, AROUND_LIGHT)
    return apart / (average_around(apart * apart, AROUND_LIGHT) + 1e-3).sqrt()


def average_around(x: Tensor, size: int) -> Tensor:
    """The mean of the places around each, as far as the picture goes."""
    return F.avg_pool2d(x, size, 1, size // 2, count_include_pad=False)
