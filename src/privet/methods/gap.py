"""Generative adversarial privacy: a channel that keeps the record's form and takes the private
attribute out of it.

    min_W  E d(x, x~) + penalty * privacy(x~; u) [+ keep * mean over tasks CE(h(x~), y)]
    or     min_W  privacy(x~; u) [+ ...]   subject to  E d(x, x~) <= distortion
    x~ = W(x, xi) or W(x, u, xi)

    privacy, form "entropy"      max(0, H(u) - min_f CE(f(x~), u))
             form "variation"    sup_{|f| <= 1} E_{u = 1} f(x~) - E_{u = 0} f(x~)
             u a number          max(0, 1 - min_f E (f(x~) - u)^2 / Var(u))     (adversary_loss.py)

Chen, Rich and Chen, "Generative modeling for context-aware local privacy" (report; code
GAPP-image): equation 4 and Algorithm 1, an autoencoder as channel, both players pre-trained, itr_d
and itr_g moves in turn, different records for the two. With `distortion`, `aware` and
channel=shift: Huang, Kairouz, Chen, Sankar and Rajagopal, "Context-aware generative adversarial
privacy", Entropy 19 (2017).

The sources let W maximise CE without end. H(u) - CE is the same gradient until the adversary is at
guessing and none beyond: an adversary that is *wrong* too often is told as much. But one that has
learned its own records by heart is too sure of itself on others: its CE is above H(u) there, though
it reads u, and the channel is told that nothing is left. `tempered` divides its scores by what is
best on the channel's records first. A budget is kept at every step, by scaling what the channel
changes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import refuse
from privet.data.known_attributes import Given, in_classes, know
from privet.data.schema import ImageSchema
from privet.evidence.distortion import psnr, ssim
from privet.methods.adversary_loss import AdversaryGain, adversary_gain
from privet.methods.halves import halves
from privet.methods.known_labels import cross_entropy, split_scores
from privet.methods.method import NUMERIC, Method, Problem, at_least, choices_of, ranges_of
from privet.nets.channel import CHANNELS, Distance, Spent, channel_of, levels_of
from privet.nets.code import body
from privet.nets.similarity import similarity
from privet.nets.weights_average import update_average
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# The sources' two sets of hyper-parameters.
REGIMES: dict[str, dict[str, float]] = {
    "low": {"pre_d": 25, "pre_g": 25, "rounds": 300, "itr_d": 15, "itr_g": 20},
    "high": {"pre_d": 10, "pre_g": 10, "rounds": 50, "itr_d": 800, "itr_g": 500},
}
# What an adversary's scores are divided by, where they are tempered.
TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 40.0)
# Classes in which a private number is given to a channel that sees it.
GIVEN_BINS = 8


@dataclass(kw_only=True)
class GAP(Method):
    """A channel that returns a record of the same form without the private attribute.

    A network changes the record as little as it can, so that an adversary, trained in turn with it,
    reads the private attribute badly; tasks, where named, stay readable. Success of the adversary
    costs `penalty`, or the change is limited by `distortion`.

    Parameters:
        penalty: lambda: what an adversary's success costs, in units of the distance.
        distortion: A budget for the mean distance E d(x, x~); above 0 it replaces the penalty.
        form: How an adversary's success is counted: entropy or variation. Of a number it is always
            the squared error.
        tempered: Count the adversary's success at the temperature of its scores that is best on the
            channel's own records. Without it, an adversary that learned its records by heart counts
            for nothing on others, and the channel stops hiding.
        distance: d: l1 or l2 (mean over a record's numbers, in the network's scale), or ssim (1 -
            SSIM, pictures).
        channel: Autoencoder; residual, of tables: x + h(x, u, noise); or shift: x + b_u + g noise.
        noise: Deviation of the noise on the standardised encoding (residual: beside the record;
            shift: where g starts); 0 is the published, deterministic channel.
        aware: Whether the channel sees u. The release then needs it with every record.
        sampled: Of tables: draw categories and numbers of few values from odds, so that each stays
            one of its values.
        bins: Turn private numbers into so many equally frequent classes; 0 leaves them numbers.
        keep: Weight of the tasks, where there are any.
        regime: low or high: sets what is left negative below.
        pre_d: Epochs in which the adversary learns before the game.
        pre_g: Epochs in which the channel learns to give records back before the game.
        rounds: Rounds of the game.
        itr_d: Moves of the adversary in a round.
        itr_g: Moves of the channel in a round.
        width: Factor on all layer sizes.
        batch: Records per step.
        lr: Learning rate of Adam at the start of the game; it falls to 2 % of it.
        average: Of the channel's weights, the share of the earlier mean that each move keeps, such
            as 0.99: the mean is released. 0 releases the last state, as published; the players of
            a game circle the point that they look for, and their mean is closer to it.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> quick = {"pre_d": 1, "pre_g": 1, "rounds": 2, "itr_d": 2, "itr_g": 2}
        >>> method = privet.GAP(penalty=0.3, width=0.1, **quick)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.shape, sorted(release.card["distortion"])
        ((3, 48, 48), ['l1', 'l2', 'part', 'psnr', 'reach', 'ssim'])

    Notes:
        The released record still looks like the one that came in: what nobody trained against may
        remain. Nothing is certified. With `aware` whoever releases must know the attribute.
    """

    penalty: float = 0.3
    distortion: float = 0.0
    form: str = "entropy"
    tempered: bool = False
    distance: str = "l1"
    channel: str = "autoencoder"
    noise: float = 0.5
    aware: bool = False
    sampled: bool = False
    bins: int = 0
    keep: float = 1.0
    regime: str = "low"
    pre_d: float = -1.0
    pre_g: float = -1.0
    rounds: int = -1
    itr_d: int = -1
    itr_g: int = -1
    width: float = 0.5
    batch: int = 128
    lr: float = 1e-3
    average: float = 0.0

    name = "gap"
    title = "Generative adversarial privacy"
    tasks = "optional"
    modalities = NUMERIC
    instead = "a channel that writes text is not part of it; use hedge or tiprdc"
    numbers = True
    dial = "penalty"
    sweep = (0.03, 0.1, 0.3, 1.0)
    choices = choices_of(
        form=("entropy", "variation"),
        distance=("l1", "l2", "ssim"),
        channel=CHANNELS,
        regime=REGIMES,
    )
    ranges = ranges_of(
        **dict.fromkeys(("penalty", "distortion", "keep"), at_least(0)),
        **dict.fromkeys(REGIMES["low"], at_least(-1)),
        bins=(0, 100),
        batch=at_least(8),
        average=(0, 0.9999),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            (
                self.bins == 1,
                "One bin holds everybody: the setting bins of gap is 0 or at least 2.",
            ),
            (
                self.distortion and self.distance == "ssim",
                (
                    "A budget is kept by scaling what is changed, for which distance must be l1 or"
                    " l2; with ssim, set the penalty."
                ),
            ),
            (
                self.sampled and self.channel != "autoencoder",
                (
                    f"The channel {self.channel} moves numbers and draws none: leave out sampled, "
                    "or take channel=autoencoder."
                ),
            ),
        )

    @property
    def schedule(self) -> dict[str, float]:
        """What is played: the regime's figures where none are set."""
        usual = REGIMES[self.regime]
        own = {key: getattr(self, key) for key in usual}
        return {key: usual[key] if value < 0 else value for key, value in own.items()}

    def accept(self, problem: Problem) -> Problem:
        data = problem.data
        refuse(
            (
                self.distance == "ssim" and data.modality != "image",
                (
                    f"SSIM compares pictures, and these are {data.modality} records: set"
                    " distance=l1 or l2."
                ),
            ),
            (
                self.sampled and data.modality != "table",
                f"Only columns of a table can be sampled, and these are {data.modality} records.",
            ),
            (
                self.channel == "residual" and data.modality != "table",
                (
                    f"The channel residual is of tables, and these are {data.modality} records: "
                    "set channel=autoencoder."
                ),
            ),
        )
        known = know(data, problem.private, self.bins or GIVEN_BINS) if self.aware else ()
        if self.bins:
            classes, private = in_classes(data, problem.private, self.bins)
            problem = replace(problem, data=classes, private=private)
        return replace(problem, schema=Given(problem.schema, known)) if known else problem

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = GAPNetworks(problem, self)
        phases = networks.phases()
        history = self.game(problem, networks.modules(), phases, self.batch).play(run)
        for module in networks.modules().values():
            module.eval()
        channel = networks.channel
        if self.average:
            channel.load_state_dict(networks.average.state_dict())
        if self.distortion:
            channel.reach.copy_(networks.spent_on_all().reach(self.distortion))
        noise = Noise("gaussian", channel.draws, self.noise) if channel.draws else None
        card = {
            "form": "record",
            "classes": {a.name: list(a.values) for a in problem.private},
            **networks.judge(problem),
            "history": history,
        }
        return Release(problem.schema, ("channel", networks.settings), channel, noise, card)


