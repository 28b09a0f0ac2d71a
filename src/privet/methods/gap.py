"""Generative adversarial privacy: a channel that keeps the record's form and takes the private
attribute out of it.

    min_W  E d(x, x~) + penalty * privacy(x~; u) [+ keep * mean over tasks CE(h(x~), y)],        x~ = W(x, xi) or W(x, u, xi)
    or     min_W  privacy(x~; u) [+ ...]   subject to  E d(x, x~) <= distortion

    privacy, form "entropy"      max(0, H(u) - min_f CE(f(x~), u))
             form "variation"    sup_{|f| <= 1} E_{u = 1} f(x~) - E_{u = 0} f(x~)
             u a number          max(0, 1 - min_f E (f(x~) - u)^2 / Var(u))                       (telling.py)

Chen, Rich and Chen, "Generative modeling for context-aware local privacy" (report; code
GAPP-image): equation 4 and Algorithm 1, an autoencoder as channel, both players pre-trained, itr_d
and itr_g moves in turn, different records for the two. With `distortion`, `aware` and
channel=shift: Huang, Kairouz, Chen, Sankar and Rajagopal, "Context-aware generative adversarial
privacy", Entropy 19 (2017).

The sources let W maximise CE without end. H(u) - CE is the same gradient until the adversary is at
guessing and none beyond: an adversary that is *wrong* too often is told as much. A budget is kept
at every step, by scaling what the channel changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Array, Dataset, Modality
from privet.data.known_attributes import Given, in_classes, know
from privet.data.schema import ImageSchema
from privet.evidence.distortion import psnr, ssim
from privet.methods.adversary_loss import AdversaryGain, adversary_gain
from privet.methods.method import Method, Problem
from privet.nets.channel import CHANNELS, Distance, Spent, channel_of, levels_of
from privet.nets.code import body
from privet.nets.similarity import similarity
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

FORMS = ("entropy", "variation")
DISTANCES = ("l1", "l2", "ssim")


@dataclass(frozen=True)
class Regime:
    """The sources' two sets of hyper-parameters."""

    pre_d: float
    pre_g: float
    rounds: int
    itr_d: int
    itr_g: int


REGIMES = {"low": Regime(25, 25, 300, 15, 20), "high": Regime(10, 10, 50, 800, 500)}
GIVEN_BINS = 8
"""Classes in which a private number is given to a channel that sees it."""


