"""Local differential privacy of bounded numbers: clipped, scaled to 0..1, Laplace noise on each,
and back to their own scale.

    v = (clip(f(x), low, high) - low) / (high - low)
    z = low + (high - low) * step * round((v + b n) / step)

n is unit Laplace noise, fresh for every number. Two records that differ in one number give any z
with probabilities within a factor e^(1/b) of each other, and numbers add up (Dwork, McSherry,
Nissim and Smith, Calibrating noise to sensitivity, TCC 2006). Rounding comes after the noise, so it
costs nothing.

It is there for the last bits, in which a sum of floats keeps a trace of both summands (Mironov, On
significance of the least significant bits for differential privacy, CCS 2012). The sum is computed
in float64, and steps are coarser than Additive's: noise that comes as float32 has about 100,000
values in each of them where it is as large as b, so that all are filled evenly, for thousands of
numbers at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.additive import Additive
from privet.nets.noise_grid import grid_step
from privet.nets.record import Record

# Steps within one scale of the noise, or up to twice as many.
STEPS = 64


class Laplace(Additive):
    """A network with Laplace noise on bounded numbers."""

    low: Tensor
    span: Tensor
    grain: Tensor

    def __init__(self, body: nn.Module, scale: float) -> None:
        """`scale` is b, the noise on numbers between 0 and 1. Their limits are -1 and 1 until
        `bound` sets others."""
        super().__init__(body, scale)
        shape = tuple(size or 1 for size in cast(Sequence[int | None], self.shape))
        self.register_buffer("grain", torch.tensor(grid_step(scale, STEPS)))
        self.register_buffer("low", torch.full(shape, -1.0))
        self.register_buffer("span", torch.full(shape, 2.0))

    def bound(self, low: Sequence[float] | Tensor, high: Sequence[float] | Tensor) -> Laplace:
        """Clip to these limits, one pair for each number of the record laid flat."""
        ends = [
            torch.as_tensor(end, device=self.low.device).reshape(self.low.shape)
            for end in (low, high)
        ]
        self.low.copy_(ends[0])
        self.span.copy_(ends[1] - ends[0])
        return self

    def drown(self, code: Tensor, noise: Tensor, x: Tensor) -> Tensor:
        share = ((code.float() - self.low) / self.span).clamp(0, 1)
        steps = torch.round((share.double() + self.scale * noise.double()) / self.grain)
        return self.low + self.span * (self.grain * steps).float()

    @property
    def step(self) -> float:
        return float(self.span.max() * self.grain)


def private_record(schema: Schema, scale: float) -> Laplace:
    """The record with Laplace noise on every value."""
    return Laplace(Record(schema.shape), scale)
