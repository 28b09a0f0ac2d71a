"""Confusion: TIPRDC's game, played for answers that say nothing, against several adversaries of
whom one is new every now and then.

    min_E  lambda * mean_i CE(uniform, C_i(z)) - (1 - lambda) * max_M J(x; z, u),      z = E(x)
    min_C_i  CE(C_i(z), u), every value of u with the same weight,                     i = 1 ... adversaries

In TIPRDC the extractor wins by making one adversary wrong: it drives that network into a corner
from which it does not come back, while another one, trained later, reads u as before
(docs/results.md). Three things are changed.

- The extractor is after *uniform* answers, not wrong ones, which are as telling as right ones. This is domain confusion (Tzeng, Hoffman,
  Darrell and Saenko, "Simultaneous deep transfer across domains and tasks", ICCV 2015), as used to remove a known bias by Alvi,
  Zisserman and Nellaker ("Turning a blind eye", ECCV Workshops 2018); Roy and Boddeti ("Mitigating information leakage in image
  representations: a maximum entropy approach", CVPR 2019), to whom this is closest, show why it is the stable choice.
- Several adversaries of different widths, each of which moves several times for every move of the extractor.
- Every `restart` rounds the one that has played longest starts again from random weights: the extractor has to withstand
  adversaries who come later, which is whom it will meet. (Restarts are ours; they are to adversaries what the audit is to the release.)

The information term and its networks are TIPRDC's, so no task needs to be known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.method import Method, Problem
from privet.methods.tiprdc import TIPRDCNetworks, scale_gradient
from privet.nets import plan as nets
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Game, Move, Phase, Player, Run

WIDTHS = (1.0, 0.5)
"""Of the adversaries, in turn, as factors on `width`."""


@dataclass(kw_only=True)
class Confusion(Method):
    budget: float = 0.9
    """lambda: 0 keeps everything, 1 only hides."""
    adversaries: int = 3
    steps: int = 3
    """Moves of the adversaries for each of the extractor's."""
    restart: int = 200
    """Rounds after which an adversary starts again; 0 for never."""
    width: float = 1.0
    """Factor on all layer sizes; 1 is TIPRDC's published size."""
    warmup: float = 5.0
    """Epochs in which extractor and adversaries learn to predict u."""
    epochs: float = 20.0
    """Epochs of the game, counted in records that the extractor sees."""
    batch: int = 64
    lr: float = 3e-4
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the features, fresh for every record."""

    name: ClassVar[str] = "confusion"
    title: ClassVar[str] = "Confusion"
    dial: ClassVar[str] = "budget"
    sweep: ClassVar[tuple[float, ...]] = (0.0, 0.5, 0.9, 1.0)

    def __post_init__(self) -> None:
        self.within(budget=(0, 1), adversaries=(1, inf), steps=(1, inf), restart=(0, inf))
        self.within(
            width=(0.01, inf),
            batch=(2, inf),
            lr=(1e-9, inf),
            noise=(0, inf),
            epochs=(0, inf),
            warmup=(0, inf),
        )

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = ConfusionNetworks(problem, self)
        phases = [networks.warm_up(self.warmup, self.lr), networks.confusing(self.epochs, self.lr)]
        game = Game(
            networks.modules(),
            phases,
            problem.feed(),
            self.batch,
            self.seed,
            self.identity(problem),
        )
        networks.rounds = game.rounds(phases[1])
        game.play(run)
        return networks.result(problem, self.width, game.history)


class ConfusionNetworks(TIPRDCNetworks):
    """TIPRDC's extractor and estimator, and a panel of adversaries in place of one."""

    def __init__(self, problem: Problem, method: Confusion) -> None:
        plan = nets.plan(problem.schema)
        self.method = method
        self.private, self.budget, self.noise, self.batch = (
            problem.private,
            method.budget,
            method.noise,
            method.batch,
        )
        self.extractor = plan.extractor(method.width)
        self.shape = cast(Sequence[int | None], self.extractor.shape)
        classes = sum(attribute.classes for attribute in self.private)
        self.estimator = plan.estimator(self.shape, classes, method.width)
        widths = [method.width * WIDTHS[i % len(WIDTHS)] for i in range(method.adversaries)]
        self.panel = Panel(plan.classifier(self.shape, classes, width) for width in widths)
        self.adversary = self.panel
        labels = problem.view().labels
        self.weights = [
            balance(torch.as_tensor(labels[a.name]), a.classes).to(problem.device)
            for a in self.private
        ]
        self.rounds, self.begun = 0, -1

    def confusing(self, epochs: float, lr: float) -> Phase:
        features = nn.ModuleList([self.extractor, self.estimator])
        players = [
            Player("features", features, self.confuse, lr),
            Player("panel", self.panel, self.catch_up, lr, self.method.steps),
        ]
        return Phase("confusing", epochs, players, schedule=self.begin, steady=True)

    def begin(self, done: float) -> float:
        """Called at the start of every round: time for an adversary to start again? Which round it
        is follows from what is done."""
        number = round(done * self.rounds)
        if (
            number != self.begun
            and self.method.restart
            and number
            and number % self.method.restart == 0
        ):
            self.panel.renew((number // self.method.restart - 1) % len(self.panel))
        self.begun = number
        return 1.0

    def accuse(self, batch: Batch, z: Tensor) -> Move:
        """The adversaries' loss: CE(C_i(z), u), values weighted equally, summed over the panel so
        that each has its own gradient."""
        losses, right = [], []
        for score in self._scores(z):
            for attribute, own, weight in zip(
                self.private, self._apart(score), self.weights, strict=True
            ):
                truth = batch.labels[attribute.name]
                known = (truth >= 0).sum().clamp(min=1)
                losses.append(
                    F.cross_entropy(own, truth, weight, ignore_index=-1, reduction="sum") / known
                )
                right.append(((own.argmax(1) == truth) & (truth >= 0)).sum() / known)
        loss = torch.stack(losses).mean()
        return Move(
            loss * len(self.panel),
            {"adversaries right": torch.stack(right).mean(), "adversaries loss": loss},
        )

    @torch.no_grad()
    def _released(self, batch: Batch) -> Tensor:
        return self.release(batch)

    def catch_up(self, batch: Batch) -> Move:
        return self.accuse(batch, self._released(batch))

    def confuse(self, batch: Batch) -> Move:
        """Extractor and estimator at once: the gradient of J is scaled by 1 - lambda where z enters
        M, which gives both their own."""
        z = self.release(batch)
        told = torch.stack(
            [uninformed(own) for score in self._scores(z) for own in self._apart(score)]
        ).mean()
        informed = self.inform(batch, scale_gradient(z, 1 - self.budget))
        return Move(self.budget * told + informed.loss, {"confusion": told, **informed.figures})

    def _scores(self, z: Tensor) -> list[Tensor]:
        return [adversary(z).float() for adversary in self.panel]

    def _apart(self, scores: Tensor) -> Sequence[Tensor]:
        return torch.split(scores, [a.classes for a in self.private], dim=1)


class Panel(nn.ModuleList):
    """Several adversaries of the same release."""

    def forward(self, z: Tensor) -> Tensor:
        """What they say together: the mean of their scores."""
        return torch.stack([adversary(z) for adversary in self]).mean(0)

    def renew(self, which: int) -> None:
        """New random weights for one of them, from torch's generator."""
        for module in self[which].modules():
            if callable(reset := getattr(module, "reset_parameters", None)):
                reset()


def uninformed(scores: Tensor) -> Tensor:
    """CE(uniform, softmax(scores)) less its smallest value log c: 0 where every value is as likely
    as any other.

    >>> uninformed(torch.zeros(3, 4)).item()
    0.0
    """
    return -scores.log_softmax(1).mean() - math.log(scores.shape[1])


def balance(labels: Tensor, classes: int) -> Tensor:
    """Weights that make every value count the same: n / (classes * n_value)."""
    count = torch.bincount(labels[labels >= 0], minlength=classes).float()
    return torch.where(count > 0, count.sum() / (classes * count.clamp(min=1)), 0.0)
