"""Noise with a place and a scale of its own for every feature, on records (Cloak) or on a service's
inner activations (Shredder).

    z = f(x) + location + scales * noise,    noise ~ N(0, I) fresh for every record

Cloak's f keeps some values of a record and puts 0 for the others, so that nothing of those is in z.
Shredder's f is the front of a service; the rest of the service travels in the weights, for the
collector, and is no part of the exported graph. Sums are rounded to a grid, for the reason that
additive.py gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.schema import Schema, TableSchema
from privet.nets.code import Rows, body
from privet.nets.convolutions import prepare
from privet.nets.noise_grid import GRID_STEPS
from privet.nets.resnet import ResNet

# The coarsest grid: below the difference that two runtimes may show.
COARSEST = 2.0**-14
FINEST = 2.0**-24


class Spread(nn.Module):
    """Nothing is added until it is filled.

    Parameters:
        scales: Standard deviation of the noise of every feature; 0 where there is none.
    """

    location: Tensor
    scales: Tensor
    step: Tensor

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.shape = cast(tuple[int, ...], body.shape)
        self.register_buffer("location", torch.zeros(self.shape))
        self.register_buffer("scales", torch.zeros(self.shape))
        self.register_buffer("step", torch.full(self.shape, FINEST))

    def fill(self, location: Tensor, scales: Tensor) -> None:
        self.location.copy_(location)
        self.scales.copy_(scales)
        fine = torch.exp2(torch.floor(torch.log2(scales.clamp(min=1e-30)))) / GRID_STEPS
        self.step.copy_(fine.clamp(FINEST, COARSEST))

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        z: Tensor = self.body(x).float() + self.location
        if noise is None:
            return z
        noisy = torch.round((z + self.scales * noise) / self.step) * self.step
        return torch.where(self.scales > 0, noisy, z)

    @property
    def told(self) -> Tensor:
        """Which features of z depend on the record at all."""
        kept = (
            self.body.keep
            if isinstance(self.body, Keep)
            else torch.ones(self.shape, dtype=torch.bool)
        )
        return kept.cpu()


class Keep(nn.Module):
    """A record in the network's scale, with 0 for what is suppressed; and what was learned about
    how much each value is needed.

    Parameters:
        sigma: The noise that every value bears, in its unit, learned before anything was
            suppressed: large where it is not needed.
    """

    keep: Tensor
    sigma: Tensor

    def __init__(self, shape: Sequence[int | None]) -> None:
        super().__init__()
        self.shape = tuple(size or 0 for size in shape)
        self.register_buffer("keep", torch.ones(self.shape, dtype=torch.bool))
        self.register_buffer("sigma", torch.zeros(self.shape))

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(self.keep, prepare(x), 0.0)


class Cover(nn.Module):
    """Noise with a location and a scale per value while it is learned, and constants to put in a
    value's place."""

    unit: Tensor
    mean: Tensor

    def __init__(
        self, mean: Tensor, unit: Tensor, between: tuple[float, float], start: float
    ) -> None:
        super().__init__()
        self.floor, self.most = between
        self.noise, self.instead = _Noise(mean.shape, start), _Constants(mean.shape)
        self.register_buffer("mean", mean)
        self.register_buffer("unit", unit)

    def sigma(self) -> Tensor:
        """In units of `unit`."""
        return self.floor + (1 + torch.tanh(self.noise.rho)) / 2 * (self.most - self.floor)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.unit * (self.noise.mu + self.sigma() * torch.randn_like(x))

    def constants(self) -> Tensor:
        return self.mean + self.unit * self.instead.shift

    def borne(self, members: Tensor) -> Tensor:
        """The noise that each feature bears as a whole: the root of the sum of its values'
        variances next to that of their units'. `members` says which values are whose."""
        square = self.unit.square().flatten()
        noise, units = (
            F.pad(part, (0, 1))[members].sum(1)
            for part in (square * self.sigma().square().flatten(), square)
        )
        return (noise / units).sqrt()


class _Noise(nn.Module):
    def __init__(self, shape: torch.Size, start: float) -> None:
        super().__init__()
        self.mu, self.rho = nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.full(shape, start))


class _Constants(nn.Module):
    def __init__(self, shape: torch.Size) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(shape))


class Split(Spread):
    """The front of a service with noise on what it gives; `rest` is the collector's part."""

    def __init__(self, schema: Schema, outputs: int, width: float, depth: float) -> None:
        front, rest = split(body(schema, outputs, width, 0.1), depth)
        super().__init__(Front(front, cast(Sequence[int], schema.shape)))
        self.rest = rest

    def answer(self, z: Tensor) -> Tensor:
        """What the service says to released activations: a score per class, tasks side by side."""
        scores: Tensor = self.rest(z)
        return scores.float()


