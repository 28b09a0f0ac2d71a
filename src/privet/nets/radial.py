"""Noise whose density falls with its Euclidean length, on a row in its own units.

    z = x + v,    density of v proportional to exp(-epsilon |v|),    x shortened to a length R

v has a uniform direction and a length of the law Gamma(d, 1 / epsilon), d numbers in a record. Of
3 d unit Gaussians, the first d give the direction, and half the sum of the squares of the others
is Gamma(d, 1): noise of a law that every release can draw, also from a key.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.data.schema import Schema, TableSchema
from privet.nets.noise_grid import grid_step

# Steps within 1 / epsilon, or up to twice as many.
STEPS = 64


class Radial(nn.Module):
    """A row with radial noise; `measure` says what its own units are.

    Parameters:
        size: Numbers in a row.
        epsilon: Privacy loss for every unit of distance.
        radius: Rows that are longer, in their own units, are shortened to it.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, size: int, epsilon: float, radius: float) -> None:
        super().__init__()
        self.shape = (size,)
        self.epsilon, self.radius, self.grain = epsilon, radius, grid_step(1 / epsilon, STEPS)
        self.register_buffer("centre", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("spread", torch.ones(size, dtype=torch.float64))

    def measure(self, schema: TableSchema) -> Radial:
        """Rows of this schema: numbers in their own units, categories as zeros and ones."""
        units = [(column.mean, column.std) for column in schema.columns for _ in range(column.size)]
        self.centre.copy_(torch.tensor([mean for mean, _ in units]))
        self.spread.copy_(torch.tensor([std for _, std in units]))
        return self

    def own(self, x: Tensor) -> Tensor:
        """Encoded rows in their own units."""
        return self.centre + self.spread * x.double()

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        own, unit = self.own(x), noise.double()
        own = own * (self.radius / length(own).clamp(min=self.radius))
        heading = unit[:, 0] / length(unit[:, 0]).clamp(min=1e-30)
        far = 0.5 * unit[:, 1:].square().sum((1, 2)).unsqueeze(1) / self.epsilon
        z = self.grain * torch.round((own + far * heading) / self.grain)
        return ((z - self.centre) / self.spread).float()


def length(rows: Tensor) -> Tensor:
    """(n, 1) Euclidean lengths."""
    return rows.square().sum(1, keepdim=True).sqrt()


def radial(schema: Schema, epsilon: float, radius: float) -> Radial:
    """For rows of `schema`."""
    return Radial(schema.shape[0] or 0, epsilon, radius)
