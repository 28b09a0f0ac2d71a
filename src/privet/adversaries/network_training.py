"""What all adversaries that are networks share: how they learn, and which state along the way is
kept."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.adversary import Adversary, Tick, known, rank, silent
from privet.adversaries.released import Released, View
from privet.data.dataset import Array, Attribute
from privet.nets.device import place, precision
from privet.train.cuda_graph import Replayed, adamw, descend, set_rate


@dataclass(frozen=True)
class TrainedNetwork:
    net: nn.Module
    scale: tuple[float, float] | None = None
    """Mean and deviation of a number on *attack*; None for classes."""

    @torch.no_grad()
    def answers(self, released: Released) -> Array:
        self.net.eval()
        with precision(released.feed.device):
            out = torch.cat([self.net(z).float() for z, _ in released.batches(512)]).cpu().double()
        if self.scale is None:
            return out.softmax(1).numpy()
        return (out[:, 0] * self.scale[1] + self.scale[0]).numpy()


@dataclass(frozen=True, kw_only=True)
class Learned(Adversary):
    """A network trained with AdamW and one cycle of the learning rate; fresh noise in every
    epoch."""

    epochs: int = 20
    least: int = 400
    """Fewest steps: with few records there are more epochs, so that an attacker is never weak for
    want of time."""
    batch: int = 128
    rates: tuple[float, ...] = (1e-3,)
    """Learning rates to try; the one that ranks the *select* people best is kept."""
    decay: float = 1e-2
    width: float = 1.0
    """Factor on layer sizes."""

    @abstractmethod
    def build(self, view: View, outputs: int) -> nn.Module:
        """The network for records that look like this; written by every adversary of this kind."""

    def even(self, view: View) -> bool:
        """Whether every batch is worked on in the same way, so that a GPU can be told once; texts
        differ in length."""
        return not view.is_text and None not in view.shape

    def prepare(
        self, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Tick
    ) -> dict[str, Tensor] | None:
        """Weights to start from, where an adversary is taught something else first; names that do
        not fit are left out."""
        return None

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> TrainedNetwork:
        first = 0.5 if type(self).prepare is not Learned.prepare else 0.0
        start = self.prepare(seen, select, attribute, seed, lambda share: tick(first * share))

        def part(done: int) -> Tick:
            return lambda share: tick(first + (1 - first) * (done + share) / len(self.rates))

        tries = [
            self._try(rate, seen, select, attribute, seed, start, part(done))
            for done, rate in enumerate(self.rates)
        ]
        return max(tries, key=lambda result: result[0])[1]

    def _try(
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
        device = seen.feed.device
        net = place(self.build(seen.view, max(attribute.classes, 1)), device)
        if start is not None:
            own = net.state_dict()
            net.load_state_dict(
                {
                    k: start[k] if k in start and start[k].shape == v.shape else v
                    for k, v in own.items()
                }
            )
        labels = seen.labels(attribute.name)
        scale = None if attribute.is_class else spread(labels)
        optimiser = adamw(net, lr, self.decay, device)
        size = max(2, min(self.batch, len(seen) // 4))
        steps = max(1, len(seen) // size)
        epochs = max(self.epochs, math.ceil(self.least / steps))

        def learn(z: Tensor, answers: Tensor) -> None:
            with precision(device):
                loss = error(net(z).float(), answers, scale)
            descend(loss, optimiser)

        step = Replayed(learn) if self.even(seen.view) else learn
        truth = select.labels(attribute.name)
        best, kept = -math.inf, copy.deepcopy(net.state_dict())
        judged = sorted({*np.linspace(0, epochs - 1, min(epochs, 20)).astype(int).tolist()})
        for epoch in range(epochs):
            net.train()
            batches = seen.batches(size, seed=seed * 1_000_003 + epoch, drop_last=True)
            for (z, answers), done in zip(batches, range(steps), strict=False):
                set_rate(optimiser, lr * cycle((epoch * steps + done) / (epochs * steps)))
                step(z, answers[attribute.name])
            if epoch in judged:
                score = rank(truth, TrainedNetwork(net, scale).answers(select))
                if score > best:
                    best, kept = score, copy.deepcopy(net.state_dict())
            tick((epoch + 1) / epochs)
        net.load_state_dict(kept)
        return best, TrainedNetwork(net, scale)


def cycle(done: float) -> float:
    """The rate along one cycle, as a share of its top: up for a fifth of the time, then down to
    zero, in cosines.

    Smith and Topin, Super-convergence, 2019.
    """
    return (
        0.52 - 0.48 * math.cos(math.pi * done / 0.2)
        if done < 0.2
        else 0.5 + 0.5 * math.cos(math.pi * (done - 0.2) / 0.8)
    )


def spread(labels: Array) -> tuple[float, float]:
    """Mean and deviation of the numbers that are there."""
    there = labels[known(labels)]
    return (float(there.mean()), float(there.std()) or 1.0) if len(there) else (0.0, 1.0)


def error(out: Tensor, labels: Tensor, scale: tuple[float, float] | None) -> Tensor:
    """Cross-entropy of classes, squared error of a standardised number, over the records whose
    label is there."""
    if scale is None:
        return F.cross_entropy(out, labels, ignore_index=-1)
    there = torch.isfinite(labels)
    wanted = ((labels - scale[0]) / scale[1]).float()
    return torch.where(there, out[:, 0] - wanted, 0.0).square().sum() / there.sum()
