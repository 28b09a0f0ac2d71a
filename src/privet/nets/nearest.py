"""A release that knows a fixed number of records and answers with the nearest: z =
centroid[argmin_j |x - centroid_j|]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.data.schema import Schema


class Nearest(nn.Module):
    """The nearest of a fixed number of records.

    Parameters:
        size: Numbers in a record.
        groups: How many records there are to answer with.
    """

    centroids: Tensor

    def __init__(self, size: int, groups: int) -> None:
        super().__init__()
        self.shape = (size,)
        self.register_buffer("centroids", torch.zeros(groups, size))

    def forward(self, x: Tensor) -> Tensor:
        return self.centroids[self.group(x)]

    def group(self, x: Tensor) -> Tensor:
        """Which centroid is nearest. In float64, or two runtimes would not agree on who is
        nearer."""
        known = self.centroids.double()
        return (known.square().sum(1) - 2 * (x.double() @ known.T)).argmin(1)


def nearest(schema: Schema, groups: int) -> Nearest:
    """For rows of `schema`."""
    return Nearest(schema.shape[0] or 0, groups)
