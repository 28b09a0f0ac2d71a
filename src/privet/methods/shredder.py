"""Shredder: the front of a service runs where the data is, and what it gives is released with noise
that the rest of it bears.

    z = f1(x) + mu + s * xi,    xi ~ N(0, I) fresh for every record,    service = f2(f1(x)), taught first and frozen
    min over mu, rho of   mean over tasks CE(f2(z), y)
    s_j^2 = noise * v_j * (share + (1 - share) * d softmax(rho)_j),    v_j the variance of activation j on *fit*, d their number

The noise-to-signal ratio is the budget and is met exactly, by the mean of s_j^2 / v_j; what is
learned is where it goes and where it is centred. Every activation gets at least `share` of the
mean: else those that f2 does not listen to would take all of it.

Mireshghallah, Taram, Ramrakhyani, Jalali, Tullsen and Esmaeilzadeh, "Shredder: learning noise
distributions to protect inference privacy", ASPLOS 2020, arXiv:1905.11814. There, whole tensors of
noise are learned by CE - lambda * |noise|, and one of those, or one drawn from laws fitted to them,
is added. Here the law itself is learned, at a fixed ratio, and drawn from for every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from privet.data.dataset import Attribute, Modality
from privet.methods.cloak import bound, pieces
from privet.methods.method import Method, Problem
from privet.methods.tiprdc import cross_entropy
from privet.nets.mask import Split
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

MEASURED = 2048
"""Records whose activations give the variances."""
LEAST = 0.05
"""Of the mean deviation, what an activation counts as having: one that does not vary on *fit* may
do so later."""


@dataclass(kw_only=True)
class Shredder(Method):
    noise: float = 1.0
    """Variance of the noise next to that of the activations."""
    depth: float = 0.5
    """Where the service is cut, as a share of its layers."""
    share: float = 0.25
    """Of the mean noise, what every activation gets at least."""
    lessons: float = 10.0
    """Epochs in which the service is taught."""
    epochs: float = 10.0
    """Epochs in which noise is learned."""
    width: float = 0.25
    """Size of the service."""
    batch: int = 128
    lr: float = 0.02
    """Adam's, of the noise."""

    name: ClassVar[str] = "shredder"
    title: ClassVar[str] = "Shredder"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "needed"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = "choose a method for texts, such as tiprdc with noise"
    numbers: ClassVar[bool] = True
    dial: ClassVar[str] = "noise"
    sweep: ClassVar[tuple[float, ...]] = (0.25, 1.0, 4.0, 16.0)

    def __post_init__(self) -> None:
        self.within(
            noise=(1e-6, inf),
            depth=(0, 1),
            share=(0, 1),
            lessons=(0, inf),
            epochs=(0, inf),
            width=(0.01, inf),
            batch=(2, inf),
        )
        self.within(lr=(1e-9, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = ShredderNetworks(problem, self)
        game = Game(
            networks.modules(),
            networks.phases(),
            networks.feed,
            self.batch,
            self.seed,
            self.identity(problem),
        )
        game.play(run)
        release = networks.release()
        release.card |= networks.judge(release) | {"history": game.history}
        return release


class ShredderNetworks:
    """The service, and the noise between its two parts."""

    def __init__(self, problem: Problem, method: Shredder) -> None:
        self.problem, self.method, self.feed, self.tasks = (
            problem,
            method,
            problem.feed(),
            problem.utility,
        )
        self.settings: dict[str, Any] = {
            "outputs": sum(task.classes for task in self.tasks),
            "width": method.width,
            "depth": method.depth,
        }
        self.service = Split(problem.schema, **self.settings)
        self.law = Law(self.service.shape, method)
        self._measured = False

    def modules(self) -> dict[str, nn.Module]:
        return {"service": self.service, "law": self.law}

    def phases(self) -> list[Phase]:
        m = self.method
        return [
            Phase(
                "teaching the service",
                m.lessons,
                [Player("service", self.service, self.learn, 1e-3, decay=1e-2)],
                steady=True,
            ),
            Phase(
                "learning noise",
                m.epochs,
                [Player("noise", self.law, self.bear, m.lr)],
                steady=True,
            ),
        ]

    def learn(self, batch: Batch) -> Move:
        self.service.train()
        return self._move(self.service.answer(self.service.body(batch.x)), batch)

    def bear(self, batch: Batch) -> Move:
        """Noise of a given size, put where the rest of the service bears it best."""
        self.service.eval()
        self._measure()
        with torch.no_grad():
            given = self.service.body(batch.x).float()
        return self._move(self.service.answer(self.law(given)), batch)

    def _move(self, scores: Tensor, batch: Batch) -> Move:
        loss, right = cross_entropy(scores, batch.labels, self.tasks)
        return Move(loss, {"task loss": loss, "right": right})

    @torch.no_grad()
    def _measure(self) -> None:
        """Deviations of the activations, once the service is taught. The law knows of it, also
        after an interruption; it is asked once."""
        self._measured = self._measured or bool(self.law.measured)
        if self._measured:
            return
        self.service.eval()
        some = [index for index in pieces(self.feed) if index[0] < MEASURED]
        given = torch.cat([self.service.body(batch.x).float() for batch in self.feed.batches(some)])
        self.law.measure(given)

    @torch.no_grad()
    def release(self) -> Release:
        self._measure()
        self.service.fill(self.law.location(), self.law.scales())
        shape = tuple(self.service.shape)
        return Release(
            self.problem.schema,
            ("shredder", self.settings),
            self.service,
            Noise("gaussian", shape, 1.0),
            {"form": "code"},
        )

    @torch.no_grad()
    def judge(self, release: Release) -> dict[str, Any]:
        """How the service does on people not learned from, how large the noise is, and the bound on
        what is left."""
        torch.manual_seed(self.method.seed)
        feed = self.problem.feed("select")
        return {
            "services": {
                task.name: self._asked(place, task, release, feed)
                for place, task in enumerate(self.tasks)
            },
            "noise_to_signal": float(self.law.scales().square().mean() / self.law.square.mean()),
            "activations": list(self.service.shape),
            "information": bound(release, self.feed),
        }

    def _asked(self, place: int, task: Attribute, release: Release, feed: Feed) -> dict[str, Any]:
        right, n, sizes = [0, 0], 0, [t.classes for t in self.tasks]
        for batch in feed.batches(pieces(feed)):
            truth = batch.labels[task.name]
            n += int((truth >= 0).sum())
            for at, z in enumerate((self.service.body(batch.x), release.forward(batch.x))):
                right[at] += int(
                    (
                        torch.split(self.service.answer(z), sizes, dim=1)[place].argmax(1) == truth
                    ).sum()
                )
        return {
            "raw": right[0] / max(n, 1),
            "released": right[1] / max(n, 1),
            "n": n,
            "part": "select",
        }


class Law(nn.Module):
    """A location and a scale per activation, at a fixed ratio of noise to signal."""

    deviation: Tensor
    square: Tensor
    """Mean square of each activation: the published ratio counts from 0, not from the mean."""
    measured: Tensor

    def __init__(self, shape: tuple[int, ...], method: Shredder) -> None:
        super().__init__()
        self.ratio, self.share = method.noise, method.share
        self.mu, self.rho = nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.zeros(shape))
        self.register_buffer("deviation", torch.ones(shape))
        self.register_buffer("square", torch.ones(shape))
        self.register_buffer("measured", torch.tensor(False))

    def measure(self, given: Tensor) -> None:
        deviation = given.std(0, correction=0)
        self.deviation.copy_(deviation.clamp(min=LEAST * float(deviation.mean()) + 1e-6))
        self.square.copy_(given.square().mean(0))
        self.measured.fill_(True)

    def location(self) -> Tensor:
        return self.deviation * self.mu

    def scales(self) -> Tensor:
        """The square root of equation s_j^2 above."""
        part = self.share + (1 - self.share) * self.rho.numel() * torch.softmax(
            self.rho.flatten(), 0
        ).reshape(self.rho.shape)
        return self.deviation * (self.ratio * part).sqrt()

    def forward(self, given: Tensor) -> Tensor:
        return given + self.location() + self.scales() * torch.randn_like(given)
