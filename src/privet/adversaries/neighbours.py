"""k nearest neighbours: says what the released records closest to this one are. Tries several k, on
standardised and whitened vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.vector_models import Answer, OnVectors
from privet.adversaries.whitening import as_they_are, whitening
from privet.data.dataset import Array, Attribute

AT_ONCE = 1 << 22
"""Distances held at a time."""

Near = Callable[[Tensor, int], Tensor]
"""Vectors (n, d) and k to the places (n, k) of those closest to each, the closest first."""


@dataclass(frozen=True, kw_only=True)
class Neighbours(OnVectors):
    counts: tuple[int, ...] = (1, 5, 15, 50, 150)
    name: ClassVar[str] = "neighbours"
    title: ClassVar[str] = "nearest neighbours"

    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        if attribute.is_class:
            values = np.eye(attribute.classes)[y.astype(int)]
            prior = values.mean(0)
        else:
            values, prior = y[:, None], np.array([y.mean()])
        targets = torch.as_tensor(values, device=x.device)
        start = torch.as_tensor(prior, device=x.device)
        counts = [k for k in self.counts if k < len(x)] or [1]
        for change in (as_they_are, whitening(x)):
            near = _near(change, x)
            for k in sorted(counts, reverse=True):
                yield _vote(near, targets, start, k, attribute.is_class)


def _near(change: Callable[[Tensor], Tensor], x: Tensor) -> Near:
    """Keeps what it was last asked: whoever asks for the largest k first is told the smaller ones
    at once."""
    among = change(x)
    last: list[Tensor] = []

    def near(z: Tensor, k: int) -> Tensor:
        if not last or last[0] is not z or last[1].shape[1] < k:
            last[:] = z, nearest(change(z), among, k)
        return last[1][:, :k]

    return near


def _vote(nearest_of: Near, targets: Tensor, start: Tensor, k: int, is_class: bool) -> Answer:
    def answer(z: Tensor) -> Array:
        near = nearest_of(z, k)
        told = targets[near].sum(1)
        # One more voice, the prior's, so that no class is ever called impossible and ties are
        # broken by how common it is.
        told = (told + start) / (near.shape[1] + 1) if is_class else told / near.shape[1]
        table = told.cpu().numpy()
        return table if is_class else table[:, 0]

    return answer


def nearest(z: Tensor, among: Tensor, k: int) -> Tensor:
    """Places (n, k) of the k rows of `among` closest to each row of z, the closest first."""
    step = max(1, AT_ONCE // max(len(among), 1))
    return torch.cat(
        [torch.cdist(part, among).topk(k, largest=False).indices for part in torch.split(z, step)]
    )
