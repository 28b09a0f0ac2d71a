"""A release that answers with one of K donor records: cells of similar records, a donor for each
cell, and a symbol that is now and then replaced at random.

    f(x) = (flat(x) - mean) A                    leading components of the record
    cell(x) = nearest of M points to (f(x), tilt g(x)),   g(x) a linear guess of the private value
    s(x) = donor of cell(x),   released as in nets/symbols.py
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from privet.data.schema import Schema, TableSchema
from privet.nets.convolutions import prepare
from privet.nets.symbols import Symbols


class CellsToDonors(nn.Module):
    """Scores of K donors for a record: 1 for the donor of its cell, 0 for all others.

    Parameters:
        schema: Of the records.
        donors: K.
        cells: M.
        dims: Components that records are compared in.
        guesses: Columns of the guess of private values.
    """

    mean: Tensor
    axes: Tensor
    guess: Tensor
    points: Tensor
    donor_of: Tensor
    records: Tensor

    def __init__(self, schema: Schema, donors: int, cells: int, dims: int, guesses: int) -> None:
        super().__init__()
        self.schema, self.shape = schema, (donors,)
        size = math.prod(axis or 1 for axis in schema.plain.shape)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("axes", torch.zeros(size, dims))
        self.register_buffer("guess", torch.zeros(dims, guesses))
        self.register_buffer("points", torch.zeros(cells, dims + guesses))
        self.register_buffer("donor_of", torch.zeros(cells, donors))
        self.register_buffer("records", torch.zeros(donors, size))

    def forward(self, x: Tensor) -> Tensor:
        return self.donor_of[self.cell(self.place(self.components(x)))]

    def components(self, x: Tensor) -> Tensor:
        """The leading components of encoded records, (n, dims)."""
        flat = prepare(self.schema.own(x)).flatten(1).float()
        return (flat - self.mean) @ self.axes

    def place(self, components: Tensor) -> Tensor:
        """Where a record lies among the cells: its components, and the guess."""
        return torch.cat([components, components @ self.guess], 1)

    def cell(self, place: Tensor) -> Tensor:
        """The nearest cell. In float64, or two runtimes would not agree on which is nearer."""
        points = self.points.double()
        return (points.square().sum(1) - 2 * (place.double() @ points.T)).argmin(1)

    def draw(self, z: Tensor) -> Tensor:
        """The donor records of released symbols, in the network's scale; of a category, the most
        frequent value."""
        flat: Tensor = z @ self.records
        plain = self.schema.plain
        if not isinstance(plain, TableSchema):
            return flat.reshape(-1, *(size or 1 for size in plain.shape))
        pieces = [
            (piece == piece.amax(1, keepdim=True)).float() if column.values else piece
            for column, piece in zip(
                plain.columns, torch.split(flat, [c.size for c in plain.columns], 1), strict=True
            )
        ]
        return torch.cat(pieces, 1)


def donor_symbols(
    schema: Schema, donors: int, cells: int, dims: int, guesses: int, flip: float
) -> Symbols:
    """One of `donors` donors, replaced at random with probability `flip`."""
    return Symbols(CellsToDonors(schema, donors, cells, dims, guesses), flip)
