"""A release that is one affine map of low rank: z = x - ((x - mean) down) up, on the record laid
flat, on a fixed grid.

A difference of two large terms leaves their rounding behind, and in a coordinate that is taken out
completely that rounding would be all there is: a trace of x for whoever looks closely. So the map
is computed in float64 and rounded to steps that are as fine as float32 and a million times coarser
than its own error. What is released is then a function of the exact z and of nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.convolutions import prepare

# Steps between released values, next to the deviation of their coordinate.
STEP = 2.0**-22


class Affine(nn.Module):
    """The identity until it is filled."""

    mean: Tensor
    down: Tensor
    up: Tensor
    step: Tensor

    def __init__(self, shape: Sequence[int | None], rank: int) -> None:
        super().__init__()
        self.shape = tuple(axis or 0 for axis in shape)
        size = math.prod(self.shape)
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("down", torch.zeros(size, rank, dtype=torch.float64))
        self.register_buffer("up", torch.zeros(rank, size, dtype=torch.float64))
        self.register_buffer("step", torch.full((size,), STEP, dtype=torch.float64))

    def fill(self, mean: Tensor, down: Tensor, up: Tensor, deviation: Tensor) -> Affine:
        """Use this map, for records whose coordinates have this deviation; where it is 0, it is
        taken for 1."""
        step = STEP * torch.where(deviation > 0, deviation, 1.0).log2().floor().exp2()
        for buffer, value in (
            (self.mean, mean),
            (self.down, down),
            (self.up, up),
            (self.step, step),
        ):
            buffer.copy_(value)
        return self

    def forward(self, x: Tensor) -> Tensor:
        centred = flat(x) - self.mean
        left = centred - (centred @ self.down) @ self.up
        return (
            (self.mean + self.step * torch.round(left / self.step)).float().reshape(-1, *self.shape)
        )


def flat(x: Tensor) -> Tensor:
    """Records as rows of float64: windows and pictures laid flat, bytes in [-1, 1]."""
    return prepare(x).flatten(1).double()


def affine(schema: Schema, rank: int = 1) -> Affine:
    """For records of `schema`."""
    return Affine(schema.shape, rank)