class GAPNetworks:
    """The channel W, the adversary f and the readers h of tasks, and their objectives."""

    def __init__(self, problem: Problem, method: GAP) -> None:
        self.method, self.private, self.utility = method, problem.private, problem.utility
        self.feed, view, plain = problem.feed(), problem.view(), problem.schema.plain
        self.settings: dict[str, Any] = {
            "kind": method.channel,
            "width": method.width,
            "noise": method.noise,
            "levels": levels_of(plain, view) if method.sampled else [],
        }
        self.channel = channel_of(problem.schema, **self.settings)
        self.pictures = isinstance(plain, ImageSchema)
        self.adversary = body(
            plain, sum(max(1, a.classes) for a in self.private), method.width, 0.0
        )
        self.readers = nn.ModuleList(
            [body(plain, task.classes, method.width, 0.0) for task in self.utility]
        )
        self.gains = [adversary_gain(a, view.labels[a.name], method.form) for a in self.private]
        self.halves = halves(view.people, method.seed)
        self.average = copy.deepcopy(self.channel)

    def modules(self) -> dict[str, nn.Module]:
        modules = {"channel": self.channel, "adversary": self.adversary, "readers": self.readers}
        return {**modules, "average": self.average} if self.method.average else modules

    def phases(self) -> list[Phase]:
        m, plan, (theirs, ours) = self.method, self.method.schedule, self.halves
        itr_d, itr_g = (max(1, int(plan[key])) for key in ("itr_d", "itr_g"))
        accuser = Player("adversary", self.adversary, self.accuse, m.lr, itr_d, theirs)
        changed = nn.ModuleList([self.channel, self.readers])
        defender = Player("channel", changed, self.defend, m.lr, itr_g, ours)
        copier = replace(defender, objective=self.copy, steps=1)
        per_epoch = max(1, len(theirs) // min(m.batch, len(self.feed)) // itr_d)
        return [
            Phase("giving records back", plan["pre_g"], [copier], steady=True),
            Phase("learning to attack", plan["pre_d"], [replace(accuser, steps=1)], steady=True),
            Phase(
                "hiding",
                plan["rounds"] / per_epoch,
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
            # Variances as differences of squares need all their digits.
            with torch.autocast(released.device.type, enabled=False):
                alike, _ = similarity(_as_bytes(released), _as_bytes(proposal.own))
            return released, released, 1 - alike.mean()
        spent = self.channel.spent(proposal, cast(Distance, m.distance))
        reach = spent.reach(m.distortion) if m.distortion and not whole else self.channel.reach
        released = between = self.channel.settle(proposal, reach, noise)
        if proposal.odds:
            between = self.channel.settle(proposal, reach, noise, between=True)
        return released, between, spent.square * reach.square() + spent.line * reach

    def _noise(self, batch: Batch) -> Tensor | None:
        draws = self.channel.draws
        return torch.randn(len(batch.x), *draws, device=batch.x.device) if draws else None

    def copy(self, batch: Batch) -> Move:
        """The channel before the game: records as they are, and readable tasks."""
        released, _, moved = self.release(batch, whole=True)
        return Move(moved + self._task_loss(released, batch), {"distortion": moved})

    def accuse(self, batch: Batch) -> Move:
        """The adversary's move."""
        with torch.no_grad():
            released, _, _ = self.release(batch)
        answers = self._answers(released, batch)
        return Move(
            torch.stack([gain.loss(*answer) for gain, answer in answers]).mean(),
            {"adversary told": torch.stack([gain(*answer) for gain, answer in answers]).mean()},
        )

    def defend(self, batch: Batch) -> Move:
        """The channel's move, and that of the readers."""
        m = self.method
        if m.average:
            update_average(self.average, self.channel, 1 - m.average)
        released, between, moved = self.release(batch)
        gains = self._gains(released, batch)
        if between is not released:
            slope = self._gains(between, batch)
            gains = gains.detach() + slope - slope.detach()
        privacy = F.relu(gains).mean()
        loss = privacy if m.distortion else moved + m.penalty * privacy
        return Move(
            loss + self._task_loss(released, batch), {"distortion": moved, "privacy": privacy}
        )

    def _gains(self, released: Tensor, batch: Batch) -> Tensor:
        temperatures = TEMPERATURES if self.method.tempered else (1.0,)
        return torch.stack(
            [
                torch.stack([gain(scores / t, truth) for t in temperatures]).amax(0)
                for gain, (scores, truth) in self._answers(released, batch)
            ]
        )

    def _answers(
        self, released: Tensor, batch: Batch
    ) -> list[tuple[AdversaryGain, tuple[Tensor, Tensor]]]:
        """For every private attribute its gain, the adversary's scores, and the labels."""
        scores = split_scores(self.adversary(released).float(), self.private)
        each = zip(self.private, self.gains, scores, strict=True)
        return [(gain, (score, batch.labels[a.name])) for a, gain, score in each]

    def _task_loss(self, released: Tensor, batch: Batch) -> Tensor:
        if not self.utility:
            return released.new_zeros(())
        losses = [
            cross_entropy(reader(released).float(), batch.labels[task.name])
            for task, reader in zip(self.utility, self.readers, strict=True)
        ]
        return self.method.keep * torch.stack(losses).mean()

    @torch.no_grad()
    def spent_on_all(self) -> Spent:
        """What the channel would cost on the whole of *fit*."""
        torch.manual_seed(self.method.seed)
        shares = []
        for batch in self.feed.in_order():
            proposal = self.channel.propose(batch.x, self._noise(batch))
            spent = self.channel.spent(proposal, cast(Distance, self.method.distance))
            shares.append(torch.stack([*spent]) * len(batch.x) / len(self.feed))
        return Spent(*torch.stack(shares).sum(0))

    @torch.no_grad()
    def judge(self, problem: Problem) -> dict[str, Any]:
        """On people not learned from: what the game's own adversary reads, and how far records were
        moved."""
        torch.manual_seed(self.method.seed)
        feed = problem.feed("select")
        scores, moved, weights = [], [], []
        for batch in feed.in_order():
            noise = self._noise(batch)
            own, released = self.channel.propose(batch.x, noise).own, self.channel(batch.x, noise)
            scores.append(self.adversary(released).float())
            moved.append(_distances(released, own, self.pictures))
            weights.append(len(own))
        read = split_scores(torch.cat(scores), self.private)
        distances = {
            key: float(np.average([row[key] for row in moved], weights=weights)) for key in moved[0]
        }
        return {
            "in_game": {
                a.name: gain.figures(score, feed.labels[a.name]) | {"part": "select"}
                for a, gain, score in zip(self.private, self.gains, read, strict=True)
            },
            "distortion": {**distances, "part": "select", "reach": float(self.channel.reach)},
        }


def _as_bytes(picture: Tensor) -> Tensor:
    """From [-1, 1] to 0..255, as SSIM's constants expect."""
    return (picture + 1) * 127.5


def _distances(released: Tensor, own: Tensor, pictures: bool) -> dict[str, float]:
    apart = (released - own).flatten(1)
    distances = {"l1": float(apart.abs().mean()), "l2": float(apart.square().mean())}
    if pictures:
        both = (_as_bytes(released).clamp(0, 255), _as_bytes(own))
        made, truth = (some.detach().cpu().numpy() for some in both)
        distances["ssim"] = float(ssim(made, truth).mean())
        distances["psnr"] = float(psnr(made, truth).mean())
    return distances
