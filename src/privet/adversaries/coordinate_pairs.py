"""Pairs of coordinates: reads what no coordinate shows alone and two show together, as an exclusive
or does.

All products x_i x_j are held against the attribute at once, since the mean of u x_i x_j over
records is one matrix product X' diag(u) X. The coordinates and pairs that correlate with it most
are kept (on *attack*), and boosting reads them and their products.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from privet.adversaries.trees import boosted_trees
from privet.adversaries.vector_models import Features, ScikitLearnAdversary
from privet.adversaries.whitening import Transform, both_ways
from privet.data.dataset import Array, Attribute

# Deviations at which a coordinate is cut before it is multiplied: one outlier is not to decide
# which pair is looked at.
CUT = 5.0


@dataclass(frozen=True, kw_only=True)
class Pairs(ScikitLearnAdversary):
    """Boosting on the coordinates, and pairs of coordinates, that depend on the attribute most.

    Parameters:
        singles: How many coordinates to keep.
        pairs: How many pairs to keep.
        rounds: Rounds of boosting.
    """

    singles: int = 24
    pairs: int = 24
    rounds: int = 80
    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "pairs of coordinates"

    def models(self, y: Array, attribute: Attribute, seed: int) -> Iterable[Any]:
        return [boosted_trees(attribute.is_class, seed, max_iter=self.rounds)]

    def features(self, x: Tensor, targets: Array) -> Iterable[Features]:
        centred = torch.as_tensor(targets - targets.mean(0), dtype=torch.float32, device=x.device)
        return [self._features(transform, x, centred) for transform in both_ways(x)]

    def _features(self, transform: Transform, x: Tensor, targets: Tensor) -> Features:
        """The strongest coordinates, and the strongest pairs with their products."""
        first, second, alone = self._strongest(transform(x).clamp(-CUT, CUT), targets)

        def features(z: Tensor) -> Array:
            rows = transform(z).clamp(-CUT, CUT)
            a, b = rows[:, first], rows[:, second]
            columns = [rows[:, alone], a, b, a * b, a.sign() * b.sign()]
            return torch.cat(columns, dim=1).numpy(force=True)

        return features

    def _strongest(self, rows: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Columns of the strongest pairs (first, second) and of the strongest coordinates."""
        size = rows.shape[1]
        scale = (rows.square().T @ rows.square()).sqrt().clamp(min=1e-12)
        by_sign = _products(rows.sign(), targets) / len(rows) ** 0.5
        strength = torch.maximum(_products(rows, targets) / scale, by_sign).triu(1)
        best = strength.flatten().topk(min(self.pairs, size * (size - 1) // 2 or 1)).indices
        single = (rows.T @ targets).abs().amax(1) / rows.square().sum(0).sqrt().clamp(min=1e-12)
        return best // size, best % size, single.topk(min(self.singles, size)).indices


def _products(rows: Tensor, targets: Tensor) -> Tensor:
    """Of every pair (i, j), the largest |sum of target x_i x_j| over the columns of the targets."""
    return torch.stack([(rows.T @ (rows * column[:, None])).abs() for column in targets.T]).amax(0)
