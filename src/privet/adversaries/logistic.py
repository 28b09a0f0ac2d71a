"""Logistic regression: what a straight cut can tell. A number is guessed by ridge regression.

On standardised and on whitened coordinates: the same cuts, but a penalty on the weights means
another thing in each, and where coordinates nearly repeat each other the cut that tells may need
weights that only the second allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from privet.adversaries.vector_models import Answer, OnVectors, told, turned
from privet.adversaries.whitening import as_they_are, whitening
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class Logistic(OnVectors):
    strengths: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    """Inverse strengths of the penalty to try."""
    rounds: int = 300
    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "logistic regression"
    hosted: ClassVar[bool] = True

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        from sklearn.linear_model import LogisticRegression, Ridge

        for change in (as_they_are, whitening(x)):
            look = turned(change)
            rows = look(x)
            for strength in self.strengths:
                cut = (
                    LogisticRegression(C=strength, max_iter=self.rounds, tol=1e-3)
                    if attribute.is_class
                    else Ridge(alpha=1 / strength)
                )
                yield told(cut.fit(rows, y), look, attribute)
