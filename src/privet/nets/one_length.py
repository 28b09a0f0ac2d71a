"""An affine map of low rank, after which every record has the same length again, in its own units.

    z = r(x) * length / |r(x)|,    r the map of affine.py

Vectors of embeddings mostly have the length one. What a projection takes out of such a vector is
then missing in its length: |x - p|^2 = 1 - |p|^2 for an orthogonal one, so that whoever measures
the length reads |p| back. With the length restored nothing is left to measure, and a search by
inner products ranks as one by cosines does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from privet.data.schema import Schema, TableSchema
from privet.nets.affine import Affine


class OneLength(Affine):
    """An affine map, and every record at one length; of length 1 around 0 until it is measured.

    `centre` and `spread` give a record's own units: centre + spread * z.
    """

    centre: Tensor
    spread: Tensor
    length: Tensor

    def __init__(self, shape: Sequence[int | None], rank: int) -> None:
        super().__init__(shape, rank)
        self.register_buffer("centre", torch.zeros_like(self.mean))
        self.register_buffer("spread", torch.ones_like(self.mean))
        self.register_buffer("length", torch.ones((), dtype=torch.float64))

    def measure(self, schema: TableSchema, length: float) -> OneLength:
        """Records of this schema, all of numbers, get this length in the schema's units."""
        self.centre.copy_(torch.tensor([column.mean for column in schema.columns]))
        self.spread.copy_(torch.tensor([column.std for column in schema.columns]))
        self.length.fill_(length)
        return self

    def forward(self, x: Tensor) -> Tensor:
        own = self.centre + self.spread * super().forward(x).double()
        size = own.square().sum(1, keepdim=True).sqrt().clamp(min=1e-12)
        left = (own * (self.length / size) - self.centre) / self.spread
        return (self.step * torch.round(left / self.step)).float()


def one_length(schema: Schema, rank: int = 1) -> OneLength:
    """For records of `schema`."""
    return OneLength(schema.shape, rank)
