"""Shredder: the front of a service runs where the data is, and what it gives is released with noise
that the rest of it bears.

    z = f1(x) + mu + s * xi,    xi ~ N(0, I) fresh for every record
    service = f2(f1(x)), taught first and frozen
    min over mu, rho of   mean over tasks CE(f2(z), y)
    s_j^2 = noise * v_j * (share + (1 - share) * d softmax(rho)_j)
    v_j the variance of activation j on *fit*, d their number

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
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from privet.data.dataset import Attribute
from privet.methods.cloak import information_bound
from privet.methods.known_labels import accuracy_on_both, mean_loss_and_accuracy, split_scores
from privet.methods.method import NUMERIC, Method, Problem, at_least, ranges_of
from privet.nets.mask import Split
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# Batches of 512 records whose activations give the variances.
MEASURED_BATCHES = 4
# Of the mean deviation, what an activation counts as having: one that does not vary on *fit* may do
# so later.
LEAST_DEVIATION = 0.05


@dataclass(kw_only=True)
class Shredder(Method):
    """Releases the activations inside a service with noise that the rest of it bears.

    A classifier of the tasks is taught and cut in two. Its front is the release; Gaussian noise
    of a fixed ratio to the signal is learned for the activations, so that the frozen rest still
    serves. The private attribute is not learned from.

    Parameters:
        noise: Variance of the noise over that of the activations, on average.
        depth: Where the service is cut, as a share of its layers.
        share: Of the mean noise, what every activation gets at least.
        lessons: Epochs in which the service is taught.
        epochs: Epochs in which noise is learned.
        width: Factor on the layer sizes of the service.
        batch: Records per step.
        lr: Learning rate of Adam for the noise.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Shredder(noise=4, width=0.05, lessons=1, epochs=1)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> sorted(release.card["services"]["smiling"])
        ['n', 'part', 'raw', 'released']

    Notes:
        Activations hold more than the tasks need: `noise` limits what is read of it, and nothing
        takes the private attribute out. Whoever uses the release needs the rest of the service.
    """

    noise: float = 1.0
    depth: float = 0.5
    share: float = 0.25
    lessons: float = 10.0
    epochs: float = 10.0
    width: float = 0.25
    batch: int = 128
    lr: float = 0.02

    name = "shredder"
    title = "Shredder"
    tasks = "needed"
    modalities = NUMERIC
    instead = "choose a method for texts, such as tiprdc with noise"
    numbers = True
    dial = "noise"
    sweep = (0.25, 1.0, 4.0, 16.0)
    ranges = ranges_of(noise=at_least(1e-6), depth=(0, 1), share=(0, 1))

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = ShredderNetworks(problem, self)
        phases = networks.phases()
        history = self.game(problem, networks.modules(), phases, self.batch).play(run)
        release = networks.release()
        release.card |= networks.judge(release) | {"history": history}
        return release


class ShredderNetworks:
    """The service, and the noise between its two parts."""

    def __init__(self, problem: Problem, method: Shredder) -> None:
        self.problem, self.method, self.tasks = problem, method, problem.utility
        self.feed = problem.feed()
        self.settings: dict[str, Any] = {
            "outputs": sum(task.classes for task in self.tasks),
            "width": method.width,
            "depth": method.depth,
        }
        self.service = Split(problem.schema, **self.settings)
        self.law = NoiseLaw(self.service.shape, method)
        self._measured = False

    def modules(self) -> dict[str, nn.Module]:
        return {"service": self.service, "law": self.law}

    def phases(self) -> list[Phase]:
        m = self.method
        service = Player("service", self.service, self.learn, 1e-3, decay=1e-2)
        noise = Player("noise", self.law, self.bear, m.lr)
        return [
            Phase("teaching the service", m.lessons, [service], steady=True),
            Phase("learning noise", m.epochs, [noise], steady=True),
        ]

    def learn(self, batch: Batch) -> Move:
        """The service, on raw records."""
        self.service.train()
        return self._move(self.service.answer(self.service.body(batch.x)), batch)

    def bear(self, batch: Batch) -> Move:
        """Noise of a given size, put where the rest of the service bears it best."""
        self.service.eval()
        self._measure()
        with torch.no_grad():
            activations = self.service.body(batch.x).float()
        return self._move(self.service.answer(self.law(activations)), batch)

    def _move(self, scores: Tensor, batch: Batch) -> Move:
        loss, right = mean_loss_and_accuracy(scores, batch.labels, self.tasks)
        return Move(loss, {"task loss": loss, "right": right})

    @torch.no_grad()
    def _measure(self) -> None:
        """Deviations of the activations, once the service is taught. The law knows of it, also
        after an interruption; it is asked once."""
        self._measured = self._measured or bool(self.law.measured)
        if self._measured:
            return
        self.service.eval()
        some = islice(self.feed.in_order(), MEASURED_BATCHES)
        self.law.measure(torch.cat([self.service.body(batch.x).float() for batch in some]))

    @torch.no_grad()
    def release(self) -> Release:
        self._measure()
        self.service.fill(self.law.location(), self.law.scales())
        return Release(
            self.problem.schema,
            ("shredder", self.settings),
            self.service,
            Noise("gaussian", tuple(self.service.shape), 1.0),
            {"form": "code"},
        )

    @torch.no_grad()
    def judge(self, release: Release) -> dict[str, Any]:
        """How the service does on people not learned from, how large the noise is, and the bound on
        what is left."""
        torch.manual_seed(self.method.seed)
        return {
            "services": {
                task.name: self._figures(place, task, release)
                for place, task in enumerate(self.tasks)
            },
            "noise_to_signal": float(self.law.scales().square().mean() / self.law.square.mean()),
            "activations": list(self.service.shape),
            "information": information_bound(release, self.feed),
        }

    def _figures(self, place: int, task: Attribute, release: Release) -> dict[str, Any]:
        def scores(z: Tensor) -> Tensor:
            return split_scores(self.service.answer(z), self.tasks)[place]

        return accuracy_on_both(
            self.problem.feed("select"),
            task,
            lambda x: scores(self.service.body(x)),
            lambda x: scores(release.forward(x)),
        )


class NoiseLaw(nn.Module):
    """A location and a scale per activation, at a fixed ratio of noise to signal.

    `square` is the mean square of each activation: the published ratio counts from 0, not from the
    mean.
    """

    deviation: Tensor
    square: Tensor
    measured: Tensor

    def __init__(self, shape: tuple[int, ...], method: Shredder) -> None:
        super().__init__()
        self.ratio, self.share = method.noise, method.share
        self.mu, self.rho = nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.zeros(shape))
        self.register_buffer("deviation", torch.ones(shape))
        self.register_buffer("square", torch.ones(shape))
        self.register_buffer("measured", torch.tensor(False))

    def measure(self, activations: Tensor) -> None:
        """Take the deviations of these activations (n, ...)."""
        deviation = activations.std(0, correction=0)
        self.deviation.copy_(deviation.clamp(min=LEAST_DEVIATION * float(deviation.mean()) + 1e-6))
        self.square.copy_(activations.square().mean(0))
        self.measured.fill_(True)

    def location(self) -> Tensor:
        return self.deviation * self.mu

    def scales(self) -> Tensor:
        """The square root of equation s_j^2 above."""
        learned = torch.softmax(self.rho.flatten(), 0).reshape(self.rho.shape)
        part = self.share + (1 - self.share) * self.rho.numel() * learned
        return self.deviation * (self.ratio * part).sqrt()

    def forward(self, activations: Tensor) -> Tensor:
        return activations + self.location() + self.scales() * torch.randn_like(activations)