@dataclass(kw_only=True)
class GAP(Method):
    penalty: float = 0.3
    """lambda: what an adversary's success costs, in units of the distance."""
    distortion: float = 0.0
    """A budget for E d(x, x~); above 0 it replaces the penalty."""
    form: str = "entropy"
    """How an adversary's success is counted: entropy or variation. Of a number it is always the
    squared error."""
    distance: str = "l1"
    """d: l1 or l2 (mean over a record's numbers, in the network's scale), or ssim (1 - SSIM,
    pictures)."""
    channel: str = "autoencoder"
    """autoencoder, or shift: x + b_u + g noise."""
    noise: float = 0.5
    """Deviation of the noise on the standardised encoding (shift: where g starts); 0 is the
    published, deterministic channel."""
    aware: bool = False
    """Whether the channel sees u. The release then needs it with every record."""
    sampled: bool = False
    """Of tables: draw categories and numbers of few values from odds, so that each stays one of its
    values."""
    bins: int = 0
    """Turn private numbers into so many equally frequent classes; 0 leaves them numbers."""
    keep: float = 1.0
    """Weight of the tasks, where there are any."""
    regime: str = "low"
    """low or high: sets what is left negative below."""
    pre_d: float = -1.0
    """Epochs in which the adversary learns before the game."""
    pre_g: float = -1.0
    """Epochs in which the channel learns to give records back before the game."""
    rounds: int = -1
    itr_d: int = -1
    """Moves of the adversary in a round."""
    itr_g: int = -1
    """Moves of the channel in a round."""
    width: float = 0.5
    batch: int = 128
    lr: float = 1e-3

    name: ClassVar[str] = "gap"
    title: ClassVar[str] = "Generative adversarial privacy"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "optional"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = "a channel that writes text is not part of it; use hedge or tiprdc"
    numbers: ClassVar[bool] = True
    dial: ClassVar[str] = "penalty"
    sweep: ClassVar[tuple[float, ...]] = (0.03, 0.1, 0.3, 1.0)

    def __post_init__(self) -> None:
        for what, known in (
            ("form", FORMS),
            ("distance", DISTANCES),
            ("channel", CHANNELS),
            ("regime", tuple(REGIMES)),
        ):
            if getattr(self, what) not in known:
                raise unknown(f"{what} of gap", getattr(self, what), known)
        self.within(
            penalty=(0, inf),
            distortion=(0, inf),
            noise=(0, inf),
            keep=(0, inf),
            bins=(0, 100),
            width=(0.01, inf),
            batch=(8, inf),
        )
        self.within(
            lr=(1e-9, inf),
            pre_d=(-1, inf),
            pre_g=(-1, inf),
            rounds=(-1, inf),
            itr_d=(-1, inf),
            itr_g=(-1, inf),
        )
        if self.bins == 1:
            raise PrivetError(
                "One bin holds everybody: the setting bins of gap is 0 or at least 2."
            )
        if self.distortion and self.distance == "ssim":
            raise PrivetError(
                "A budget is kept by scaling what is changed, for which distance must be l1 or l2; with ssim, set the penalty."
            )
        if self.sampled and self.channel == "shift":
            raise PrivetError(
                "A shift moves numbers and draws none: leave out sampled, or take channel=autoencoder."
            )

    @property
    def plan(self) -> Regime:
        """What is played: the regime's figures where none are set."""
        own = {
            key: value
            for key in ("pre_d", "pre_g", "rounds", "itr_d", "itr_g")
            if (value := getattr(self, key)) >= 0
        }
        return replace(REGIMES[self.regime], **own)

    def problem(self, data: Dataset, private: Any, utility: Any, without: Any, run: Run) -> Problem:
        problem = super().problem(data, private, utility, without, run)
        if self.distance == "ssim" and data.modality != "image":
            raise PrivetError(
                f"SSIM compares pictures, and these are {data.modality} records: set distance=l1 or l2."
            )
        if self.sampled and data.modality != "table":
            raise PrivetError(
                f"Only columns of a table can be sampled, and these are {data.modality} records."
            )
        known = know(data, problem.private, self.bins or GIVEN_BINS) if self.aware else ()
        if self.bins:
            classes, private = in_classes(data, problem.private, self.bins)
            problem = replace(problem, data=classes, private=private)
        return replace(problem, schema=Given(problem.schema, known)) if known else problem

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = GAPNetworks(problem, self)
        game = Game(
            networks.modules(),
            networks.phases(),
            networks.feed,
            self.batch,
            self.seed,
            self.identity(problem),
        )
        game.play(run)
        for module in networks.modules().values():
            module.eval()
        if self.distortion:
            networks.channel.reach.copy_(networks.spent_on_all().reach(self.distortion))
        draws = networks.channel.draws
        noise = Noise("gaussian", draws, self.noise) if draws else None
        card = {
            "form": "record",
            "classes": {a.name: list(a.values) for a in problem.private},
            **networks.judge(problem),
        }
        card["history"] = game.history
        return Release(
            problem.schema, ("channel", networks.settings), networks.channel, noise, card
        )


