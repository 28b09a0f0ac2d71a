"""Hybrid: the encoder's features, reduced to their main components, with Laplace noise on each.

    c = PCA(E(x)) in deviations, clipped to +-clip,      z = c + 2 clip * Laplace(b),      b = 1 / epsilon  or  dims / epsilon

The baseline of that name in Li et al., "TIPRDC", KDD 2020, section 5.2 (epsilon 0.1, 0.2, 0.5,
0.9), after Osia et al., "A hybrid deep learning architecture for privacy-preserving mobile
analytics", IEEE Internet of Things Journal 2020: a feature extractor, dimensionality reduction and
noise. (The third part there, Siamese fine-tuning, needs to know the task.) Neither says how the
noise follows from epsilon: here components are clipped, so that it means something; with `dims`
numbers the record's epsilon is dims * epsilon, or epsilon itself with `per=record`. The people whom
encoder and components were learned from are not covered by it; those who release are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.methods.dp import LaplaceBudget, check_epsilon
from privet.methods.encoder import Encoder
from privet.methods.method import Problem
from privet.nets import plan as nets
from privet.nets.components import Components
from privet.nets.laplace import Laplace
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

MOST = 2048
"""Records that components are learned from; more do not change the first few."""
BYTES = 1e9
"""Fewer, where the features of so many take more than this."""


@dataclass(kw_only=True)
class Hybrid(Encoder):
    epsilon: float = 0.9
    per: str = "value"
    """What epsilon is spent on: each `value`, that is each component, or the whole `record`."""
    dims: int = 8
    """Components that are kept."""
    clip: float = 3.0
    """They are clipped to so many deviations."""

    name: ClassVar[str] = "hybrid"
    title: ClassVar[str] = "Hybrid"
    dial: ClassVar[str] = "epsilon"
    sweep: ClassVar[tuple[float, ...]] = (0.9, 0.5, 0.2, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self)
        self.within(dims=(1, inf), clip=(1e-3, inf))

    def problem(
        self,
        data: Dataset,
        private: Sequence[str],
        utility: Sequence[str],
        without: Sequence[str],
        run: Run,
    ) -> Problem:
        problem = super().problem(data, private, utility, without, run)
        features = Components(nets.plan(problem.schema).extractor(self.width), 1).mean
        most = min(len(features), len(data.part("fit")))
        if self.dims > most:
            raise PrivetError(
                f"The setting dims of hybrid is {self.dims}, and features of these records have at most {most} components."
            )
        return problem

    def learn(self, problem: Problem, run: Run) -> Release:
        extractor, history = self.encode(problem, run)
        spent = LaplaceBudget.of(self.epsilon, self.per, self.dims, self.dims)
        components = Components(extractor, self.dims).to(problem.device)
        components.learn(self._features(components, problem))
        module = Laplace(components, spent.scale).to(problem.device)
        module.bound([-self.clip] * self.dims, [self.clip] * self.dims)
        settings = {"dims": self.dims, "width": self.width, "scale": spent.scale}
        card = {"history": history, **spent.card(problem.private, run)}
        return Release(
            problem.schema,
            ("hybrid", settings),
            module,
            Noise("laplace", (self.dims,), spent.scale),
            card,
        )

    @torch.inference_mode()
    def _features(self, components: Components, problem: Problem) -> Tensor:
        feed = problem.feed()
        most = int(min(MOST, max(2 * self.dims, BYTES // (8 * len(components.mean)))))
        some = np.random.default_rng(self.seed).permutation(len(feed))[:most]
        parts = np.array_split(some, math.ceil(len(some) / 256))
        return torch.cat([components.features(batch.x) for batch in feed.batches(parts)])
