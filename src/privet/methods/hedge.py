"""Hedge: a code of few numbers with noise on it, learned for a bound that no adversary can beat.

    z = c(x) + sigma xi,  xi ~ N(0, I_d) fresh for every record,  c(x) in [-1, 1]^d
    min over c, heads of  mean over tasks CE(head(z), y) [- information about x given u]
                          + weight * max(0, V(z; u) - allowed)

V is the success of the best adversary of all (methods/matching.py). How it is learned, what
`allowed` is, and how state and sigma are chosen is in methods/aiming.py. Certified on *test* by
`privet certify`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Array, Attribute
from privet.evidence.certificate.gaussian import smallest_sigma
from privet.evidence.certificate.smoothing import Draws
from privet.methods.certified import HELD_OUT, CertifiedMethod, CertifiedNetworks, encode
from privet.methods.method import Problem
from privet.methods.overlap_penalty import CodeMemory, success
from privet.nets.additive import Additive
from privet.nets.code import Code
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run

JUDGED = 2048
"""Releases whose best reading is judged at the end of an epoch."""
NOISES = 4.0
"""The noise that a state needs is looked for within this factor of learning's own."""
HALVINGS = 7
"""Of that range."""
HEAD = 64
"""Hidden units of a task's head; it sees d numbers."""


@dataclass(kw_only=True)
class Hedge(CertifiedMethod):
    sigma: float = 0.4
    """Standard deviation of the noise in learning; the release's own is chosen afterwards."""

    name: ClassVar[str] = "hedge"
    title: ClassVar[str] = "Hedge"
    strength: ClassVar[str] = "sigma"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.within(sigma=(1e-3, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = HedgeNetworks(problem, self)
        game = self.play(networks, problem, run)
        code = networks.best()
        sigma, chosen = self.least_noise(encode(code, problem.feed(*HELD_OUT)), problem, run)
        settings = {"dims": self.dims, "width": self.width, "dropout": self.dropout, "sigma": sigma}
        card = {"history": game.history, "chosen": chosen}
        return Release(
            problem.schema,
            ("hedge", settings),
            Additive(code, sigma),
            Noise("gaussian", (self.dims,), sigma),
            card,
        )

    def smallest_noise(
        self,
        codes: Array,
        labels: Array,
        person: Array,
        attribute: Attribute,
        people: Sequence[int],
    ) -> float | None:
        return smallest_sigma(
            codes,
            labels,
            person,
            attribute.values,
            self.target,
            people=people,
            confidence=self.confidence,
            margin=self.margin,
            between=(self.sigma / 20, 50 * self.sigma),
            draws=Draws(20_000, self.seed),
        )


class HedgeNetworks(CertifiedNetworks):
    def __init__(self, problem: Problem, method: Hedge) -> None:
        d, self.sigma = method.dims, method.sigma

        def head(classes: int) -> nn.Module:
            return nn.Sequential(nn.Linear(d, HEAD), nn.ReLU(), nn.Linear(HEAD, classes))

        code = Code(problem.schema, d, method.width, method.dropout)
        self.earlier = CodeMemory(method.memory, d, len(problem.private))
        super().__init__(problem, method, code, head, d, self.earlier)

    def released(self, codes: Tensor) -> Tensor:
        return codes + self.sigma * torch.randn_like(codes)

    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(head(z).float(), labels, ignore_index=-1)

    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        return self.pair(x, z, values)  # type: ignore[no-any-return]

    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        kept = self.earlier
        found = [
            success(
                z,
                codes,
                values[:, place],
                kept.codes,
                kept.values[:, place],
                self.sigma,
                attribute.classes,
            )
            for place, attribute in enumerate(self.private)
        ]
        kept.keep(codes, values)
        return found

    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        some = torch.as_tensor(
            np.random.default_rng(0).permutation(len(codes)), device=codes.device
        )
        shown, rest = some[:JUDGED], some[JUDGED:]
        noise = torch.randn(codes[shown].shape, generator=torch.Generator().manual_seed(0)).to(
            codes.device
        )

        def found(sigma: float) -> list[float]:
            z = codes[shown] + sigma * noise
            labels = [
                (others.labels[attribute.name], attribute.classes) for attribute in self.private
            ]
            return [
                float(success(z, codes[shown], v[shown], codes[rest], v[rest], sigma, classes))
                for v, classes in labels
            ]

        low, high = math.log(self.sigma / NOISES), math.log(self.sigma * NOISES)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            kept = all(
                value <= allowed
                for value, allowed in zip(found(math.exp(middle)), self.allowed, strict=True)
            )
            low, high = (low, middle) if kept else (middle, high)
        sigma = math.exp(high)
        z = codes[shown] + sigma * noise
        tasks = zip(self.utility, self.heads, strict=True)
        return found(sigma), [
            self.task_loss(head, z, codes, others.labels[task.name][shown]) for task, head in tasks
        ]
