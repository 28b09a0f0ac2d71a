"""k nearest neighbours: guesses what the closest released records have. Tries several k, on
standardised and on whitened vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from privet.adversaries.vector_models import Predict, VectorAdversary, target_columns
from privet.adversaries.whitening import Transform, both_ways
from privet.data.dataset import Array, Attribute

# Distances held in memory at a time.
AT_ONCE = 1 << 22

# Vectors (n, d) and k to the rows (n, k) of those closest to each, the closest first.
Search = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True, kw_only=True)
class Neighbours(VectorAdversary):
    """k nearest neighbours.

    Parameters:
        counts: Values of k to try.
    """

    counts: tuple[int, ...] = (1, 5, 15, 50, 150)
    name: ClassVar[str] = "neighbours"
    title: ClassVar[str] = "nearest neighbours"

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Predict]:
        columns = target_columns(y, attribute)
        targets = torch.as_tensor(columns, device=x.device)
        prior = torch.as_tensor(columns.mean(0), device=x.device)
        counts = [k for k in self.counts if k < len(x)] or [1]
        for transform in both_ways(x):
            search = _search(transform, x)
            for k in sorted(counts, reverse=True):
                yield _vote(search, targets, prior, k, attribute.is_class)


def _search(transform: Transform, x: Tensor) -> Search:
    """Remembers the last search, so that the smaller k cost nothing after the largest."""
    among = transform(x)
    last: list[Tensor] = []

    def search(z: Tensor, k: int) -> Tensor:
        if not last or last[0] is not z or last[1].shape[1] < k:
            last[:] = z, nearest(transform(z), among, k)
        return last[1][:, :k]

    return search


def _vote(search: Search, targets: Tensor, prior: Tensor, k: int, is_class: bool) -> Predict:
    def predict(z: Tensor) -> Array:
        rows = search(z, k)
        votes = targets[rows].sum(1)
        if not is_class:
            return (votes / rows.shape[1]).cpu().numpy()[:, 0]
        # The prior has one vote, so that no class is ever impossible and ties are broken by how
        # common a class is.
        return ((votes + prior) / (rows.shape[1] + 1)).cpu().numpy()

    return predict


def nearest(z: Tensor, among: Tensor, k: int) -> Tensor:
    """Rows (n, k) of the k vectors of `among` closest to each of z, the closest first."""
    parts = torch.split(z, max(1, AT_ONCE // max(len(among), 1)))
    return torch.cat([torch.cdist(part, among).topk(k, largest=False).indices for part in parts])
