"""How networks that attack learn: what all such adversaries share."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.adversary import (
    Adversary,
    Tick,
    has_label,
    ranking_score,
    silent,
    span,
)
from privet.adversaries.released import Released, View
from privet.data.dataset import Array, Attribute
from privet.nets.device import place, precision
from privet.train.cuda_graph import ReplayedStep, adamw, descend, set_rate

# The share of a training after which it may end early. Before, the rate is high and scores go up
# and down.
EARLIEST_END = 0.5


class Schedule(NamedTuple):
    """How long a network learns.

    Parameters:
        size: Records in a batch.
        steps: Batches in an epoch.
        epochs: Passes over the records.
        judged: Epochs after which it is judged on *select*.
    """

    size: int
    steps: int
    epochs: int
    judged: frozenset[int]

    @staticmethod
    def of(records: int, batch: int, epochs: int, least: int, judgements: int = 20) -> Schedule:
        """At least four batches, at least so many epochs and at least `least` steps: with few
        records there are more epochs, so that an attacker is never weak for want of time."""
        size = max(2, min(batch, records // 4))
        steps = max(1, records // size)
        epochs = max(epochs, math.ceil(least / steps))
        judged = np.linspace(0, epochs - 1, min(epochs, judgements)).astype(int)
        return Schedule(size, steps, epochs, frozenset(judged.tolist()))


class BestState:
    """The state of a network that scored highest so far.

    Parameters:
        net: The network.
        score: What its present state scores.
    """

    def __init__(self, net: nn.Module, score: float = -math.inf) -> None:
        self.net, self.score, self._state = net, score, copy.deepcopy(net.state_dict())
        self._scores: list[float] = []

    @property
    def falls(self) -> bool:
        """Whether the last three scores are each lower than the one before: what is learned now is
        learned by heart."""
        last = self._scores[-4:]
        return len(last) == 4 and all(after < before for before, after in pairwise(last))

    def offer(self, score: float) -> None:
        """Keep the network's present state if `score` is higher than all before."""
        self._scores.append(score)
        if score > self.score:
            self.score, self._state = score, copy.deepcopy(self.net.state_dict())

    def restore(self) -> None:
        """Set the network to the best state."""
        self.net.load_state_dict(self._state)


@dataclass(frozen=True)
class TrainedNetwork:
    """A network that has learned to read an attribute.

    Parameters:
        net: From released records to scores of classes, or to a standardised number.
        scale: Mean and deviation of a number on *attack*; None for classes.
    """

    net: nn.Module
    scale: tuple[float, float] | None = None

    @torch.no_grad()
    def answers(self, released: Released) -> Array:
        self.net.eval()
        with precision(released.feed.device):
            out = torch.cat([self.net(z).float() for z, _ in released.batches(512)]).cpu().double()
        if self.scale is None:
            return out.softmax(1).numpy()
        return (out[:, 0] * self.scale[1] + self.scale[0]).numpy()


