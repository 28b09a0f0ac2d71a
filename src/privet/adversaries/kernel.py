"""Kernel ridge regression with a Gaussian kernel, by random Fourier features.

With w ~ N(0, 1 / s^2) and b uniform in [0, 2 pi), the inner product of phi(x) = sqrt(2 / D) cos(w x
+ b) tends to exp(-|x - y|^2 / 2 s^2); the ridge solution in D coordinates is closed form. s is the
median distance between records times a factor. Source: Rahimi and Recht, Random features for
large-scale kernel machines, NeurIPS (2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from privet.adversaries.vector_models import Predict, VectorAdversary, target_columns
from privet.adversaries.whitening import Transform, both_ways
from privet.data.dataset import Array, Attribute

# Ridge regression answers with shares that lie close together; this factor spreads them without
# changing their order.
SHARPNESS = 8.0


@dataclass(frozen=True, kw_only=True)
class Kernel(VectorAdversary):
    """Kernel ridge regression, on standardised and on whitened vectors.

    Parameters:
        features: How many random features, D.
        widths: Factors on the median distance to try.
        ridges: Penalties to try, relative to the mean square of a feature.
    """

    features: int = 2048
    widths: tuple[float, ...] = (0.5, 1.0, 2.0)
    ridges: tuple[float, ...] = (1e-4, 1e-2)
    name: ClassVar[str] = "kernel"
    title: ClassVar[str] = "kernel machine"

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Predict]:
        random = torch.Generator().manual_seed(seed)
        columns = target_columns(y, attribute).astype(np.float64)
        mean = columns.mean(0)
        targets = torch.as_tensor(columns - mean, dtype=torch.float32, device=x.device)
        for transform in both_ways(x):
            moved = transform(x)
            some = moved[torch.randperm(len(moved), generator=random)[:1000].to(x.device)]
            typical = float(torch.pdist(some).median()) if len(some) > 1 else 1.0
            for width in self.widths:
                w = torch.randn(x.shape[1], self.features, generator=random).to(x.device) / (
                    max(typical, 1e-12) * width
                )
                b = (torch.rand(self.features, generator=random) * 2 * math.pi).to(x.device)
                gram, cross = _sums(moved, targets, w, b)
                for ridge in self.ridges:
                    weights = solve(gram, cross, ridge).float()
                    yield _predict(transform, w, b, weights, mean, attribute.is_class)


def _predict(
    transform: Transform, w: Tensor, b: Tensor, weights: Tensor, mean: Array, is_class: bool
) -> Predict:
    def predict(z: Tensor) -> Array:
        parts = [torch.cos(transform(rows) @ w + b) @ weights for rows in torch.split(z, 4096)]
        out = torch.cat(parts).double().cpu().numpy() + mean
        return np.asarray(softmax(SHARPNESS * out, axis=1)) if is_class else np.asarray(out[:, 0])

    return predict


def _sums(x: Tensor, targets: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """phi(x)' phi(x) and phi(x)' targets, in float64."""
    gram = torch.zeros(len(b), len(b), dtype=torch.float64, device=x.device)
    cross = torch.zeros(len(b), targets.shape[1], dtype=torch.float64, device=x.device)
    for rows, some in zip(torch.split(x, 4096), torch.split(targets, 4096), strict=True):
        phi = torch.cos(rows @ w + b)
        gram += (phi.T @ phi).double()
        cross += (phi.T @ some).double()
    return gram, cross


def solve(gram: Tensor, cross: Tensor, ridge: float) -> Tensor:
    """(G + ridge m I)^-1 c, m the mean of G's diagonal. Of features that are nearly the same, as
    many are where a release has few numbers, G has eigenvalues that are rounding, and below 0: then
    the ridge is taken ten times larger until it covers them."""
    floor = gram.diagonal().mean().clamp(min=1e-12) * torch.eye(
        len(gram), dtype=gram.dtype, device=gram.device
    )
    root, failed = torch.linalg.cholesky_ex(gram + ridge * floor)
    if not int(failed):
        return torch.cholesky_solve(cross, root)
    if ridge > 1:  # then it is no rounding: G itself is not finite
        raise ValueError("the released records hold values that are not finite")
    return solve(gram, cross, 10 * ridge)
