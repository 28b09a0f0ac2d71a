"""Veil's networks for vectors of numbers: a linear map, and a perceptron beside it.

    mu(x, u) = A [x, u] + f(x, u)        D(z, u) = B [z, u] + g(z, u)

A and B start at the principal components of *fit*, f and g at zero, so that learning starts from
the best linear code. Networks without the linear way learn a few thousand vectors by heart and give
other people's back worse than the mean vector would.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.nets.components import principal_axes
from privet.nets.convolutions import scaled

# The log variance that codes start with, beside a variance of one of their means.
FIRST_LOG_VARIANCE = -2.0


class LinearAndMore(nn.Module):
    """A linear map plus a perceptron that starts at zero.

    Parameters:
        inside: Numbers in.
        outside: Numbers out.
        width: Factor on the perceptron's layer.
    """

    def __init__(self, inside: int, outside: int, width: float) -> None:
        super().__init__()
        hidden = max(16, scaled(256, width))
        self.linear = nn.Linear(inside, outside)
        self.first, self.last = nn.Linear(inside, hidden), nn.Linear(hidden, outside)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.linear(x) + self.last(nn.functional.gelu(self.first(x)))
        return made

    @torch.no_grad()
    def begin(self, weight: Tensor, bias: Tensor) -> None:
        """Start from this map of the first numbers; the others and outputs beyond it count 0."""
        self.linear.weight.zero_()
        self.linear.weight[: weight.shape[0], : weight.shape[1]] = weight
        self.linear.bias[: len(bias)] = bias


class VectorEncoder(nn.Module):
    """A vector and u to the mean and the log variance of its code."""

    def __init__(self, size: int, values: int, dims: int, width: float) -> None:
        super().__init__()
        self.body = LinearAndMore(size + values, 2 * dims, width)
        self.dims = dims

    def forward(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.body(torch.cat([x, u.to(x.dtype)], 1)).float().chunk(2, dim=1)
        return mean, log_variance


class VectorDecoder(nn.Module):
    """A code and u to a vector."""

    def __init__(self, size: int, values: int, dims: int, width: float) -> None:
        super().__init__()
        self.body = LinearAndMore(dims + values, size, width)

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        made: Tensor = self.body(torch.cat([z, u.to(z.dtype)], 1)).float()
        return made


def begin_at_components(encoder: VectorEncoder, decoder: VectorDecoder, x: Tensor) -> None:
    """Codes start as the principal components of these vectors, each in its deviation."""
    dims = min(encoder.dims, x.shape[1])
    mean, axes = principal_axes(x, dims)
    deviation = ((x.double() - mean) @ axes).square().mean(0).sqrt().clamp(min=1e-6)
    into = (axes / deviation).T
    log_variance = torch.full((2 * encoder.dims,), FIRST_LOG_VARIANCE, dtype=torch.float64)
    log_variance[:dims] = -into @ mean
    log_variance[dims : encoder.dims] = 0.0
    encoder.body.begin(into.float(), log_variance.float())
    decoder.body.begin((axes * deviation).float(), mean.float())
