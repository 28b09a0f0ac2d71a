"""TIPRDC: features that hide u and keep the rest, without knowing the task.

    max_E  lambda * min_C CE(C(z), u) + (1 - lambda) * max_M J(x; z, u),        z = E(x)
    J = mean(-softplus(-M(x, z, u))) - mean(softplus(M(x', z, u))),             x' another record of the batch

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
from math import inf
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute
from privet.methods.method import Method, Problem
from privet.nets import plan as nets
from privet.nets.additive import Additive, add
from privet.nets.device import SideStream
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.distributed import everyone, everyones, size
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

MAIN_STREAM = SideStream(torch.device("cpu"))
"""No lane: everything on the main stream."""


@dataclass(kw_only=True)
class TIPRDC(Method):
    budget: float = 0.9
    """lambda: 0 keeps everything, 1 only hides."""
    width: float = 1.0
    """Factor on all layer sizes; 1 is the published size."""
    warmup: float = 5.0
    """Epochs in which extractor and adversary learn to predict u."""
    epochs: float = 20.0
    """Epochs of the game."""
    batch: int = 64
    lr: float = 3e-4
    """Adam's; the source says only that it is adaptive."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the features, fresh for every record; 0 as
    published."""
    fused: bool = True
    """All three players from one forward and one backward pass; the same gradients, a third of the
    work."""

    name: ClassVar[str] = "tiprdc"
    title: ClassVar[str] = "TIPRDC"
    dial: ClassVar[str] = "budget"
    sweep: ClassVar[tuple[float, ...]] = (0.0, 0.5, 0.9, 1.0)

    def __post_init__(self) -> None:
        if not 0 <= self.budget <= 1:
            raise PrivetError(
                f"The budget of tiprdc lies between 0 (keep everything) and 1 (only hide), not at {self.budget}."
            )
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
        networks = TIPRDCNetworks(problem, self)
        feed = problem.feed()
        phases = [
            networks.warm_up(self.warmup, self.lr),
            networks.play(self.epochs, self.lr, self.fused),
        ]
        game = Game(networks.modules(), phases, feed, self.batch, self.seed, self.identity(problem))
        game.play(run)
        return networks.result(problem, self.width, game.history)


class TIPRDCNetworks:
    """Extractor E, adversary C and information estimator M of one game, and what each of them
    wants."""

    def __init__(self, problem: Problem, method: TIPRDC) -> None:
        plan = nets.plan(problem.schema)
        self.private, self.budget, self.noise, self.batch = (
            problem.private,
            method.budget,
            method.noise,
            method.batch,
        )
        self.extractor = plan.extractor(method.width)
        self.shape = cast(Sequence[int | None], self.extractor.shape)
        classes = sum(attribute.classes for attribute in self.private)
        self.adversary = plan.classifier(self.shape, classes, method.width)
        self.estimator = plan.estimator(self.shape, classes, method.width)
        self._lane: SideStream | None = None

    def modules(self) -> dict[str, nn.Module]:
        return {
            "extractor": self.extractor,
            "adversary": self.adversary,
            "estimator": self.estimator,
        }

    def warm_up(self, epochs: float, lr: float) -> Phase:
        both = nn.ModuleList([self.extractor, self.adversary])
        predictors = Player(
            "predictors", both, lambda batch: self.accuse(batch, self.release(batch)), lr
        )
        return Phase("learning to predict", epochs, [predictors], steady=True)

    def play(self, epochs: float, lr: float, fused: bool) -> Phase:
        players = [
            Player(
                "adversary",
                self.adversary,
                lambda batch: self.accuse(batch, self.release(batch).detach()),
                lr,
            ),
            Player(
                "estimator",
                self.estimator,
                lambda batch: self.inform(batch, self.release(batch).detach()),
                lr,
            ),
            Player("extractor", self.extractor, self.defend, lr),
        ]
        return Phase("hiding", epochs, players, self.all_at_once if fused else None, steady=True)

    def result(self, problem: Problem, width: float, history: list[dict[str, Any]]) -> Release:
        """The extractor that came out of the game, with the noise it was played with."""
        card = {"in_game": self.judge(problem.feed("select")), "history": history}
        if not self.noise:
            return Release(
                problem.schema, ("extractor", {"width": width}), self.extractor, None, card
            )
        settings = {"width": width, "noise": self.noise}
        law = Noise("gaussian", tuple(self.shape), self.noise)
        return Release(
            problem.schema,
            ("noisy-extractor", settings),
            Additive(self.extractor, self.noise),
            law,
            card,
        )

    def release(self, batch: Batch) -> Tensor:
        z: Tensor = self.extractor(batch.x)
        return add(z, self.noise * torch.randn_like(z), batch.x) if self.noise else z

    def accuse(self, batch: Batch, z: Tensor) -> Move:
        """The adversary's loss: CE(C(z), u), the mean over the private attributes."""
        loss, right = cross_entropy(
            everyone(self.adversary(z)), everyones(batch.labels), self.private
        )
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
        loss = self.defence(accused, informed)
        return Move(loss, {**accused.figures, **informed.figures, "extractor loss": loss})

    def defence(self, accused: Move, informed: Move) -> Tensor:
        return -self.budget * accused.loss + (1 - self.budget) * informed.loss

    def all_at_once(self, batch: Batch) -> Move:
        """CE - J with the gradient scaled where z enters C (by -lambda) and M (by 1 - lambda):
        every player's own gradient."""
        z = self.release(batch)
        lane = self._beside(z.device)
        with lane.after([z, *batch.labels.values()]):
            accused = self.accuse(batch, scale_gradient(z, -self.budget))
        informed = self.inform(batch, scale_gradient(z, 1 - self.budget))
        lane.join(lane.mark(), [accused.loss, *accused.figures.values()])
        shown = {
            **accused.figures,
            **informed.figures,
            "extractor loss": self.defence(accused, informed),
        }
        return Move(accused.loss + informed.loss, shown)

    def _beside(self, device: torch.device) -> SideStream:
        """For the adversary, whose layers leave much of a GPU idle; none for a compiler, and for
        processes, which speak in turn."""
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
        index = np.array_split(np.arange(len(feed)), max(1, len(feed) // self.batch))
        pairs = [
            (self.adversary(self.release(batch)).float(), batch.labels)
            for batch in feed.batches(index)
        ]
        scores = torch.split(
            torch.cat([s for s, _ in pairs]), [a.classes for a in self.private], dim=1
        )
        said: dict[str, Any] = {}
        for attribute, score in zip(self.private, scores, strict=True):
            truth = torch.cat([labels[attribute.name] for _, labels in pairs])
            known = truth >= 0
            right = (score.argmax(1) == truth)[known].float()
            recalls = [right[truth[known] == c].mean().item() for c in torch.unique(truth[known])]
            said[attribute.name] = {
                "accuracy": right.mean().item(),
                "balanced": sum(recalls) / max(1, len(recalls)),
                "n": int(known.sum()),
                "part": "select",
            }
        return said


def cross_entropy(
    scores: Tensor, labels: dict[str, Tensor], attributes: Sequence[Attribute]
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and mean accuracy over several attributes whose scores stand side by side.
    -1 is not counted."""
    losses, right = [], []
    for attribute, score in zip(
        attributes, torch.split(scores, [a.classes for a in attributes], dim=1), strict=True
    ):
        truth = labels[attribute.name]
        losses.append(
            F.cross_entropy(score.float(), truth, ignore_index=-1, reduction="sum")
            / (truth >= 0).sum().clamp(min=1)
        )
        right.append(
            ((score.argmax(1) == truth) & (truth >= 0)).sum() / (truth >= 0).sum().clamp(min=1)
        )
    return torch.stack(losses).mean(), torch.stack(right).mean().detach()


def one_hot(labels: dict[str, Tensor], attributes: Sequence[Attribute]) -> Tensor:
    """Private attributes side by side as zeros and ones; all zeros where a label is missing."""
    parts = []
    for attribute in attributes:
        truth = labels[attribute.name]
        parts.append(
            F.one_hot(truth.clamp(min=0), attribute.classes).float() * (truth >= 0).unsqueeze(1)
        )
    return torch.cat(parts, dim=1)


def jensen_shannon(together: Tensor, apart: Tensor) -> Tensor:
    """J = mean(-softplus(-together)) - mean(softplus(apart)): at most 0, and -2 log 2 where nothing
    is told apart.

    Nowozin, Cseke and Tomioka, "f-GAN", NeurIPS 2016; Hjelm et al., "Deep InfoMax", ICLR 2019.
    """
    return -F.softplus(-together.float()).mean() - F.softplus(apart.float()).mean()


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


def scale_gradient(value: Tensor, factor: float) -> Tensor:
    """The value itself, whose gradient is multiplied by `factor` on the way back."""
    return cast(Tensor, _Scaled.apply(value, factor))  # type: ignore[no-untyped-call]
