"""Quadratic discriminant: a Gaussian per class, which reads what lies in variances and in pairs of
coordinates, as an exclusive or does.

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
from scipy.special import softmax
from torch import Tensor

from privet.adversaries.vector_models import Predict, VectorAdversary
from privet.adversaries.view import View
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class Quadratic(VectorAdversary):
    """Regularised quadratic discriminant analysis.

    Parameters:
        shrinkages: Values of a to try.
        columns: Most coordinates to look at. The first are taken, which are the principal
            directions where there are many.
    """

    shrinkages: tuple[float, ...] = (0.02, 0.1, 0.3, 0.6, 0.9)
    columns: int = 256
    name: ClassVar[str] = "quadratic"
    title: ClassVar[str] = "quadratic discriminant"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return attribute.is_class and attribute.classes <= 50

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Predict]:
        rows = x[:, : self.columns].double()
        codes = torch.as_tensor(y, device=x.device)
        pooled = _covariance(rows)
        floor = (
            1e-4
            * pooled.diagonal().mean().clamp(min=1e-12)
            * torch.eye(rows.shape[1], dtype=rows.dtype, device=x.device)
        )
        means, covariances, log_prior = [], [], []
        for c in range(attribute.classes):
            of_class = rows[codes == c]
            enough = len(of_class) > 1
            means.append(of_class.mean(0) if len(of_class) else rows.mean(0))
            covariances.append(_covariance(of_class) if enough else pooled)
            log_prior.append(float(np.log(len(of_class) / len(rows))) if enough else -30.0)
        prior = torch.tensor(log_prior, dtype=rows.dtype, device=x.device)
        for a in self.shrinkages:
            factors = [torch.linalg.cholesky((1 - a) * s + a * pooled + floor) for s in covariances]

            def predict(z: Tensor, factors: list[Tensor] = factors) -> Array:
                scores = []
                for mean, factor in zip(means, factors, strict=True):
                    centred = (z[:, : self.columns].double() - mean).T
                    white = torch.linalg.solve_triangular(factor, centred, upper=False)
                    scores.append(-0.5 * white.square().sum(0) - factor.diagonal().log().sum())
                return np.asarray(softmax((torch.stack(scores, 1) + prior).cpu().numpy(), axis=1))

            yield predict


def _covariance(rows: Tensor) -> Tensor:
    centred = rows - rows.mean(0)
    return centred.T @ centred / max(len(rows) - 1, 1)
