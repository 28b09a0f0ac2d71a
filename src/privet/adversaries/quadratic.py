"""Quadratic discriminant: a Gaussian per class, which sees what lies in variances and in pairs of
coordinates, as XOR does.

score_c(x) = log p_c - 1/2 log det S_c - 1/2 (x - m_c)' S_c^-1 (x - m_c), with S_c = (1 - a) S_c + a
S drawn towards the covariance S of all records, and a little towards its mean eigenvalue. Source:
Friedman, Regularized discriminant analysis, Journal of the American Statistical Association 84
(1989), 165-175.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.vector_models import Answer, OnVectors, softmax
from privet.adversaries.view import View
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class Quadratic(OnVectors):
    shrinkages: tuple[float, ...] = (0.02, 0.1, 0.3, 0.6, 0.9)
    columns: int = 256
    """Most coordinates to look at: the first, which are the main directions where there are
    many."""
    name: ClassVar[str] = "quadratic"
    title: ClassVar[str] = "quadratic discriminant"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return attribute.is_class and attribute.classes <= 50

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        rows = x[:, : self.columns].double()
        codes = torch.as_tensor(y, device=x.device)
        size = rows.shape[1]
        pooled = _covariance(rows)
        floor = (
            1e-4
            * pooled.diagonal().mean().clamp(min=1e-12)
            * torch.eye(size, dtype=rows.dtype, device=x.device)
        )
        means, covariances, log_prior = [], [], []
        for c in range(attribute.classes):
            own = rows[codes == c]
            enough = len(own) > 1
            means.append(own.mean(0) if len(own) else rows.mean(0))
            covariances.append(_covariance(own) if enough else pooled)
            log_prior.append(float(np.log(len(own) / len(rows))) if enough else -30.0)
        prior = torch.tensor(log_prior, dtype=rows.dtype, device=x.device)
        for shrinkage in self.shrinkages:
            factors = [
                torch.linalg.cholesky((1 - shrinkage) * s + shrinkage * pooled + floor)
                for s in covariances
            ]

            def answer(z: Tensor, factors: list[Tensor] = factors) -> Array:
                scores = []
                for mean, factor in zip(means, factors, strict=True):
                    apart = torch.linalg.solve_triangular(
                        factor, (z[:, : self.columns].double() - mean).T, upper=False
                    )
                    scores.append(-0.5 * apart.square().sum(0) - factor.diagonal().log().sum())
                return softmax((torch.stack(scores, 1) + prior).cpu().numpy())

            yield answer


def _covariance(rows: Tensor) -> Tensor:
    apart = rows - rows.mean(0)
    return apart.T @ apart / max(len(rows) - 1, 1)