@dataclass(frozen=True, kw_only=True)
class NetworkAdversary(Adversary):
    """A network trained with AdamW and one cycle of the learning rate, with fresh noise in every
    epoch. In the second half it stops where three judgements on *select* in a row fall. A subclass
    defines `build`, and `takes` where it cannot look at every kind of record.

    Parameters:
        epochs: Passes over the records.
        least: Fewest steps: with few records there are more epochs.
        batch: Records in a batch.
        rates: Learning rates to try; the one that ranks the *select* people best is kept.
        decay: Weight decay.
        width: Factor on layer sizes.
    """

    epochs: int = 20
    least: int = 400
    batch: int = 128
    rates: tuple[float, ...] = (1e-3,)
    decay: float = 1e-2
    width: float = 1.0

    def takes(self, view: View) -> bool:
        """Whether the network can look at such records."""
        return True

    @abstractmethod
    def build(self, view: View, outputs: int) -> nn.Module:
        """The network for records that look like this."""

    def suits(self, view: View, attribute: Attribute) -> bool:
        return self.takes(view) and attribute.kind != "mask"  # a mask has an answer per pixel

    def pretrained(
        self, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Tick
    ) -> dict[str, Tensor] | None:
        """Weights to start from, where an adversary is trained on something else first; those that
        do not fit are left out."""
        return None

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> TrainedNetwork:
        first = 0.5 if type(self).pretrained is not NetworkAdversary.pretrained else 0.0
        start = self.pretrained(seen, select, attribute, seed, span(tick, 0, first))
        ends = np.linspace(first, 1, len(self.rates) + 1)
        tries = [
            self.train(rate, seen, select, attribute, seed, start, span(tick, *ends[k : k + 2]))
            for k, rate in enumerate(self.rates)
        ]
        return max(tries, key=lambda result: result[0])[1]

    def train(
        self,
        lr: float,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int,
        start: dict[str, Tensor] | None,
        tick: Tick,
    ) -> tuple[float, TrainedNetwork]:
        """The best state along one training, and how well it ranks the *select* people."""
        torch.manual_seed(seed)
        device, labels = seen.feed.device, seen.labels(attribute.name)
        net = place(self.build(seen.view, max(attribute.classes, 1)), device)
        own = net.state_dict()
        fits = {k: v for k, v in (start or {}).items() if k in own and own[k].shape == v.shape}
        net.load_state_dict(own | fits)
        trained = TrainedNetwork(net, None if attribute.is_class else mean_and_deviation(labels))
        optimiser = adamw(net, lr, self.decay, device)
        size, steps, epochs, judged = Schedule.of(len(seen), self.batch, self.epochs, self.least)

        def learn(z: Tensor, wanted: Tensor) -> None:
            with precision(device):
                loss = prediction_loss(net(z).float(), wanted, trained.scale)
            descend(loss, optimiser)

        # Texts differ in length, and a recorded step needs batches of one shape.
        step = learn if None in seen.view.shape else ReplayedStep(learn)
        truth, best = select.labels(attribute.name), BestState(net)
        for epoch in range(epochs):
            net.train()
            batches = seen.batches(size, seed=seed * 1_000_003 + epoch, drop_last=True)
            for (z, wanted), done in zip(batches, range(steps), strict=False):
                set_rate(optimiser, lr * one_cycle((epoch * steps + done) / (epochs * steps)))
                step(z, wanted[attribute.name])
            if epoch in judged:
                best.offer(ranking_score(truth, trained.answers(select)))
            tick((epoch + 1) / epochs)
            if best.falls and epoch + 1 >= EARLIEST_END * epochs:
                break
        tick(1.0)
        best.restore()
        return best.score, trained


def one_cycle(done: float) -> float:
    """The learning rate along one cycle, as a share of its top: up for a fifth of the time, then
    down to zero, in cosines.

    Smith and Topin, Super-convergence, 2019.
    """
    if done < 0.2:
        return 0.52 - 0.48 * math.cos(math.pi * done / 0.2)
    return 0.5 + 0.5 * math.cos(math.pi * (done - 0.2) / 0.8)


def mean_and_deviation(labels: Array) -> tuple[float, float]:
    """Of the numbers that are present; the deviation is 1 where they do not vary."""
    present = labels[has_label(labels)]
    return (float(present.mean()), float(present.std()) or 1.0) if len(present) else (0.0, 1.0)


def prediction_loss(out: Tensor, labels: Tensor, scale: tuple[float, float] | None) -> Tensor:
    """Cross-entropy of classes, squared error of a standardised number, over the records that have
    a label."""
    if scale is None:
        return F.cross_entropy(out, labels, ignore_index=-1)
    present = torch.isfinite(labels)
    wanted = ((labels - scale[0]) / scale[1]).float()
    return torch.where(present, out[:, 0] - wanted, 0.0).square().sum() / present.sum()
