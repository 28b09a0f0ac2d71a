"""Vectors that were made of released records elsewhere, as adversaries see them: pooled over the
records of a person, or with other columns beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.released import Released
from privet.adversaries.view import View
from privet.data.dataset import Array
from privet.data.schema import Inputs
from privet.train.feed import Feed


class VectorRecords(Released):
    """Vectors, their labels and their people; standardised as on *attack*.

    Parameters:
        draw: Gives all vectors, float32 (n, d); is called for every pass where noise is fresh.
        labels: One array per attribute, aligned with them.
        people: The person of every vector, as a code.
        device: Where to compute.
        like: Those of *attack*, for another part.
        noisy: Whether every call of `draw` shows other noise.
    """

    def __init__(
        self,
        draw: Callable[[], Tensor],
        labels: Mapping[str, Array],
        people: Array,
        device: torch.device,
        like: VectorRecords | None = None,
        noisy: bool = False,
    ) -> None:
        self._draw, self._people, self._noisy = draw, people, noisy
        self.feed = Feed(Inputs(np.zeros((len(people), 0), dtype=np.float32)), labels, device)
        first = draw().float()
        self._fixed: Tensor | None = None
        if like is None:
            self._mean = first.mean(0)
            self._deviation = first.std(0, correction=0)
            self._deviation[self._deviation < 1e-12] = 1.0
        else:
            self._mean, self._deviation = like._mean, like._deviation
        if not noisy:
            self._fixed = (first - self._mean) / self._deviation
        self.view = View((first.shape[1],))

    @property
    def people(self) -> Array:
        return self._people

    @property
    def fresh_noise(self) -> bool:
        return self._noisy

    def vectors(self) -> Tensor:
        if self._fixed is not None:
            return self._fixed
        return (self._draw().float() - self._mean) / self._deviation

    def batches(
        self, size: int, seed: int | None = None, drop_last: bool = False
    ) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        n, x = len(self), self.vectors()
        order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
        for start in range(0, n, size):
            rows = torch.as_tensor(order[start : start + size], device=x.device)
            if not drop_last or len(rows) in (size, n):
                yield x[rows], {name: column[rows] for name, column in self.feed.labels.items()}
