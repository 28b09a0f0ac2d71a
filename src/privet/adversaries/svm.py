"""Linear support vector machine: the straight cut with the widest margin. A number is guessed by
its regression form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from privet.adversaries.vector_models import Answer, OnVectors, margins, numpy, shares
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class SVM(OnVectors):
    strengths: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    rounds: int = 400
    name: ClassVar[str] = "svm"
    title: ClassVar[str] = "linear SVM"
    hosted: ClassVar[bool] = True

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC, LinearSVR

        rows = numpy(x)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # the candidates are judged on select, finished or not
            for strength in self.strengths:
                if attribute.is_class:
                    cut = LinearSVC(
                        C=strength, dual=False, max_iter=self.rounds, tol=1e-3, random_state=seed
                    ).fit(rows, y)
                    yield _side(cut, attribute)
                else:
                    mean, deviation = y.mean(), y.std() or 1.0
                    line = LinearSVR(C=strength, max_iter=self.rounds, random_state=seed).fit(
                        rows, (y - mean) / deviation
                    )
                    yield _along(line, float(mean), float(deviation))


def _side(cut: Any, attribute: Attribute) -> Answer:
    return lambda z: shares(
        margins(cut.decision_function(numpy(z))), cut.classes_, attribute.classes
    )


def _along(line: Any, mean: float, deviation: float) -> Answer:
    return lambda z: np.asarray(line.predict(numpy(z)), dtype=float) * deviation + mean
