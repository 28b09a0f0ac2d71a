"""Hybrid: the encoder's features, reduced to their main components, with Laplace noise on each.

    c = PCA(E(x)) in deviations, clipped to +-clip
    z = c + 2 clip * Laplace(b),      b = 1 / epsilon  or  dims / epsilon

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
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privet.core.errors import PrivetError
from privet.methods.dp import LaplaceBudget, LaplaceMethod
from privet.methods.encoder import Encoder
from privet.methods.method import Problem, at_least, ranges_of
from privet.nets import plan as nets
from privet.nets.components import Components
from privet.nets.laplace import Laplace
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

# Records that components are learned from; more do not change the first few.
MOST_RECORDS = 2048
# Fewer, where the features of so many take more than this.
MOST_BYTES = 1e9


@dataclass(kw_only=True)
class Hybrid(LaplaceMethod, Encoder):
    """A few main components of learned features, with Laplace noise on each: a baseline.

    An encoder learns features that hide nothing (see `Encoder`), principal components reduce them
    to `dims` numbers, and noise is added to those. Whoever releases a record has the card's local
    differential privacy; the people of *fit* have no such promise.

    Parameters:
        dims: How many components are released; at most the number of features and of *fit* records.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Hybrid(width=0.05, epochs=1, dims=3, per="record")
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.shape, release.card["epsilon_record"]
        ((3,), 0.9)
    """

    dims: int = 8

    name = "hybrid"
    title = "Hybrid"
    ranges = ranges_of(**LaplaceMethod.ranges, dims=at_least(1))

    def accept(self, problem: Problem) -> Problem:
        features = Components(nets.plan(problem.schema).extractor(self.width), 1).mean
        most = min(len(features), len(problem.view()))
        if self.dims > most:
            raise PrivetError(
                f"The setting dims of hybrid is {self.dims}, and features of these records have "
                f"at most {most} components."
            )
        return problem

    def learn(self, problem: Problem, run: Run) -> Release:
        extractor, history = self.encode(problem, run)
        budget = LaplaceBudget.of(self.epsilon, self.per, self.dims, self.dims)
        components = Components(extractor, self.dims).to(problem.device)
        components.learn(self._features(components, problem))
        module = Laplace(components, budget.scale).to(problem.device)
        module.bound([-self.clip] * self.dims, [self.clip] * self.dims)
        return Release(
            problem.schema,
            ("hybrid", {"dims": self.dims, "width": self.width, "scale": budget.scale}),
            module,
            Noise("laplace", (self.dims,), budget.scale),
            {"history": history, **budget.card(problem.private, run)},
        )

    @torch.inference_mode()
    def _features(self, components: Components, problem: Problem) -> Tensor:
        feed = problem.feed()
        fitting = MOST_BYTES // (8 * len(components.mean))
        most = int(min(MOST_RECORDS, max(2 * self.dims, fitting)))
        some = np.random.default_rng(self.seed).permutation(len(feed))[:most]
        parts = np.array_split(some, math.ceil(len(some) / 256))
        return torch.cat([components.features(batch.x) for batch in feed.batches(parts)])
