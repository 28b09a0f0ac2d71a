"""Linear attacks: logistic regression and the linear support vector machine.

Logistic regression is tried on standardised and on whitened coordinates. The borders are the same,
but a penalty on the weights means another thing in each, and where coordinates nearly repeat each
other the best border may need weights that only the second allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from privet.adversaries.vector_models import Features, ScikitLearnAdversary, rows_of
from privet.adversaries.whitening import unchanged
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class Logistic(ScikitLearnAdversary):
    """Logistic regression; a number is guessed by ridge regression.

    Parameters:
        strengths: Inverse strengths of the penalty to try (C of scikit-learn).
        rounds: Most iterations of the solver.
    """

    strengths: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    rounds: int = 300
    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "logistic regression"

    def models(self, y: Array, attribute: Attribute, seed: int) -> Iterable[Any]:
        from sklearn.linear_model import LogisticRegression, Ridge

        if not attribute.is_class:
            return (Ridge(alpha=1 / strength) for strength in self.strengths)
        return (
            LogisticRegression(C=strength, max_iter=self.rounds, tol=1e-3)
            for strength in self.strengths
        )


@dataclass(frozen=True, kw_only=True)
class SVM(ScikitLearnAdversary):
    """The linear border with the widest margin; a number is guessed by its regression form.

    Parameters:
        strengths: Inverse strengths of the penalty to try (C of scikit-learn).
        rounds: Most iterations of the solver.
    """

    strengths: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    rounds: int = 400
    name: ClassVar[str] = "svm"
    title: ClassVar[str] = "linear SVM"

    def features(self, x: Tensor, targets: Array) -> Iterable[Features]:
        return [rows_of(unchanged)]

    def models(self, y: Array, attribute: Attribute, seed: int) -> Iterable[Any]:
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.svm import LinearSVC, LinearSVR

        settings = {"max_iter": self.rounds, "random_state": seed}
        if attribute.is_class:
            return (LinearSVC(C=c, dual=False, tol=1e-3, **settings) for c in self.strengths)
        mean, deviation = float(y.mean()), float(y.std()) or 1.0
        return (
            TransformedTargetRegressor(
                LinearSVR(C=c, **settings),
                func=lambda number: (number - mean) / deviation,
                inverse_func=lambda number: number * deviation + mean,
                check_inverse=False,
            )
            for c in self.strengths
        )
