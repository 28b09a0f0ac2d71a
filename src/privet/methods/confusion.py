"""Confusion: TIPRDC's game for uninformative answers, against several adversaries that start anew.

    min_E  lambda * mean_i CE(uniform, C_i(z)) - (1 - lambda) * max_M J(x; z, u),      z = E(x)
    min_C_i  CE(C_i(z), u), every value of u with the same weight,     i = 1 ... adversaries

In TIPRDC the extractor wins by making one adversary wrong: it drives that network into a corner
from which it does not come back, while another one, trained later, reads u as before
(docs/results/tiprdc.md). Three things are changed.

- The extractor is after *uniform* answers, not wrong ones, which are as telling as right ones. This
  is domain confusion (Tzeng, Hoffman, Darrell and Saenko, "Simultaneous deep transfer across
  domains and tasks", ICCV 2015), as used to remove a known bias by Alvi, Zisserman and Nellaker
  ("Turning a blind eye", ECCV Workshops 2018); Roy and Boddeti ("Mitigating information leakage in
  image representations: a maximum entropy approach", CVPR 2019), to whom this is closest, show why
  it is the stable choice.
- Several adversaries of different widths, each of which moves several times for every move of the
  extractor.
- Every `restart` rounds the one that has played longest starts again from random weights: the
  extractor has to withstand adversaries who come later, which is whom it will meet. (Restarts are
  ours; they are to adversaries what the audit is to the release.)

The information term and its networks are TIPRDC's, so no task needs to be known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privet.methods.known_labels import accuracy, cross_entropy, split_scores
from privet.methods.method import Problem, at_least, ranges_of
from privet.methods.tiprdc import FeatureMethod, TIPRDCNetworks, scale_gradient
from privet.nets import plan as nets
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# Of the adversaries, in turn, as factors on `width`.
WIDTHS = (1.0, 0.5)


@dataclass(kw_only=True)
class Confusion(FeatureMethod):
    """Features that leave several adversaries without an idea of the private attribute.

    Like TIPRDC, it keeps information about the record for unknown tasks. Unlike it, the extractor
    makes the adversaries' answers uniform instead of wrong, there are several adversaries, and one
    of them starts again from random weights every now and then.

    Parameters:
        adversaries: How many adversaries there are. Every second one has half the width.
        steps: Moves of the adversaries for each of the extractor's.
        restart: Rounds after which an adversary starts again; 0 for never.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Confusion(width=0.05, warmup=1, epochs=1, adversaries=2)
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.card["settings"]["adversaries"], release.noise
        (2, None)

    Notes:
        A round takes about `adversaries` times `steps` as long as one of TIPRDC. What holds
        against these adversaries need not hold against all: audit it.
    """

    adversaries: int = 3
    steps: int = 3
    restart: int = 200

    name = "confusion"
    title = "Confusion"
    ranges = ranges_of(
        budget=(0, 1), adversaries=at_least(1), steps=at_least(1), restart=at_least(0)
    )

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = ConfusionNetworks(problem, self)
        phases = [networks.warm_up(self.warmup, self.lr), networks.confusing(self.epochs, self.lr)]
        game = self.game(problem, networks.modules(), phases, self.batch)
        networks.rounds = game.rounds(phases[1])
        return networks.release_of(problem, game.play(run))


class ConfusionNetworks(TIPRDCNetworks):
    """TIPRDC's extractor and estimator, and a panel of adversaries in place of one."""

    method: Confusion
    adversary: Panel

    def __init__(self, problem: Problem, method: Confusion) -> None:
        super().__init__(problem, method)
        labels = problem.view().labels
        self.weights = [
            class_weights(torch.as_tensor(labels[a.name]), a.classes).to(problem.device)
            for a in self.private
        ]
        self.rounds, self.last_round = 0, -1

    def _opponents(self, plan: nets.Plan, classes: int) -> tuple[nn.Module, nn.Module]:
        width = self.method.width
        estimator = plan.estimator(self.shape, classes, width)
        widths = [width * WIDTHS[i % len(WIDTHS)] for i in range(self.method.adversaries)]
        return Panel(plan.classifier(self.shape, classes, one) for one in widths), estimator

    def confusing(self, epochs: float, lr: float) -> Phase:
        features = nn.ModuleList([self.extractor, self.estimator])
        players = [
            Player("features", features, self.confuse, lr),
            Player("panel", self.adversary, self.catch_up, lr, self.method.steps),
        ]
        return Phase("confusing", epochs, players, schedule=self.begin_round, steady=True)

    def begin_round(self, done: float) -> float:
        """Called at the start of every round: is it time for an adversary to start again? Which
        round it is follows from the share that is done."""
        number, restart = round(done * self.rounds), self.method.restart
        if number != self.last_round and restart and number and number % restart == 0:
            self.adversary.renew((number // restart - 1) % len(self.adversary))
        self.last_round = number
        return 1.0

    def accuse(self, batch: Batch, z: Tensor) -> Move:
        """The adversaries' loss: CE(C_i(z), u), values weighted equally, summed over the panel so
        that each has its own gradient."""
        losses, right = [], []
        for scores in self._scores(z):
            for attribute, score, weight in zip(self.private, scores, self.weights, strict=True):
                truth = batch.labels[attribute.name]
                losses.append(cross_entropy(score, truth, weight))
                right.append(accuracy(score, truth))
        loss = torch.stack(losses).mean()
        return Move(
            loss * len(self.adversary),
            {"adversaries right": torch.stack(right).mean(), "adversaries loss": loss},
        )

    def catch_up(self, batch: Batch) -> Move:
        with torch.no_grad():
            z = self.release(batch)
        return self.accuse(batch, z)

    def confuse(self, batch: Batch) -> Move:
        """Extractor and estimator at once: the gradient of J is scaled by 1 - lambda where z enters
        M, which gives both their own."""
        z = self.release(batch)
        told = torch.stack(
            [uninformed(score) for scores in self._scores(z) for score in scores]
        ).mean()
        informed = self.inform(batch, scale_gradient(z, 1 - self.budget))
        return Move(self.budget * told + informed.loss, {"confusion": told, **informed.figures})

    def _scores(self, z: Tensor) -> list[tuple[Tensor, ...]]:
        """Per adversary, its scores of each attribute."""
        return [split_scores(one(z).float(), self.private) for one in self.adversary]


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


def class_weights(labels: Tensor, classes: int) -> Tensor:
    """Weights that make every value count the same: n / (classes * n_value)."""
    count = torch.bincount(labels[labels >= 0], minlength=classes).float()
    return torch.where(count > 0, count.sum() / (classes * count.clamp(min=1)), 0.0)
