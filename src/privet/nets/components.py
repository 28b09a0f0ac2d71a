"""The main components of a network's features, in deviations: c(x) = (flat(f(x)) - mean) A /
deviation, A with orthonormal columns."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.laplace import Laplace
from privet.nets.plan import plan


class Components(nn.Module):
    """The leading principal components of a network's features, in standard deviations.

    Parameters:
        body: Gives the features.
        dims: How many components.
    """

    mean: Tensor
    axes: Tensor
    deviation: Tensor

    def __init__(self, body: nn.Module, dims: int) -> None:
        super().__init__()
        self.body = body
        self.shape = (dims,)
        size = math.prod(axis or 1 for axis in body.shape)  # type: ignore[union-attr]
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("axes", torch.eye(size, dims))
        self.register_buffer("deviation", torch.ones(dims))

    def forward(self, x: Tensor) -> Tensor:
        return (self.features(x) - self.mean) @ self.axes / self.deviation

    def features(self, x: Tensor) -> Tensor:
        """One vector per record; of a text, the mean over its words."""
        z: Tensor = self.body(x).float()
        if x.dtype == torch.int64:
            return z.sum(1) / (x != 0).sum(1, keepdim=True).clamp(min=1)
        return z.flatten(1)

    def learn(self, features: Tensor) -> Components:
        """The axes of largest variance of these features."""
        mean, axes = principal_axes(features, self.shape[0])
        rows = features.double() - mean
        deviation = (rows @ axes).square().mean(0).sqrt()
        for buffer, value in (
            (self.mean, mean),
            (self.axes, axes),
            (self.deviation, torch.where(deviation > 1e-6, deviation, 1.0)),
        ):
            buffer.copy_(value)
        return self


def principal_axes(features: Tensor, dims: int) -> tuple[Tensor, Tensor]:
    """Mean and the orthonormal directions of largest variance, (numbers, dims), in float64; by
    whichever of the two square matrices is smaller."""
    rows = features.double()
    mean = rows.mean(0)
    rows = rows - mean
    n, size = rows.shape
    if size <= n:
        axes = torch.linalg.eigh(rows.T @ rows).eigenvectors.flip(1)[:, :dims]
    else:
        axes = rows.T @ torch.linalg.eigh(rows @ rows.T).eigenvectors.flip(1)[:, :dims]
    # Directions that features do not have come out as rounding: made orthonormal, they are as good
    # as any.
    return mean, torch.linalg.qr(axes).Q


def private_components(schema: Schema, dims: int, scale: float, width: float = 1.0) -> Laplace:
    """Principal components of an extractor's features, with Laplace noise on each."""
    return Laplace(Components(plan(schema).extractor(width), dims), scale)
