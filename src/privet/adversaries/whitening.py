"""Whitening: a linear map after which all directions of the vectors vary alike, so that none is too
faint to be learned from."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# From vectors (n, d) to vectors (n, d).
Transform = Callable[[Tensor], Tensor]

# A direction whose variance, relative to the largest, is below this is rounding in float32.
ROUNDING = 1e-10


def unchanged(x: Tensor) -> Tensor:
    """The transform of whoever looks at standardised vectors as they are."""
    return x


def whitening(x: Tensor) -> Transform:
    """A map learned on x (n, d), to be used on others: x -> (x - mean) U diag(l + s)^(-1/2), with
    covariance U diag(l) U'.

    Where n is much larger than d, sample variances are right up to a factor near 1 however faint a
    direction is, so nothing is gained by shrinking. Where it is not, the faintest directions of the
    sample are faint by accident and would drown the others: s = mean(l) min(1, d / n)^8 keeps them
    down, and is nothing otherwise.

    >>> x = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    >>> x *= torch.tensor([1.0, 1e-3, 30.0])
    >>> bool((torch.cov(whitening(x)(x).T) - torch.eye(3)).abs().max() < 1e-2)
    True
    """
    n, d = x.shape
    mean = torch.stack([part.double().sum(0) for part in torch.split(x, 8192)]).sum(0) / n
    covariance = torch.zeros(d, d, dtype=torch.float64, device=x.device)
    for part in torch.split(x, 8192):
        covariance += (part.double() - mean).T @ (part.double() - mean) / n
    values, directions = torch.linalg.eigh(covariance)
    values = values.clamp(min=0)
    shrunk = values + values.mean() * min(1.0, d / n) ** 8
    scaled = directions / shrunk.clamp(min=max(float(values[-1]) * ROUNDING, 1e-30)).sqrt()

    def whiten(other: Tensor) -> Tensor:
        parts = torch.split(other, 8192)
        return torch.cat([((part.double() - mean) @ scaled).to(x.dtype) for part in parts])

    return whiten


def both_ways(x: Tensor) -> tuple[Transform, ...]:
    """Standardised vectors as they are, and whitened; of one number these are the same.

    >>> len(both_ways(torch.ones(4, 1))), len(both_ways(torch.ones(4, 2)))
    (1, 2)
    """
    return (unchanged,) if x.shape[1] == 1 else (unchanged, whitening(x))
