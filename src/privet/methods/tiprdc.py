"""TIPRDC: features that hide u and keep the rest, without knowing the task.

    max_E  lambda * min_C CE(C(z), u) + (1 - lambda) * max_M J(x; z, u),        z = E(x)
    J = mean(-softplus(-M(x, z, u))) - mean(softplus(M(x', z, u))),   x' another record of the batch

Li, Duan, Yang, Chen and Yang, "TIPRDC: Task-Independent Privacy-Respecting Data Crowdsourcing
Framework for Deep Learning with Anonymized Intermediate Representations", KDD 2020: equations 9 and
18, Algorithm 1, Tables 1 and 2.

J is the Jensen-Shannon lower bound on I(x; z, u); since I(x; u) does not depend on E, it stands for
I(x; z | u). The extractor and the adversary first learn together to *predict* u, then the three
play against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Attribute
from privet.methods.known_labels import (
    class_figures,
    mean_loss_and_accuracy,
    one_hot_known,
    split_scores,
)
from privet.methods.method import Method, Problem, ranges_of
from privet.nets import plan as nets
from privet.nets.additive import Additive, add
from privet.nets.device import SideStream
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.distributed import everyone, everyones, size
from privet.train.feed import Batch, Feed
from privet.train.game import Move, Phase, Player, Run

# No second stream of a GPU: everything is computed in turn.
MAIN_STREAM = SideStream(torch.device("cpu"))


@dataclass(kw_only=True)
class FeatureMethod(Method):
    """The settings of methods that play TIPRDC's game: features against adversaries.

    Parameters:
        budget: lambda, the share of hiding in the objective: 0 only keeps information, 1 only
            hides.
        width: Factor on all layer sizes; 1 is the size published for TIPRDC.
        warmup: Epochs in which extractor and adversary learn together to predict u.
        epochs: Epochs of the game, counted in records that the extractor sees.
        batch: Records per step.
        lr: Learning rate of Adam, for every network; the source says only that it is adaptive.
        noise: Standard deviation of Gaussian noise on the features, fresh for every record; 0 as
            published.
    """

    budget: float = 0.9
    width: float = 1.0
    warmup: float = 5.0
    epochs: float = 20.0
    batch: int = 64
    lr: float = 3e-4
    noise: float = 0.0

    dial = "budget"
    sweep = (0.0, 0.5, 0.9, 1.0)
    ranges = ranges_of(budget=(0, 1))


@dataclass(kw_only=True)
class TIPRDC(FeatureMethod):
    """Features that hide the private attribute and keep other information, for unknown tasks.

    An extractor learns features from which an adversary reads the private attribute badly, while an
    estimator of mutual information keeps them telling about the record otherwise. It is learned
    without any task: give tasks to `privet.audit`.

    Parameters:
        fused: Move all three networks by one forward and one backward pass: the same gradients for
            a third of the work.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.TIPRDC(width=0.05, warmup=1, epochs=1)
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.card["title"], sorted(release.card["in_game"]["beard"])
        ('TIPRDC', ['accuracy', 'balanced', 'n', 'part'])

    Notes:
        The adversary of the game is one network. Others that are trained afterwards often read more
        than it does (docs/results/tiprdc.md); nothing is certified unless `noise` is above 0.
    """

    fused: bool = True

    name = "tiprdc"
    title = "TIPRDC"

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = TIPRDCNetworks(problem, self)
        phases = [
            networks.warm_up(self.warmup, self.lr),
            networks.play(self.epochs, self.lr, self.fused),
        ]
        history = self.game(problem, networks.modules(), phases, self.batch).play(run)
        return networks.release_of(problem, history)


class TIPRDCNetworks:
    """Extractor E, adversary C and information estimator M of one game, and their objectives."""

    def __init__(self, problem: Problem, method: FeatureMethod) -> None:
        plan = nets.plan(problem.schema)
        self.method, self.private, self.budget = method, problem.private, method.budget
        self.extractor = plan.extractor(method.width)
        self.shape = cast(Sequence[int | None], self.extractor.shape)
        classes = sum(attribute.classes for attribute in self.private)
        self.adversary, self.estimator = self._opponents(plan, classes)
        self._lane: SideStream | None = None

    def _opponents(self, plan: nets.Plan, classes: int) -> tuple[nn.Module, nn.Module]:
        """The adversary and the estimator; the order in which they are made is part of a seed."""
        adversary = plan.classifier(self.shape, classes, self.method.width)
        return adversary, plan.estimator(self.shape, classes, self.method.width)

    def modules(self) -> dict[str, nn.Module]:
        return {
            "extractor": self.extractor,
            "adversary": self.adversary,
            "estimator": self.estimator,
        }

    def warm_up(self, epochs: float, lr: float) -> Phase:
        predictors = Player(
            "predictors",
            nn.ModuleList([self.extractor, self.adversary]),
            lambda batch: self.accuse(batch, self.release(batch)),
            lr,
        )
        return Phase("learning to predict", epochs, [predictors], steady=True)

    def play(self, epochs: float, lr: float, fused: bool) -> Phase:
        objectives = {
            "adversary": lambda batch: self.accuse(batch, self.release(batch).detach()),
            "estimator": lambda batch: self.inform(batch, self.release(batch).detach()),
            "extractor": self.defend,
        }
        players = [Player(k, self.modules()[k], move, lr) for k, move in objectives.items()]
        return Phase("hiding", epochs, players, self.all_at_once if fused else None, steady=True)

    def release_of(self, problem: Problem, history: list[dict[str, Any]]) -> Release:
        """The extractor as it is after the game, with the noise of the game."""
        card = {"in_game": self.judge(problem.feed("select")), "history": history}
        settings, noise = {"width": self.method.width}, self.method.noise
        if not noise:
            return Release(problem.schema, ("extractor", settings), self.extractor, None, card)
        return Release(
            problem.schema,
            ("noisy-extractor", {**settings, "noise": noise}),
            Additive(self.extractor, noise),
            Noise("gaussian", tuple(self.shape), noise),
            card,
        )

    def release(self, batch: Batch) -> Tensor:
        z: Tensor = self.extractor(batch.x)
        noise = self.method.noise
        return add(z, noise * torch.randn_like(z), batch.x) if noise else z

    def accuse(self, batch: Batch, z: Tensor) -> Move:
        """The adversary's loss: CE(C(z), u), the mean over the private attributes."""
        scores, labels = everyone(self.adversary(z)), everyones(batch.labels)
        loss, right = mean_loss_and_accuracy(scores, labels, self.private)
        return Move(loss, {"adversary right": right, "adversary loss": loss})

    def inform(self, batch: Batch, z: Tensor) -> Move:
        """The estimator's loss: -J."""
        together, apart = self.estimator(batch.x, z, one_hot(batch.labels, self.private))
        value = jensen_shannon(together, apart)
        return Move(-value, {"information J": value})

    def defend(self, batch: Batch) -> Move:
        """The extractor's loss: -lambda CE - (1 - lambda) J."""
        z = self.release(batch)
        accused, informed = self.accuse(batch, z), self.inform(batch, z)
        loss = self._defence(accused, informed)
        return Move(loss, {**accused.figures, **informed.figures, "extractor loss": loss})

    def _defence(self, accused: Move, informed: Move) -> Tensor:
        return -self.budget * accused.loss + (1 - self.budget) * informed.loss

    def all_at_once(self, batch: Batch) -> Move:
        """CE - J with the gradient scaled where z enters C (by -lambda) and M (by 1 - lambda):
        every network gets its own gradient."""
        z = self.release(batch)
        lane = self._adversary_stream(z.device)
        with lane.after([z, *batch.labels.values()]):
            accused = self.accuse(batch, scale_gradient(z, -self.budget))
        informed = self.inform(batch, scale_gradient(z, 1 - self.budget))
        lane.join(lane.mark(), [accused.loss, *accused.figures.values()])
        return Move(
            accused.loss + informed.loss,
            {
                **accused.figures,
                **informed.figures,
                "extractor loss": self._defence(accused, informed),
            },
        )

    def _adversary_stream(self, device: torch.device) -> SideStream:
        """A second stream of the GPU for the adversary, whose layers leave much of it idle. None
        for a compiler, or where several processes exchange numbers in a fixed order."""
        if device.type != "cuda" or size() > 1 or torch.compiler.is_compiling():
            return MAIN_STREAM
        self._lane = self._lane or SideStream(device)
        return self._lane

    @torch.inference_mode()
    def judge(self, feed: Feed) -> dict[str, Any]:
        """How often the game's own adversary is right about people it has not seen: what the paper
        would report."""
        for module in self.modules().values():
            module.eval()
        index = np.array_split(np.arange(len(feed)), max(1, len(feed) // self.method.batch))
        scores = [self.adversary(self.release(batch)).float() for batch in feed.batches(index)]
        return {
            attribute.name: {**class_figures(score, feed.labels[attribute.name]), "part": "select"}
            for attribute, score in zip(
                self.private, split_scores(torch.cat(scores), self.private), strict=True
            )
        }


def one_hot(labels: dict[str, Tensor], attributes: Sequence[Attribute]) -> Tensor:
    """Private attributes side by side as zeros and ones; all zeros where a label is missing."""
    columns = [one_hot_known(labels[a.name], a.classes) for a in attributes]
    return torch.cat(columns, dim=1)


def jensen_shannon(together: Tensor, apart: Tensor) -> Tensor:
    """J = mean(-softplus(-together)) - mean(softplus(apart)): at most 0, and -2 log 2 where nothing
    is told apart.

    Nowozin, Cseke and Tomioka, "f-GAN", NeurIPS 2016; Hjelm et al., "Deep InfoMax", ICLR 2019.
    """
    return -F.softplus(-together.float()).mean() - F.softplus(apart.float()).mean()


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


def scale_gradient(value: Tensor, factor: float) -> Tensor:
    """The value itself, whose gradient is multiplied by `factor` on the way back."""
    return cast(Tensor, _ScaledGradient.apply(value, factor))  # type: ignore[no-untyped-call]
