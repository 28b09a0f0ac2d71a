"""A forest of extremely randomised trees, on standardised and on whitened coordinates: many weak
looks, averaged.

Source: Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63 (2006), 3-42
(scikit-learn's).
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
class Forest(OnVectors):
    trees: int = 200
    leaf: int = 5
    """Fewest records in a leaf."""
    name: ClassVar[str] = "forest"
    title: ClassVar[str] = "random forest"
    hosted: ClassVar[bool] = True

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        size = {
            "n_estimators": self.trees,
            "min_samples_leaf": self.leaf,
            "random_state": seed,
            "n_jobs": -1,
        }
        kind = ExtraTreesClassifier if attribute.is_class else ExtraTreesRegressor
        for change in (as_they_are, whitening(x)):
            look = turned(change)
            model = (
                kind(**size).fit(look(x), y).set_params(n_jobs=1)
            )  # one order of summing, one answer
            yield told(model, look, attribute)
