"""Pairs of coordinates: what no coordinate tells alone, and two tell together, as an exclusive or
does.

All products x_i x_j are held against the attribute at once, since mean of u x_i x_j over records is
one matrix product X' diag(u) X; the coordinates and pairs that go with it most are kept (on
*attack*), and boosting reads them and their products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.vector_models import Answer, Look, OnVectors, numpy, only, told
from privet.adversaries.whitening import as_they_are, whitening
from privet.data.dataset import Array, Attribute

FAR = 5.0
"""Deviations at which a coordinate is cut before it is multiplied: one outlier is not to decide
which pair is looked at."""


@dataclass(frozen=True, kw_only=True)
class Pairs(OnVectors):
    singles: int = 24
    pairs: int = 24
    """How many coordinates and how many pairs to keep."""
    rounds: int = 80
    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "pairs of coordinates"
    hosted: ClassVar[bool] = True

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        if (same := only(y, attribute)) is not None:
            yield same
            return
        values = np.eye(attribute.classes)[y.astype(int)] if attribute.is_class else y[:, None]
        wanted = torch.as_tensor(values - values.mean(0), dtype=torch.float32, device=x.device)
        kind = (
            HistGradientBoostingClassifier if attribute.is_class else HistGradientBoostingRegressor
        )
        for change in (as_they_are, whitening(x)):
            look = self._look(change, x, wanted)
            model = kind(max_iter=self.rounds, early_stopping=False, random_state=seed).fit(
                look(x), y
            )
            yield told(model, look, attribute)

    def _look(self, change: Callable[[Tensor], Tensor], x: Tensor, wanted: Tensor) -> Look:
        """The strongest coordinates, and the strongest pairs with their products."""
        first, second, alone = self._screen(change(x).clamp(-FAR, FAR), wanted)

        def look(z: Tensor) -> Array:
            rows = change(z).clamp(-FAR, FAR)
            a, b = rows[:, first], rows[:, second]
            return numpy(torch.cat([rows[:, alone], a, b, a * b, a.sign() * b.sign()], dim=1))

        return look

    def _screen(self, rows: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Places of the strongest pairs and of the strongest single coordinates."""
        size = rows.shape[1]
        strength = torch.stack(
            [(rows.T @ (rows * column[:, None])).abs() for column in wanted.T]
        ).amax(0)
        signs = rows.sign()
        strength = strength / (rows.square().T @ rows.square()).sqrt().clamp(min=1e-12)
        signed = (
            torch.stack([(signs.T @ (signs * column[:, None])).abs() for column in wanted.T]).amax(
                0
            )
            / len(rows) ** 0.5
        )
        strength = torch.maximum(strength, signed).triu(1)
        kept = strength.flatten().topk(min(self.pairs, size * (size - 1) // 2 or 1)).indices
        single = (rows.T @ wanted).abs().amax(1) / rows.square().sum(0).sqrt().clamp(min=1e-12)
        return kept // size, kept % size, single.topk(min(self.singles, size)).indices
