"""Sanitizers: a record to a record of the same form.

    S(x, noise) = (1 - m) x + m t

with a gate m in (0, 1) and a replacement t, both from one network of x and, where it is random, of
noise.

Pictures stay in [-1, 1], since x and t = tanh(.) do, and no gradient is cut off as by clamping; m
says how much of each place is replaced. The gate starts nearly shut, so that learning starts from
the record itself. Pictures and windows pass a small U-Net (Ronneberger, Fischer and Brox, MICCAI
2015) whose normalisation is per record: what is released of one record never depends on another.
Rows pass the residual layers of nets/code.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.data.schema import ImageSchema, Schema, TableSchema
from privet.nets.code import Rows
from privet.nets.convolutions import prepare, scaled
from privet.nets.norm import GroupNorm

# Channels per level at width 1; each level but the first halves every axis.
LEVELS = (32, 64, 128)
# Noise beside a row: so many numbers. Pictures and windows get one more channel of noise, at full
# size.
COLUMNS = 8
# Where the gate starts, before the sigmoid: a twentieth open.
SHUT = -3.0
GROUPS = 4

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
_MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d}


class Sanitizer(nn.Module):
    """A record to a record of the same form, with a gate between the two.

    Parameters:
        schema: Of the records.
        width: Of all layers; 1 is the largest.
        stochastic: Whether it takes noise as a second input.
    """

    def __init__(self, schema: Schema, width: float = 1.0, stochastic: bool = False) -> None:
        super().__init__()
        self.shape = schema.shape
        self.picture, self.stochastic = isinstance(schema, ImageSchema), stochastic
        shape = cast(Sequence[int], schema.shape)
        if isinstance(schema, TableSchema):
            self.body: nn.Module = Rows(
                shape[0] + (COLUMNS if stochastic else 0), 2 * shape[0], width, 0.0
            )
            last = cast(nn.Linear, self.body.last[-1])
        else:
            self.body = Maps(shape, 2 * shape[0], width, extra=int(stochastic))
            last = cast(nn.Linear, self.body.last)
        with torch.no_grad():
            assert last.bias is not None
            last.bias[: shape[0]] = SHUT

    @staticmethod
    def noise_shape(schema: Schema) -> tuple[int, ...]:
        """Shape per record of the unit noise that a stochastic sanitizer takes."""
        shape = cast(Sequence[int], schema.shape)
        return (COLUMNS,) if isinstance(schema, TableSchema) else (1, *shape[1:])

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        x = prepare(x)
        gate, new = (
            self.body(x if noise is None else torch.cat([x, noise.to(x.dtype)], dim=1))
            .float()
            .chunk(2, dim=1)
        )
        m = torch.sigmoid(gate)
        return (1 - m) * x + m * (torch.tanh(new) if self.picture else new)


class Maps(nn.Module):
    """Maps (n, channels + extra, ...) to (n, outputs, ...) of the same size, in one dimension or
    two."""

    def __init__(self, shape: Sequence[int], outputs: int, width: float, extra: int = 0) -> None:
        super().__init__()
        channels, *size = shape
        if min(size) < 2 ** len(LEVELS):
            raise PrivetError(
                f"A sanitizer needs at least {2 ** len(LEVELS)} steps per axis, and these records"
                f" have {min(size)}."
            )
        self.dims = len(size)
        levels = [GROUPS * max(1, scaled(level, width) // GROUPS) for level in LEVELS]
        inside = [channels + extra, *levels[:-1]]
        self.down = nn.ModuleList(
            [_twice(a, b, self.dims) for a, b in zip(inside, levels, strict=True)]
        )
        pairs = list(pairwise(levels))
        self.up = nn.ModuleList(
            [_twice(below + beside, beside, self.dims) for beside, below in reversed(pairs)]
        )
        self.last = _CONV[self.dims](levels[0], outputs, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        beside = [self.down[0](x)]
        for block in self.down[1:]:
            beside.append(block(_MEAN[self.dims](beside[-1], 2)))
        h = beside.pop()
        for block in self.up:
            across = beside.pop()
            h = block(
                torch.cat([across, F.interpolate(h, size=across.shape[2:], mode="nearest")], dim=1)
            )
        return self.last(h)  # type: ignore[no-any-return]


def _twice(inside: int, outside: int, dims: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        layers += [
            _CONV[dims](channels, outside, 3, padding=1, bias=False),
            GroupNorm(GROUPS, outside),
            nn.SiLU(),
        ]
    return nn.Sequential(*layers)
