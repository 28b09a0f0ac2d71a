"""Adversaries that take a record as one vector and are fitted in one go.

Candidates are fitted on the *attack* people, and the one that ranks the *select* people best is
kept.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from privet.adversaries.adversary import (
    Adversary,
    Tick,
    TrainedFunction,
    has_label,
    ranking_score,
    silent,
)
from privet.adversaries.released import Released
from privet.adversaries.whitening import Transform, both_ways
from privet.data.dataset import Array, Attribute

# Vectors (n, d) to probabilities (n, classes), or to numbers (n,).
Predict = Callable[[Tensor], Array]
# Vectors (n, d) to rows (n, columns), as scikit-learn takes them.
Features = Callable[[Tensor], Array]


@dataclass(frozen=True, kw_only=True)
class VectorAdversary(Adversary):
    """An adversary on vectors; a subclass defines `candidates`.

    Parameters:
        draws: Releases of each record to learn from, where every release has fresh noise.
        most: Most vectors to learn from; drawn at random where there are more.
    """

    draws: int = 4
    most: int = 40_000

    @abstractmethod
    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Predict]:
        """Fitted models, one after the other, from vectors x (n, d) and their labels."""

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> TrainedFunction:
        y = seen.labels(attribute.name)
        rows = torch.as_tensor(np.flatnonzero(has_label(y)), device=seen.feed.device)
        x = torch.cat([seen.vectors()[rows] for _ in range(self.draws if seen.fresh_noise else 1)])
        y = np.tile(y[rows.cpu().numpy()], len(x) // max(len(rows), 1))
        if len(x) > self.most:
            drawn = np.random.default_rng(seed).choice(len(x), self.most, replace=False)
            x, y = x[torch.as_tensor(drawn, device=x.device)], y[drawn]
        truth, select_x = select.labels(attribute.name), select.vectors()
        scored = []
        for done, predict in enumerate(self.candidates(x, y, attribute, seed)):
            scored.append((ranking_score(truth, predict(select_x)), predict))
            tick(1 - 0.5 ** (done + 1))
        tick(1.0)
        best = max(scored, key=lambda pair: pair[0])[1]
        return TrainedFunction(lambda released: best(released.vectors()))


@dataclass(frozen=True, kw_only=True)
class ScikitLearnAdversary(VectorAdversary):
    """Models of scikit-learn, each on standardised and on whitened vectors; a subclass defines
    `models`."""

    on_cpu: ClassVar[bool] = True

    @abstractmethod
    def models(self, y: Array, attribute: Attribute, seed: int) -> Iterable[Any]:
        """Models to fit and try."""

    def features(self, x: Tensor, targets: Array) -> Iterable[Features]:
        """Ways to make rows of vectors, learned on vectors x and the `target_columns` of their
        labels."""
        return map(rows_of, both_ways(x))

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Predict]:
        if attribute.is_class and len(np.unique(y)) < 2:
            counts = target_columns(y, attribute).sum(0) if len(y) else np.ones(attribute.classes)
            yield lambda z: np.tile(counts / counts.sum(), (len(z), 1))
            return
        for features in self.features(x, target_columns(y, attribute)):
            rows = features(x)
            for model in self.models(y, attribute, seed):
                yield predictions(self.fit(model, rows, y), features, attribute)

    def fit(self, model: Any, rows: Array, y: Array) -> Any:
        return fitted(model, rows, y)


def rows_of(transform: Transform) -> Features:
    """Transformed vectors as scikit-learn takes them."""
    return lambda z: transform(z).numpy(force=True)


def target_columns(y: Array, attribute: Attribute) -> Array:
    """Labels as columns (n, classes) of 0 and 1, or a number as one column (n, 1)."""
    return np.eye(attribute.classes)[y.astype(int)] if attribute.is_class else y[:, None]


def fitted(model: Any, rows: Array, y: Array) -> Any:
    """The model, fitted; one that has not converged is judged on *select* like any other."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, y)


def predictions(model: Any, features: Features, attribute: Attribute) -> Predict:
    """What a fitted scikit-learn model says of vectors."""

    def probabilities(z: Tensor) -> Array:
        rows = features(z)
        known = (
            model.predict_proba(rows)
            if hasattr(model, "predict_proba")
            else _from_margins(model.decision_function(rows))
        )
        return all_classes(known, model.classes_, attribute.classes)

    def numbers(z: Tensor) -> Array:
        return np.asarray(model.predict(features(z)), dtype=float)

    return probabilities if attribute.is_class else numbers


def all_classes(table: Array, present: Array, classes: int) -> Array:
    """Probabilities over all classes, from those over the classes that a model has seen."""
    full: Array = np.zeros((len(table), classes))
    full[:, np.asarray(present, dtype=int)] = table
    return np.asarray(full / full.sum(1, keepdims=True))


def _from_margins(decision: Array) -> Array:
    """Probabilities from signed distances to one border (n,), or to one border per class."""
    scores = decision if decision.ndim == 2 else np.stack([-decision, decision], 1) / 2
    return np.asarray(softmax(scores, axis=1))
