"""Veil's networks: a code that may use the private value u, and a decoder that is told u as well.

    z = mu(x, u) + s(x, u) * noise        the code: `dims` numbers
    x~ = D(z, v)                          the record in its own form, drawn with one value v for all

u is guessed from x by a small network that is part of the release, or told by the record's owner,
where the schema is `Given`. The decoder has no reason to look for u in z, since it is told u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.known_attributes import Given
from privet.data.schema import ImageSchema, Schema, TableSchema
from privet.nets import rebuilder
from privet.nets.code import Rows, body
from privet.nets.convolutions import prepare, scaled
from privet.nets.resnet import ResNet
from privet.nets.veil_maps import PlacedDecoder, PlacedEncoder
from privet.nets.veil_vectors import VectorDecoder, VectorEncoder

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}
# Log variances of a code lie between these.
LOG_VARIANCE = (-8.0, 4.0)
# Codes are rounded to multiples of this: finer than the smallest deviation by a factor of 1,000,
# coarser than float32, whose last bits could tell code and noise apart.
GRID = 2.0**-16
# Channels of a decoder's maps, from the coarsest on; finer ones have those of the last.
MAPS = (384, 256, 192, 128, 64)
# About how many steps per axis a decoder starts from.
COARSEST = 4
# Width of the guessing network, beside that of the others.
GUESS_WIDTH = 0.5


class Encoder(nn.Module):
    """A record and u to the mean and the log variance of its code.

    Parameters:
        schema: Of the plain records.
        values: Length of u: one number for every value of every private attribute.
        dims: Numbers in the code.
        width: Factor on all layer sizes.
    """

    def __init__(self, schema: Schema, values: int, dims: int, width: float) -> None:
        super().__init__()
        first, *size = cast(Sequence[int], schema.shape)
        if isinstance(schema, TableSchema):
            self.body: nn.Module = Rows(first + values, 2 * dims, width, 0.0)
            self.head: nn.Module = nn.Identity()
            return
        net = ResNet((first + values, *size), 1, width, 0.0)
        self.body = nn.Sequential(net.stem, net.body)
        with torch.no_grad():
            net.eval()
            features = self.body(torch.zeros(1, first + values, *size)).numel()
        # Laid flat, not averaged: where something is belongs to the record.
        self.head = nn.Sequential(nn.Flatten(), EqualisedLinear(features, 2 * dims))

    def forward(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        planes = u.to(x.dtype).view(*u.shape, *(1,) * (x.dim() - 2))
        joined = torch.cat([x, planes.expand(-1, -1, *x.shape[2:])], 1)
        mean, log_variance = self.head(self.body(joined)).float().chunk(2, dim=1)
        return mean, log_variance


class EqualisedLinear(nn.Module):
    """A linear layer whose weights are divided by the root of their number when they are used.

    A step of Adam moves every weight by about the learning rate. Of thousands of inputs, the codes
    would jump by more than their own spread at every step, and whoever learns from earlier codes
    would learn from noise. Scaled so, a step moves them by a few hundredths. Source: Karras and
    others, "Progressive growing of GANs", ICLR 2018, section 4.1.
    """

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outside, inside))
        self.bias = nn.Parameter(torch.zeros(outside))
        self.scale = 1 / math.sqrt(inside)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.scale, self.bias)


class MapDecoder(nn.Module):
    """A code and u to a picture in [-1, 1] or to a window: coarse maps, doubled level by level."""

    def __init__(self, shape: Sequence[int], values: int, dims: int, width: float, picture: bool):
        super().__init__()
        channels, *size = shape
        levels = max(1, round(math.log2(min(size) / COARSEST)))
        self.sizes = [tuple(math.ceil(s / 2**j) for s in size) for j in reversed(range(levels + 1))]
        wide = [scaled(MAPS[min(j, len(MAPS) - 1)], width) for j in range(levels + 1)]
        conv, norm = _CONV[len(size)], _NORM[len(size)]
        self.picture = picture
        self.enter = nn.Linear(dims + values, wide[0] * math.prod(self.sizes[0]))
        self.levels = nn.ModuleList(
            nn.Sequential(conv(inside, outside, 3, padding=1, bias=False), norm(outside))
            for inside, outside in pairwise(wide)
        )
        self.told = nn.ModuleList(nn.Linear(values, outside, bias=False) for outside in wide[1:])
        self.out = conv(wide[-1], channels, 3, padding=1)

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        x = torch.relu(self.enter(torch.cat([z, u], 1)).unflatten(1, (-1, *self.sizes[0])))
        for size, level, told in zip(self.sizes[1:], self.levels, self.told, strict=True):
            shift = told(u)
            x = level(F.interpolate(x, size=size, mode="nearest"))
            x = torch.relu(x + shift.view(*shift.shape, *(1,) * len(size)))
        x = self.out(x).float()
        return torch.tanh(x) if self.picture else x


class RowDecoder(nn.Module):
    """A code and u to a row: a number per numeric column, scores per value of a category."""

    def __init__(self, columns: int, values: int, dims: int, width: float) -> None:
        super().__init__()
        self.body = rebuilder.Rows(columns, (dims + values,), width, torch.zeros(columns))

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        made: Tensor = self.body(torch.cat([z, u], 1)).float()
        return made


def encoder_of(schema: Schema, values: int, dims: int, width: float, places: int) -> nn.Module:
    """The encoder for records of this schema."""
    if not places:
        return Encoder(schema, values, dims, width)
    return PlacedEncoder(cast(Sequence[int], schema.shape), values, dims, width, places)


def decoder_of(schema: Schema, values: int, dims: int, width: float, places: int) -> nn.Module:
    """The decoder for records of this schema."""
    shape = cast(Sequence[int], schema.shape)
    if isinstance(schema, TableSchema):
        return RowDecoder(shape[0], values, dims, width)
    picture = isinstance(schema, ImageSchema)
    if places:
        return PlacedDecoder(shape, values, dims, width, places, picture)
    return MapDecoder(shape, values, dims, width, picture)


class Veil(nn.Module):
    """The whole release: guess of u, encoder, transport and decoder.

    Parameters:
        schema: Of the records; a `Given` one where u is told.
        classes: Number of values of each private attribute.
        dims: Numbers in the code.
        width: Factor on all layer sizes.
        output: code, or record.
        soft: Whether the guess of u goes in as shares rather than as the likeliest value.
        transport: Whether codes are moved by a linear map for each value of u.
        aware: Whether the code may use u at all.
        drawn_as: The value v of each attribute, by its place, that records are drawn with.
        vectors: Whether rows are vectors of numbers, which have networks of their own.
        length: Of vectors: the length that drawn ones get, in their own units; 0 for any.
        places: Of pictures and windows: places a side that the code keeps; 0 for none.
    """

    maps: Tensor
    shifts: Tensor
    common: Tensor

    def __init__(
        self,
        schema: Schema,
        classes: Sequence[int],
        dims: int,
        width: float = 1.0,
        output: str = "code",
        soft: bool = False,
        transport: bool = False,
        aware: bool = True,
        drawn_as: Sequence[int] = (),
        vectors: bool = False,
        length: float = 0.0,
        places: int = 0,
    ) -> None:
        super().__init__()
        self.schema, self.plain, self.output, self.soft = schema, schema.plain, output, soft
        self.classes, self.dims, self.aware, self.transport = list(classes), dims, aware, transport
        self.shape = (dims,) if output == "code" else self.plain.shape
        values = sum(classes)
        told = isinstance(schema, Given)
        self.guess = (
            body(self.plain, values, GUESS_WIDTH * width, 0.2) if aware and not told else None
        )
        self.length = length
        self.encoder: nn.Module
        if vectors:
            size = cast(Sequence[int], self.plain.shape)[0]
            self.encoder = VectorEncoder(size, values, dims, width)
            self.decoder: nn.Module = VectorDecoder(size, values, dims, width)
        else:
            self.encoder = encoder_of(self.plain, values, dims, width, places)
            self.decoder = decoder_of(self.plain, values, dims, width, places)
        # A decoder that was told no value in learning is told none in drawing.
        told_as = one_hot(drawn_as or [0] * len(classes), classes)
        self.register_buffer("common", told_as if aware else torch.zeros_like(told_as))
        if transport:
            cells = math.prod(classes)
            self.register_buffer("maps", torch.eye(dims).repeat(cells, 1, 1))
            self.register_buffer("shifts", torch.zeros(cells, dims))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        own = prepare(self.schema.own(x))
        z = self.code(own, self.value(x, own), noise)
        return z if self.output == "code" else self.draw(z)

    def value(self, x: Tensor, own: Tensor) -> Tensor:
        """u of each record, (n, values): as it was told, or as it is guessed."""
        if not self.aware:
            # A sum, and not zeros of a length, which some exports freeze to the example's.
            return 0.0 * own.flatten(1)[:, :1] + own.new_zeros(sum(self.classes))
        if self.guess is None:
            beside = x[:, (self.plain.shape[0] or 0) :].flatten(2)[..., 0] if x.dim() > 2 else None
            told = x[:, (self.plain.shape[0] or 0) :] if beside is None else beside
            return told.float() / (255.0 if x.dtype == torch.uint8 else 1.0)
        return shares(self.guess(own).float(), self.classes, self.soft)

    def encode(self, own: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the code of prepared records, given u."""
        mean, log_variance = self.encoder(own, u)
        return mean, log_variance.clamp(*LOG_VARIANCE)

    def code(self, own: Tensor, u: Tensor, noise: Tensor) -> Tensor:
        """The code of prepared records, given u."""
        mean, log_variance = self.encode(own, u)
        z = mean + torch.exp(0.5 * log_variance) * noise
        if self.transport:
            z = self.moved(z, u)
        return torch.round(z / GRID) * GRID

    def moved(self, z: Tensor, u: Tensor) -> Tensor:
        """Codes moved by the maps of the values that they were made with."""
        moved = torch.einsum("nd,ced->nce", z, self.maps) + self.shifts
        weight = cells(u, self.classes)
        return (weight.unsqueeze(2) * moved).sum(1)

    def draw(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        """The record in its own form, in the network's scale; of a category, the likeliest."""
        # A sum, and not `expand`, which an export would freeze to the number of records it saw.
        values = 0.0 * z[:, :1] + self.common if u is None else u
        made: Tensor = self.decoder(z, values)
        if not isinstance(self.plain, TableSchema):
            return made
        if self.length:
            return at_length(made, self.plain, self.length)
        sizes = [column.size for column in self.plain.columns]
        pieces = [
            (piece == piece.amax(1, keepdim=True)).float() if column.values else piece
            for column, piece in zip(
                self.plain.columns, torch.split(made, sizes, dim=1), strict=True
            )
        ]
        return torch.cat(pieces, 1)


def at_length(made: Tensor, schema: TableSchema, length: float) -> Tensor:
    """Encoded vectors, scaled so that all have one length in the schema's units."""
    centre, spread = (
        made.new_tensor([getattr(column, key) for column in schema.columns])
        for key in ("mean", "std")
    )
    own = centre + spread * made
    size = own.square().sum(1, keepdim=True).sqrt().clamp(min=1e-12)
    return (own * (length / size) - centre) / spread


class Drawing(nn.Module):
    """The decoder alone, for whoever has codes and wants records: z to x~."""

    def __init__(self, veil: Veil) -> None:
        super().__init__()
        self.veil = veil

    def forward(self, z: Tensor) -> Tensor:
        return self.veil.draw(z)


def one_hot(places: Sequence[int], classes: Sequence[int]) -> Tensor:
    """Values by their places, side by side.

    >>> one_hot([1, 0], [2, 3]).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    return torch.cat([torch.eye(n)[place] for place, n in zip(places, classes, strict=True)])


def shares(scores: Tensor, classes: Sequence[int], soft: bool) -> Tensor:
    """Scores as values of u: the likeliest of each attribute, or shares that sum to one."""
    parts = torch.split(scores, list(classes), dim=1)
    if soft:
        return torch.cat([part.softmax(1) for part in parts], 1)
    return torch.cat([(part == part.amax(1, keepdim=True)).float() for part in parts], 1)


def cells(u: Tensor, classes: Sequence[int]) -> Tensor:
    """Shares of every combination of the attributes' values, (n, product of classes).

    >>> cells(torch.tensor([[0.0, 1.0, 1.0, 0.0]]), [2, 2]).tolist()
    [[0.0, 0.0, 1.0, 0.0]]
    """
    first, *rest = torch.split(u, list(classes), dim=1)
    for part in rest:
        first = (first.unsqueeze(2) * part.unsqueeze(1)).flatten(1)
    return first
