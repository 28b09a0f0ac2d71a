"""Blend's encoder: main components of what describes a record, shifted by what its value is.

c = A (d(x) - mean)        d: descriptors; A: main components within a value, of deviation one
z = c + R(c, u)            R: a small network, told or guessing u
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.descriptors import descriptors_of
from privet.nets.veil import Veil

# Layers of the network that shifts codes: narrower ones hide less.
HIDDEN = 384
# The log variance of a code: next to no noise.
QUIET = -8.0


class BlendEncoder(nn.Module):
    """A record and u to the mean and the log variance of its code.

    Parameters:
        schema: Of the plain records.
        values: Length of u: one number for every value of every private attribute.
        dims: Numbers in the code.
        width: Factor on the layer sizes of networks that see records.
        learned: Whether pictures are described by learned features as well.
    """

    mean: Tensor
    axes: Tensor

    def __init__(self, schema: Schema, values: int, dims: int, width: float, learned: bool) -> None:
        super().__init__()
        self.describe = descriptors_of(schema, learned, width)
        size = sum(self.describe.sizes)  # type: ignore[arg-type]
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("axes", torch.zeros(size, dims))
        last = nn.Linear(HIDDEN, dims)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.shift = nn.Sequential(
            nn.Linear(dims + values, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            last,
        )

    def components(self, x: Tensor) -> Tensor:
        """Main components of what describes prepared records."""
        made: Tensor = (self.describe(x) - self.mean) @ self.axes
        return made

    def shifted(self, c: Tensor, u: Tensor) -> Tensor:
        """Components moved by what the value is."""
        made: Tensor = c + self.shift(torch.cat([c, u.to(c.dtype)], 1))
        return made

    def forward(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.shifted(self.components(x), u)
        return mean, 0.0 * mean + QUIET


class Blend(Veil):
    """A veil whose codes are made of descriptors.

    Parameters:
        schema: Of the records; a `Given` one where u is told.
        classes: Number of values of each private attribute.
        dims: Numbers in the code.
        width: Factor on the layer sizes of networks that see or draw records.
        output: code, or record.
        drawn_as: The value of each attribute, by its place, that records are drawn with.
        learned: Whether pictures are described by learned features as well.
    """

    encoder: BlendEncoder

    def __init__(
        self,
        schema: Schema,
        classes: Sequence[int],
        dims: int,
        width: float = 1.0,
        output: str = "code",
        drawn_as: Sequence[int] = (),
        learned: bool = False,
    ) -> None:
        super().__init__(schema, classes, dims, width, output, drawn_as=drawn_as)
        self.encoder = BlendEncoder(self.plain, sum(classes), dims, width, learned)
