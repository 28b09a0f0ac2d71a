"""The record itself, in the network's scale: what releases that keep a record's form start from."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.additive import Additive
from privet.nets.convolutions import prepare


class Record(nn.Module):
    """The record in the network's own scale.

    Parameters:
        shape: Of one record.
    """

    def __init__(self, shape: Sequence[int | None]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, x: Tensor) -> Tensor:
        return prepare(x)


def noisy_record(schema: Schema, scale: float) -> Additive:
    """The record with Gaussian noise on every value."""
    return Additive(Record(schema.shape), scale)
