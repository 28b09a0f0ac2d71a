"""U-Noise: a noise map per picture, quiet only where a frozen service needs to look.

    z = x + loud * m(x) * xi,    xi ~ N(0, 1) fresh for every record and value
    m = sigmoid(N(x)) in (0, 1)
    min over N of   mean over tasks loss(service(z), y) - c * mean(log m(x))

Koker, Mireshghallah, Titcombe and Kaissis, "U-Noise: Learnable noise masks for interpretable image
segmentation", ICIP 2021. The service is a classifier, or a U-Net where the task is a mask; it is
taught first, and then only passes gradients on. The private attribute is not learned from: what the
service does not need is drowned, whatever it shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.known_labels import cross_entropy
from privet.methods.method import Method, Problem, at_least, choices_of, ranges_of
from privet.methods.services import segmentation, service
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.nets.unet import SIZES, NoiseMap
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Move, Phase, Player, Run

# A pixel counts as kept where the map is below this.
QUIET = 0.5


@dataclass(kw_only=True)
class UNoise(Method):
    """Noise all over a picture but where a given task needs to look.

    A service is taught to find the task's class or mask, and frozen. A small network then makes a
    noise map for every picture: loud where the service can do without, quiet elsewhere. The private
    attribute is not learned from.

    Parameters:
        c: Weight of the noise: 0 adds next to none, more adds it everywhere that the service can do
            without.
        size: Of the network that makes the map and runs at the participant: small, medium or large.
        loud: Standard deviation of the noise where the map is 1, for pictures in [-1, 1].
        width: Factor on the layer sizes of the service.
        lessons: Epochs in which the service is taught.
        rough: Standard deviation of the loudest noise in the pictures that the service is taught
            on; 0 shows it raw ones only.
        epochs: Epochs in which the map is learned.
        batch: Pictures per step.
        lr: Learning rate of Adam for the map; it falls along a cosine.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.UNoise(c=0.1, size="small", width=0.05, lessons=1, epochs=1)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.card["service"]["smiling"]["measure"]
        'accuracy'

    Notes:
        Pixels that the task needs are released, also where they show the private attribute.
    """

    c: float = 0.1
    size: str = "medium"
    loud: float = 1.0
    width: float = 0.5
    lessons: float = 30.0
    rough: float = 1.0
    epochs: float = 20.0
    batch: int = 32
    lr: float = 5e-3

    name = "unoise"
    title = "U-Noise"
    tasks = "needed"
    modalities = ("image",)
    instead = "its noise map is a picture's; try cloak"
    masks = True
    dial = "c"
    sweep = (0.01, 0.03, 0.1, 0.3, 1.0)
    choices = choices_of(size=SIZES)
    ranges = ranges_of(c=at_least(0), loud=(1e-3, 64), rough=(0, 64))

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = UNoiseNetworks(problem, self)
        phases = [*networks.teach(), networks.drown()]
        history = self.game(problem, networks.modules(), phases, self.batch).play(run)
        judged = networks.judge(problem.feed("select"))
        return Release(
            problem.schema,
            ("noise-map", {"size": self.size, "loud": self.loud}),
            networks.veil,
            Noise("gaussian", tuple(problem.schema.shape), self.loud),
            {"form": "record", "service": judged, "history": history},
        )


class UNoiseNetworks:
    """The services, one per task, and the network that makes the noise map."""

    def __init__(self, problem: Problem, method: UNoise, taught: Sequence[Service] = ()) -> None:
        """With services that are `taught` already, only the map is left to be learned."""
        self.method = method
        # Services first: the same seed then gives the same services, whatever the size of the map's
        # network.
        self.services = list(taught) or [
            _home(task.kind).new_service(problem, task, method.width) for task in problem.utility
        ]
        self.veil = NoiseMap(cast(Sequence[int], problem.schema.shape), method.size, method.loud)

    def modules(self) -> dict[str, nn.Module]:
        services = {f"service {place}": one.module for place, one in enumerate(self.services)}
        return {"veil": self.veil, **services}

    def teach(self) -> list[Phase]:
        """One phase per service."""
        phases = [
            _home(one.attribute.kind).teaching_phase(one, self.method.lessons)
            for one in self.services
        ]
        return [hardened(phase, self.method.rough) for phase in phases]

    def drown(self) -> Phase:
        """The phase in which the map is learned."""
        player = Player("veil", self.veil, self.serve, self.method.lr)
        return Phase(
            "learning where noise may be",
            self.method.epochs,
            [player],
            schedule=segmentation.cosine,
            steady=True,
        )

    def serve(self, batch: Batch) -> Move:
        """The map's loss: what the services lose, less c times the mean logarithm of the map."""
        x = prepare(batch.x)
        logits = self.veil.logits(x)
        share = torch.sigmoid(logits)
        z = self.veil.drown(x, share, torch.randn_like(x))
        losses = [service_loss(one, z, batch.labels[one.attribute.name]) for one in self.services]
        lost = torch.stack(losses).mean()
        quiet = (share < QUIET).float().mean()
        return Move(
            lost - self.method.c * F.logsigmoid(logits).mean(),
            {"service loss": lost, "mean map": share.mean(), "kept": quiet},
        )

    @torch.inference_mode()
    def judge(self, feed: Feed) -> dict[str, Any]:
        """How well the services do on raw and on released pictures of people nobody learned from,
        and how much noise there is."""
        self.veil.eval()
        rows: defaultdict[str, list[Tensor]] = defaultdict(list)
        index = np.array_split(np.arange(len(feed)), max(1, len(feed) // self.method.batch))
        for batch in feed.batches(index):
            x = prepare(batch.x)
            share = self.veil.map(x)
            z = self.veil.drown(x, share, torch.randn_like(x))
            rows["map"].append(share.mean((1, 2, 3)))
            rows["kept"].append((share < QUIET).float().mean((1, 2, 3)))
            for place, one in enumerate(self.services):
                truth = batch.labels[one.attribute.name]
                rows[f"raw {place}"].append(score_of(one, one(x), truth))
                rows[f"released {place}"].append(score_of(one, one(z), truth))
        mean = {name: float(torch.cat(parts).nanmean()) for name, parts in rows.items()}
        services = {
            one.attribute.name: {
                "measure": "dice" if one.attribute.kind == "mask" else "accuracy",
                "raw": mean[f"raw {place}"],
                "released": mean[f"released {place}"],
            }
            for place, one in enumerate(self.services)
        }
        noise = {"mean map": mean["map"], "share of pixels kept": mean["kept"]}
        return {"part": "select", "n": len(feed), **noise, **services}


def hardened(phase: Phase, rough: float) -> Phase:
    """The same phase on pictures that are noisy in places, and elsewhere clean.

    A network that has never seen noise loses everything to a little of it, wherever it is, and
    every pixel seems needed.
    """

    def on_noisy(player: Player) -> Player:
        def objective(batch: Batch) -> Move:
            return player.objective(Batch(patchy(prepare(batch.x), rough), batch.labels))

        return replace(player, objective=objective)

    return replace(phase, players=[*map(on_noisy, phase.players)]) if rough else phase


def patchy(x: Tensor, rough: float) -> Tensor:
    """Noise whose loudness changes from place to place, from none to `rough`; every fourth picture
    stays as it is."""
    coarse = torch.rand(len(x), 1, 4, 4, device=x.device) * 2 - 0.5
    spared = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.25
    loudness = F.interpolate(coarse, size=x.shape[2:], mode="bilinear").clamp(0, 1) * ~spared
    return x + rough * loudness * torch.randn_like(x)


def _home(kind: str) -> Any:
    """The module that makes and teaches services of masks or of classes."""
    return segmentation if kind == "mask" else service


def service_loss(one: Service, z: Tensor, truth: Tensor) -> Tensor:
    """What a service loses on a batch; records without a label count nothing."""
    loss = segmentation.mask_loss if one.attribute.kind == "mask" else cross_entropy
    return loss(one(z), truth)


def score_of(one: Service, scores: Tensor, truth: Tensor) -> Tensor:
    """Per picture: Dice of a mask, or whether the class is right; nan where the label is
    missing."""
    if one.attribute.kind == "mask":
        return segmentation.dice(scores.squeeze(1) > 0, truth)
    return torch.where(truth >= 0, (scores.argmax(1) == truth).float(), torch.nan)
