"""The deep network for vectors, and the standardised input that every attacking network starts
with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.view import View
from privet.nets.convolutions import prepare, scaled

# Added to a variance. Far below what batch normalisation adds: what is released small is released
# all the same.
EPSILON = 1e-10
# Deviations from the mean at which a value is cut: a channel that hardly varied in training must
# not drown the others.
CUT = 30.0
# Least weight of a new batch in the mean and variance; before that, all batches weigh the same.
SLOWEST = 0.01


class StandardisedInput(nn.Module):
    """(z - mean) / deviation of every channel, from the records seen in training; bytes are
    pictures and become [-1, 1].

    A released record may have any scale and offset, and in bfloat16 a large offset rounds the rest
    away. Unlike batch normalisation this is the same function in training and afterwards. `z` is
    (records, channels) or (records, channels, ...); `where`, (records, positions), leaves the
    padding of texts out.
    """

    mean: Tensor
    variance: Tensor
    batches: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, z: Tensor, where: Tensor | None = None) -> Tensor:
        if z.dtype == torch.uint8:
            return prepare(z)
        z = z.float()
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = self._learn(z.detach(), where)
        shape = (1, -1, *(1,) * (z.dim() - 2))
        return ((z - mean.view(shape)) * (variance + EPSILON).rsqrt().view(shape)).clamp(-CUT, CUT)

    def _learn(self, z: Tensor, where: Tensor | None) -> tuple[Tensor, Tensor]:
        axes = [axis for axis in range(z.dim()) if axis != 1]
        if where is None:
            variance, mean = torch.var_mean(z, axes, correction=0)
        else:
            weight = where.unsqueeze(1) / where.sum().clamp(min=1)
            mean = (z * weight).sum(axes)
            variance = ((z - mean[:, None]).square() * weight).sum(axes)
        self.batches += 1
        share = self.batches.reciprocal().clamp(min=SLOWEST)
        # What this step uses are new tensors: its backward pass still needs them when the next step
        # has moved the buffers.
        mean, variance = self.mean.lerp(mean, share), self.variance.lerp(variance, share)
        self.mean.copy_(mean)
        self.variance.copy_(variance)
        return mean, variance


class Dropout(nn.Module):
    """Sets numbers to zero at random. The share is rounded to 1 / 256, so that one draw of 64 bits
    serves eight of them on a CPU: one by one they would take a quarter of the time of a step."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.kept = round(256 * (1 - share))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.kept == 256:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, 1 - self.kept / 256)
        mask = dropout_mask(x.shape, self.kept, torch.default_generator)
        return x * mask.to(x.dtype).mul_(256 / self.kept)


def dropout_mask(shape: Sequence[int], kept: int, generator: torch.Generator) -> Tensor:
    """True for `kept` of 256 on average, on the device of the generator."""
    count = math.prod(shape)
    drawn = torch.empty((count + 7) // 8, dtype=torch.int64, device=generator.device)
    drawn.random_(-(2**63), None, generator=generator)
    return drawn.view(torch.uint8)[:count].view(*shape) < kept


class ResidualBlock(nn.Module):
    """x + W2 dropout(GELU(W1 norm(x)))."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, 2 * size),
            nn.GELU(),
            Dropout(dropout),
            nn.Linear(2 * size, size),
            Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class ResidualMLP(NetworkAdversary):
    """A residual multi-layer perceptron on vectors, after Gorishniy and others, "Revisiting deep
    learning models for tabular data" (2021). Settings of training are those of `NetworkAdversary`.

    Parameters:
        steps: How many residual blocks.
        size: Units between blocks.
        dropout: Share of units that are left out in training.
    """

    steps: int = 3
    size: int = 256
    dropout: float = 0.15
    name: ClassVar[str] = "network"
    title: ClassVar[str] = "deep network"

    def takes(self, view: View) -> bool:
        return view.is_vector

    def build(self, view: View, outputs: int) -> nn.Module:
        columns = view.shape[0]
        assert columns is not None, "takes() lets vectors pass only"
        # Few numbers need few units: of one number there is little to compute.
        size = max(16, scaled(min(self.size, 64 * columns), self.width))
        first = nn.Sequential(nn.Linear(columns, size), nn.GELU())
        blocks = [ResidualBlock(size, self.dropout) for _ in range(self.steps)]
        last = nn.LayerNorm(size), nn.Linear(size, outputs)
        return nn.Sequential(StandardisedInput(columns), first, *blocks, *last)