class Front(nn.Module):
    """Records to the activations at which a service is cut."""

    def __init__(self, layers: nn.Module, shape: Sequence[int]) -> None:
        super().__init__()
        self.layers = layers
        self.layers.eval()
        with torch.no_grad():
            self.shape = tuple(self.layers(torch.zeros(2, *shape)).shape[1:])

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(prepare(x))  # type: ignore[no-any-return]


def split(service: nn.Module, depth: float) -> tuple[nn.Sequential, nn.Sequential]:
    """A service cut after a share `depth` of its layers, at least one; the last layer is always in
    the second part."""
    layers = _layers(service)
    cut = min(max(round(depth * (len(layers) - 1)), 1), len(layers) - 1)
    return nn.Sequential(*layers[:cut]), nn.Sequential(*layers[cut:])


def _layers(service: nn.Module) -> list[nn.Module]:
    """The places at which one of our own services may be cut."""
    if isinstance(service, ResNet):
        stem = list(service.stem)
        return [
            nn.Sequential(*stem[:3]),
            *stem[3:],
            *service.body,
            nn.Sequential(_Mean(), service.head),
        ]
    assert isinstance(service, Rows)
    return [_Entrance(service), *service.steps, service.last]


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).mean(2)


class _Entrance(nn.Module):
    """The first layer of `Rows`."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.lengths, self.mix, self.first = rows.lengths, rows.mix, rows.first

    def forward(self, x: Tensor) -> Tensor:
        angle = 2 * torch.pi * x.unsqueeze(2) * self.lengths
        waves = torch.cat([x.unsqueeze(2), angle.sin(), angle.cos()], dim=2)
        mixed = torch.relu(torch.einsum("bcw,cwe->bce", waves, self.mix))
        return self.first(mixed.flatten(1))  # type: ignore[no-any-return]


def kept(borne: Tensor, groups: Tensor, suppression: float) -> Tensor:
    """Which values are kept when the share `suppression` of the features, those that bear most
    noise, is suppressed.

    >>> kept(torch.tensor([0.1, 1.0, 0.5]), torch.tensor([0, 0, 1, 2]), 0.4).tolist()
    [True, True, False, True]
    """
    gone = int(suppression * len(borne) + 1e-9)
    keep = torch.ones(len(borne), dtype=torch.bool, device=borne.device)
    keep[torch.argsort(borne, descending=True, stable=True)[:gone]] = False
    return keep[groups]


def groups(schema: Schema, by: str) -> Tensor:
    """Which feature each value of a record belongs to."""
    shape = tuple(size or 0 for size in schema.shape)
    values = torch.arange(math.prod(shape)).reshape(shape)
    by = ("channel" if schema.modality == "signal" else "place") if by == "auto" else by
    if isinstance(schema, TableSchema):
        return (
            values
            if by == "value"
            else torch.repeat_interleave(torch.tensor([column.size for column in schema.columns]))
        )
    if by == "channel":
        return (
            torch.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)).expand(shape).contiguous()
        )
    return values[:1].expand(shape).contiguous() if by == "place" else values


def members(groups: Tensor) -> Tensor:
    """The values of each feature, (features, most that one has), filled up with the number of all
    values, which is nobody's. Sums along this are the same every time; those that a GPU adds up by
    `groups`, in the order in which it comes to them, are not.

    >>> members(torch.tensor([0, 1, 1, 2])).tolist()
    [[0, 4], [1, 2], [3, 4]]
    """
    whose = groups.flatten()
    sizes, order = torch.bincount(whose), torch.argsort(whose, stable=True)
    place = torch.arange(len(whose), device=whose.device) - (sizes.cumsum(0) - sizes)[whose[order]]
    table = torch.full((len(sizes), int(sizes.max())), len(whose), device=whose.device)
    table[whose[order], place] = order
    return table


def feature_names(schema: Schema, by: str) -> list[str]:
    """Names of the features, where people know them by name."""
    if isinstance(schema, TableSchema):
        if by == "value":
            return [
                f"{column.name} {value}".strip()
                for column in schema.columns
                for value in column.values or ("",)
            ]
        return [column.name for column in schema.columns]
    of_channels = by == "channel" or (by == "auto" and schema.modality == "signal")
    return (
        [f"channel {number}" for number in range(1, (schema.shape[0] or 0) + 1)]
        if of_channels
        else []
    )


def cloak(schema: Schema) -> Spread:
    """Cloak's noise on the features that a service does not need, for records of `schema`."""
    return Spread(Keep(schema.shape))
