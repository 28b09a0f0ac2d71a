"""Adversary: hyper-parameters in the constructor, data in `attack`. Sees released records only.

Every adversary here is a network that learns from the *attack* people, keeps the state that ranks the *select* people best,
and is then asked about people neither it nor the release has seen. A task model is the same thing with another label.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from privet.adversaries.released import Released, View
from privet.data.dataset import Array, Attribute
from privet.device import place, precision
from privet.evidence.leakage import auc


@dataclass(frozen=True)
class Trained:
    """An adversary that has learned."""

    net: nn.Module

    @torch.no_grad()
    def probabilities(self, released: Released) -> Array:
        """(n, classes), in the order of the data."""
        self.net.eval()
        with precision(released.feed.device):
            scores = [self.net(z).float().softmax(1).cpu() for z, _ in released.batches(512)]
        return torch.cat(scores).double().numpy()


@dataclass(frozen=True, kw_only=True)
class Adversary(ABC):
    epochs: int = 20
    least: int = 400
    """Fewest steps: with few records there are more epochs, so that an attacker is never weak for want of time."""
    batch: int = 128
    rates: tuple[float, ...] = (1e-3,)
    """Learning rates to try; the one that ranks the *select* people best is kept."""
    decay: float = 1e-2
    width: float = 1.0
    """Factor on layer sizes."""

    name: ClassVar[str]

    @abstractmethod
    def build(self, view: View, classes: int) -> nn.Module:
        """The network for records that look like this; written by every adversary."""

    def attack(
        self, seen: Released, select: Released, attribute: Attribute, seed: int = 0, tick: Callable[[float], None] = lambda _done: None
    ) -> Trained:
        """Learn to read the attribute from released records of the *attack* people. `tick` hears the share that is done."""

        def part(done: int) -> Callable[[float], None]:
            return lambda share: tick((done + share) / len(self.rates))

        tries = [self._try(rate, seen, select, attribute, seed, part(done)) for done, rate in enumerate(self.rates)]
        return max(tries, key=lambda result: result[0])[1]

    def _try(
        self, lr: float, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Callable[[float], None]
    ) -> tuple[float, Trained]:
        """The best state along one training, and how well it ranks the *select* people."""
        torch.manual_seed(seed)
        device = seen.feed.device
        net = place(self.build(seen.view, attribute.classes), device)
        optimiser = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=self.decay)
        size = max(2, min(self.batch, len(seen) // 4))
        steps = max(1, len(seen) // size)
        epochs = max(self.epochs, math.ceil(self.least / steps))
        rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=epochs * steps, pct_start=0.2)
        truth = select.labels(attribute.name)
        best, kept = -math.inf, copy.deepcopy(net.state_dict())
        judged = sorted({*np.linspace(0, epochs - 1, min(epochs, 20)).astype(int).tolist()})
        for epoch in range(epochs):
            net.train()
            batches = seen.batches(size, seed=seed * 1_000_003 + epoch, drop_last=True)
            for (z, labels), _ in zip(batches, range(steps), strict=False):
                with precision(device):
                    loss = F.cross_entropy(net(z).float(), labels[attribute.name], ignore_index=-1)
                optimiser.zero_grad(set_to_none=True)
                if torch.isfinite(loss):
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
                rate.step()
            if epoch in judged:
                score = _rank(truth, Trained(net).probabilities(select))
                if score > best:
                    best, kept = score, copy.deepcopy(net.state_dict())
            tick((epoch + 1) / epochs)
        net.load_state_dict(kept)
        return best, Trained(net)


def _rank(truth: Array, probabilities: Array) -> float:
    """How well the classes are ranked: unlike accuracy, this does not depend on a threshold."""
    known = truth >= 0
    value = auc(truth[known], probabilities[known])
    return 0.5 if value is None else value