class GAPNetworks:
    """The channel W, the adversary f and the readers h of tasks, and what each of them wants."""

    def __init__(self, problem: Problem, method: GAP) -> None:
        self.method, self.private, self.utility = method, problem.private, problem.utility
        self.schema, self.feed = problem.schema, problem.feed()
        self.settings: dict[str, Any] = {
            "kind": method.channel,
            "width": method.width,
            "noise": method.noise,
            "levels": levels_of(problem.schema.plain, problem.view()) if method.sampled else [],
        }
        self.channel = channel_of(problem.schema, **self.settings)
        self.adversary = body(
            problem.schema.plain, sum(max(1, a.classes) for a in self.private), method.width, 0.0
        )
        self.readers = nn.ModuleList(
            [body(problem.schema.plain, task.classes, method.width, 0.0) for task in self.utility]
        )
        self.judges = [
            adversary_gain(a, problem.view().labels[a.name], method.form) for a in self.private
        ]
        self.halves = _halves(problem.view().people, method.seed)

    def modules(self) -> dict[str, nn.Module]:
        return {"channel": self.channel, "adversary": self.adversary, "readers": self.readers}

    def phases(self) -> list[Phase]:
        m, (theirs, ours) = self.method, self.halves
        plan = m.plan
        accuser = Player("adversary", self.adversary, self.accuse, m.lr, max(1, plan.itr_d), theirs)
        defender = Player(
            "channel",
            nn.ModuleList([self.channel, self.readers]),
            self.defend,
            m.lr,
            max(1, plan.itr_g),
            ours,
        )
        per_epoch = max(1, len(theirs) // min(m.batch, len(self.feed)) // accuser.steps)
        return [
            Phase(
                "giving records back",
                plan.pre_g,
                [replace(defender, objective=self.copy, steps=1)],
                steady=True,
            ),
            Phase("learning to attack", plan.pre_d, [replace(accuser, steps=1)], steady=True),
            Phase(
                "hiding",
                plan.rounds / per_epoch,
                [accuser, defender],
                schedule=lambda done: max(1 - done, 0.02),
                steady=True,
            ),
        ]

    def release(self, batch: Batch, whole: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Released records of a batch, the same to find gradients with, and their distance; `whole`
        forgets the budget."""
        m, noise = self.method, self._noise(batch)
        proposal = self.channel.propose(batch.x, noise)
        if m.distance == "ssim":
            released = self.channel.settle(proposal, self.channel.reach, noise)
            with torch.autocast(
                released.device.type, enabled=False
            ):  # variances as differences of squares need their digits
                alike, _ = similarity(_as_bytes(released), _as_bytes(proposal.own))
            return released, released, 1 - alike.mean()
        spent = self.channel.spent(proposal, cast(Distance, m.distance))
        reach = spent.reach(m.distortion) if m.distortion and not whole else self.channel.reach
        released = self.channel.settle(proposal, reach, noise)
        between = (
            self.channel.settle(proposal, reach, noise, between=True) if proposal.odds else released
        )
        return released, between, spent.square * reach.square() + spent.line * reach

    def _noise(self, batch: Batch) -> Tensor | None:
        draws = self.channel.draws
        return torch.randn(len(batch.x), *draws, device=batch.x.device) if draws else None

    def copy(self, batch: Batch) -> Move:
        """The channel before the game: records as they are, and readable tasks."""
        released, _, moved = self.release(batch, whole=True)
        return Move(moved + self._tasks(released, batch), {"distortion": moved})

    def accuse(self, batch: Batch) -> Move:
        with torch.no_grad():
            released, _, _ = self.release(batch)
        answers = self._answers(released, batch)
        told = torch.stack([judge(*answer) for judge, answer in answers]).mean()
        return Move(
            torch.stack([judge.loss(*answer) for judge, answer in answers]).mean(),
            {"adversary told": told},
        )

    def defend(self, batch: Batch) -> Move:
        m = self.method
        released, between, moved = self.release(batch)
        told = torch.stack([judge(*answer) for judge, answer in self._answers(released, batch)])
        if between is not released:
            slope = torch.stack([judge(*answer) for judge, answer in self._answers(between, batch)])
            told = told.detach() + slope - slope.detach()
        privacy = F.relu(told).mean()
        loss = privacy if m.distortion else moved + m.penalty * privacy
        return Move(loss + self._tasks(released, batch), {"distortion": moved, "privacy": privacy})

    def _answers(
        self, released: Tensor, batch: Batch
    ) -> list[tuple[AdversaryGain, tuple[Tensor, Tensor]]]:
        """For every private attribute how answers count, what the adversary answers, and what is
        true."""
        scores = torch.split(
            self.adversary(released).float(), [max(1, a.classes) for a in self.private], dim=1
        )
        pairs = zip(self.private, self.judges, scores, strict=True)
        return [(judge, (score, batch.labels[a.name])) for a, judge, score in pairs]

    def _tasks(self, released: Tensor, batch: Batch) -> Tensor:
        if not self.utility:
            return released.new_zeros(())
        losses = [
            F.cross_entropy(
                reader(released).float(), batch.labels[task.name], ignore_index=-1, reduction="sum"
            )
            / (batch.labels[task.name] >= 0).sum().clamp(min=1)
            for task, reader in zip(self.utility, self.readers, strict=True)
        ]
        return self.method.keep * torch.stack(losses).mean()

    @torch.no_grad()
    def spent_on_all(self) -> Spent:
        """What the channel would cost on the whole of *fit*."""
        torch.manual_seed(self.method.seed)
        found = []
        for batch in self.feed.batches(_in_order(self.feed)):
            spent = self.channel.spent(
                self.channel.propose(batch.x, self._noise(batch)),
                cast(Distance, self.method.distance),
            )
            found.append(torch.stack([*spent]) * len(batch.x) / len(self.feed))
        return Spent(*torch.stack(found).sum(0))

    @torch.no_grad()
    def judge(self, problem: Problem) -> dict[str, Any]:
        """On people not learned from: what the game's own adversary reads, and how far records were
        moved."""
        torch.manual_seed(self.method.seed)
        feed = problem.feed("select")
        scores, moved, weight = [], [], []
        for batch in feed.batches(_in_order(feed)):
            noise = self._noise(batch)
            own, released = self.channel.propose(batch.x, noise).own, self.channel(batch.x, noise)
            scores.append(self.adversary(released).float())
            moved.append(_distances(released, own, isinstance(self.schema.plain, ImageSchema)))
            weight.append(len(own))
        parts = torch.split(torch.cat(scores), [max(1, a.classes) for a in self.private], dim=1)
        pairs = zip(self.private, self.judges, parts, strict=True)
        said = {
            a.name: judge.says(score, feed.labels[a.name]) | {"part": "select"}
            for a, judge, score in pairs
        }
        means = {
            key: float(np.average([row[key] for row in moved], weights=weight)) for key in moved[0]
        }
        return {
            "in_game": said,
            "distortion": {**means, "part": "select", "reach": float(self.channel.reach)},
        }


def _halves(people: Array, seed: int) -> tuple[Array, Array]:
    """Records of *fit* for the adversary and for the channel, by person where there are several."""
    groups = people if len(np.unique(people)) > 1 else np.arange(len(people))
    codes = np.random.default_rng([seed, 11]).permutation(np.unique(groups))
    first = np.isin(groups, codes[: len(codes) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def _in_order(feed: Feed, size: int = 512) -> list[Array]:
    return [np.arange(start, min(start + size, len(feed))) for start in range(0, len(feed), size)]


def _as_bytes(picture: Tensor) -> Tensor:
    """From [-1, 1] to 0..255, as SSIM's constants expect."""
    return (picture + 1) * 127.5


def _distances(released: Tensor, own: Tensor, are_pictures: bool) -> dict[str, float]:
    apart = (released - own).flatten(1)
    found = {"l1": float(apart.abs().mean()), "l2": float(apart.square().mean())}
    if are_pictures:
        pictures = (_as_bytes(released).clamp(0, 255), _as_bytes(own))
        made, truth = (some.detach().cpu().numpy() for some in pictures)
        found |= {"ssim": float(ssim(made, truth).mean()), "psnr": float(psnr(made, truth).mean())}
    return found
