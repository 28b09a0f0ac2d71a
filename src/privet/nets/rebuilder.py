"""Networks that rebuild a record from a released one of any shape: larger than the extractor
reversed, and not tied to it.

They take floats (pictures in -1..1) or word ids. Released numbers are standardised with the
statistics of *attack* first, so that what a release hides in small numbers is seen. Every network
starts at the mean record: what it is sure of without looking.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.schema import Schema, TextSchema
from privet.nets.convolutions import scaled
from privet.nets.norm import GroupNorm
from privet.nets.sequences import present

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
# Steps per axis of the coarsest maps; released maps with fewer are read as one vector.
SMALLEST = 4
WIDEST = 512
# Deviation beside the mean below which a float32 holds nothing but rounding.
RESOLUTION = 1e-7


class Standard(nn.Module):
    """Mean 0 and deviation 1 on *attack*, for every channel of maps, element of a word's vector, or
    coordinate of a vector."""

    def __init__(self, size: int, axis: int = 1, flat: bool = False) -> None:
        super().__init__()
        self.axis, self.flat = axis, flat
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def learn(self, batches: Iterable[Tensor]) -> None:
        """Sums in float64, over the words that are there where records are texts."""
        total, squares = (
            torch.zeros_like(self.mean, dtype=torch.float64),
            torch.zeros_like(self.mean, dtype=torch.float64),
        )
        count = 0
        for z in batches:
            rows = (
                z[present(z)]
                if self.axis == 2
                else (z.flatten(1) if self.flat else z.movedim(1, -1).flatten(0, -2))
            )
            rows = rows.double().nan_to_num()
            count, total, squares = (
                count + len(rows),
                total + rows.sum(0),
                squares + rows.square().sum(0),
            )
        mean = total / max(count, 1)
        deviation = (squares / max(count, 1) - mean.square()).clamp(min=0).sqrt()
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > RESOLUTION * mean.abs(), deviation, 1.0))

    def forward(self, z: Tensor) -> Tensor:
        z = z.flatten(1) if self.flat else z
        shape = [1] * z.dim()
        shape[self.axis] = -1
        return (z.nan_to_num() - self.mean.view(shape)) / self.scale.view(shape)


class Block(nn.Module):
    """Two convolutions beside a way around them, normalised before and not after (He and others,
    ECCV 2016, 630-645)."""

    def __init__(self, inside: int, outside: int, dims: int) -> None:
        super().__init__()
        conv = _CONV[dims]
        self.body = nn.Sequential(
            _norm(inside),
            nn.SiLU(),
            conv(inside, outside, 3, padding=1),
            _norm(outside),
            nn.SiLU(),
            _silent(conv(outside, outside, 3, padding=1)),
        )
        self.way_around = conv(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.way_around(x) + self.body(x)  # type: ignore[no-any-return]


class Ladder(nn.Module):
    """Released maps or vectors -> pictures (in 0..255) or signals.

    Level j holds maps 2^j times smaller than the record. Maps enter at the level of their size and
    go down to the coarsest, where every place sees every other; vectors enter there. Then up to
    level 0, past what was seen on the way down (Ronneberger and others, MICCAI 2015, 234-241).
    Going up, maps are repeated and then convolved, which leaves no checkerboard (Odena and others,
    Distill 2016). A straight way from released maps to the record lies beside all that.
    """

    def __init__(
        self,
        record: Sequence[int],
        released: Sequence[int],
        width: float,
        picture: bool,
        mean: Tensor,
    ) -> None:
        super().__init__()
        channels, *size = record
        dims, conv = len(size), _CONV[len(size)]
        deepest = max(0, int(math.log2(min(size) / SMALLEST))) if min(size) >= SMALLEST else 0
        self.picture = picture
        self.sizes = [tuple(math.ceil(s / 2**level) for s in size) for level in range(deepest + 1)]
        wide = [scaled(min(WIDEST, 64 * 2**level), width) for level in range(deepest + 1)]
        self.as_maps = len(released) == len(record) and min(released[1:]) >= SMALLEST
        if self.as_maps:
            smaller = min(s / r for s, r in zip(size, released[1:], strict=True))
            self.level = min(deepest, max(0, int(math.log2(smaller)))) if smaller >= 1 else 0
            self.standard = Standard(released[0])
            self.enter: nn.Module = conv(released[0], wide[self.level], 3, padding=1)
            self.straight = _silent(conv(released[0], channels, 3, padding=1))
        else:
            self.level = deepest
            self.standard = Standard(math.prod(released), flat=True)
            self.enter = nn.Linear(
                math.prod(released), wide[deepest] * math.prod(self.sizes[deepest])
            )
        self.down = nn.ModuleList(
            nn.Sequential(
                Block(wide[j], wide[j], dims), conv(wide[j], wide[j + 1], 3, stride=2, padding=1)
            )
            for j in range(self.level, deepest)
        )
        self.middle = nn.Sequential(*(Block(wide[deepest], wide[deepest], dims) for _ in range(2)))
        self.up = nn.ModuleList(
            nn.Sequential(
                Block(wide[j + 1] + (wide[j] if j >= self.level else 0), wide[j], dims),
                Block(wide[j], wide[j], dims),
            )
            for j in range(deepest)
        )
        self.out = nn.Sequential(
            _norm(wide[0]), nn.SiLU(), _silent(conv(wide[0], channels, 3, padding=1))
        )
        self.rest = nn.Parameter(
            (mean / 255).clamp(0.01, 0.99).logit() if picture else mean.clone()
        )

    def forward(self, z: Tensor) -> Tensor:
        straight: Tensor | float = 0.0
        if self.as_maps:
            x = self._fit(self.standard(z), self.level)
            straight = self._fit(self.straight(x), 0)
            x = self.enter(x)
        else:
            x = self.enter(self.standard(z)).unflatten(1, (-1, *self.sizes[-1]))
        passed = []
        for step in self.down:
            passed.append(step[0](x))  # type: ignore[index]
            x = step[1](passed[-1])  # type: ignore[index]
        x = self.middle(x)
        for level in reversed(range(len(self.up))):
            x = F.interpolate(x, size=self.sizes[level], mode="nearest")
            x = self.up[level](torch.cat([x, passed.pop()], 1) if passed else x)
        made = self.out(x).float() + straight + self.rest
        return 255.0 * torch.sigmoid(made) if self.picture else made

    def _fit(self, x: Tensor, level: int) -> Tensor:
        """Maps of the size of this level."""
        if x.shape[2:] == self.sizes[level]:
            return x
        flat = x.dim() == 4
        return F.interpolate(
            x.float(), size=self.sizes[level], mode="bilinear" if flat else "linear", antialias=flat
        )


class Rows(nn.Module):
    """Anything, laid flat -> the columns of a table: a straight line, and residual layers beside
    it."""

    def __init__(self, columns: int, released: Sequence[int], width: float, mean: Tensor) -> None:
        super().__init__()
        features = math.prod(released)
        # Few numbers need few units: of one number there is little to compute.
        size = scaled(min(WIDEST, 128 * features), width)
        self.standard = Standard(features, flat=True)
        self.straight, self.enter = nn.Linear(features, columns), nn.Linear(features, size)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(size),
                nn.Linear(size, 2 * size),
                nn.SiLU(),
                _silent(nn.Linear(2 * size, size)),
            )
            for _ in range(3)
        )
        self.out = nn.Sequential(nn.LayerNorm(size), nn.SiLU(), _silent(nn.Linear(size, columns)))
        with torch.no_grad():
            self.straight.bias.copy_(mean)

    def forward(self, z: Tensor) -> Tensor:
        flat = self.standard(z)
        x = self.enter(flat)
        for block in self.blocks:
            x = x + block(x)
        return self.straight(flat) + self.out(x)  # type: ignore[no-any-return]


class Words(nn.Module):
    """Word ids, one vector per word, or one vector for all -> a score of every word of the
    vocabulary at every position.

    An LSTM in both directions reads what is there; it hears the positions themselves where there is
    one vector for all.
    """

    def __init__(self, schema: TextSchema, released: Sequence[int | None], width: float) -> None:
        super().__init__()
        size = scaled(300, width)
        sizes = [s for s in released if s is not None]
        free = released[0] is None
        self.standard = Standard(math.prod(sizes), 2 if free else 1, not free) if sizes else None
        self.enter = (
            nn.Linear(math.prod(sizes), size)
            if sizes
            else nn.Embedding(schema.vocabulary, size, padding_idx=0)
        )
        self.places = nn.Parameter(0.1 * torch.randn(schema.longest, size)) if not free else None
        self.lstm = nn.LSTM(size, size, num_layers=2, batch_first=True, bidirectional=True)
        self.words = nn.Linear(3 * size, schema.vocabulary)

    def forward(self, z: Tensor) -> Tensor:
        if self.standard is None:
            x = self.enter(z)
        elif self.places is None:
            x = self.enter(self.standard(z)) * present(z).unsqueeze(2)
        else:
            x = self.enter(self.standard(z)).unsqueeze(1) + self.places
        return self.words(torch.cat([x, self.lstm(x)[0]], 2))  # type: ignore[no-any-return]


def rebuilder(
    schema: Schema, released: Sequence[int | None], width: float, mean: Tensor
) -> nn.Module:
    """The network from released records of this shape to records of this schema; `mean` is the mean
    record of *attack*."""
    if isinstance(schema, TextSchema):
        return Words(schema, released, width)
    shape, record = ([s for s in sizes if s is not None] for sizes in (released, schema.shape))
    if schema.modality == "table":
        return Rows(record[0], shape, width, mean)
    return Ladder(record, shape, width, schema.modality == "image", mean)


def _norm(channels: int) -> GroupNorm:
    """Groups of at least eight channels: with fewer, how strong a channel is in one record beside
    another would be lost."""
    return GroupNorm(math.gcd(8, channels) if channels >= 64 else 1, channels)


def _silent(layer: nn.Module) -> nn.Module:
    """A layer that says nothing at first, so that a residual network starts as the way around
    it."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer
