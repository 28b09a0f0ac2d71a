"""U-Noise: a noise map per picture, quiet only where a frozen service needs to look.

    z = x + loud * m(x) * xi,    xi ~ N(0, 1) fresh for every record and value,    m = sigmoid(N(x)) in (0, 1)
    min over N of   mean over tasks loss(service(z), y) - c * mean(log m(x))

Koker, Mireshghallah, Titcombe and Kaissis, "U-Noise: Learnable noise masks for interpretable image
segmentation", ICIP 2021. The service is a classifier, or a U-Net where the task is a mask; it is
taught first, and then only passes gradients on. The private attribute is not learned from: what the
service does not need is drowned, whatever it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import unknown
from privet.data.dataset import Modality
from privet.methods.method import Method, Problem
from privet.methods.services import segmentation
from privet.methods.services import service as services
from privet.nets.convolutions import prepare
from privet.nets.unet import SIZES, NoiseMap
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

if TYPE_CHECKING:
    from privet.methods.services.service import Service

KEPT = 0.5
"""A pixel counts as kept where the map is below this."""


@dataclass(kw_only=True)
class UNoise(Method):
    c: float = 0.1
    """Weight of the noise: 0 adds next to none, more adds it everywhere that the service can do
    without."""
    size: str = "medium"
    """Of the network that makes the map and runs at the participant: small, medium or large."""
    loud: float = 1.0
    """Standard deviation of the noise where the map is 1, for pictures in [-1, 1]."""
    width: float = 0.5
    """Factor on the layer sizes of the service."""
    lessons: float = 30.0
    """Epochs in which the service is taught."""
    rough: float = 1.0
    """Standard deviation of the loudest noise in the pictures that the service is taught on; 0
    shows it raw ones only."""
    epochs: float = 20.0
    """Epochs in which the map is learned."""
    batch: int = 32
    lr: float = 5e-3
    """Adam's for the map; it falls along a cosine."""

    name: ClassVar[str] = "unoise"
    title: ClassVar[str] = "U-Noise"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "needed"
    modalities: ClassVar[tuple[Modality, ...]] = ("image",)
    instead: ClassVar[str] = "its noise map is a picture's; try cloak"
    masks: ClassVar[bool] = True
    dial: ClassVar[str] = "c"
    sweep: ClassVar[tuple[float, ...]] = (0.01, 0.03, 0.1, 0.3, 1.0)

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise unknown("size of unoise", self.size, SIZES)
        self.within(
            c=(0, inf),
            loud=(1e-3, 64),
            rough=(0, 64),
            width=(0.01, inf),
            lessons=(0, inf),
            epochs=(0, inf),
            batch=(2, inf),
        )
        self.within(lr=(1e-9, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = UNoiseNetworks(problem, self)
        phases = [*networks.teach(), networks.drown()]
        game = Game(
            networks.modules(),
            phases,
            problem.feed(),
            self.batch,
            self.seed,
            self.identity(problem),
        )
        game.play(run)
        card = {
            "form": "record",
            "service": networks.judge(problem.feed("select")),
            "history": game.history,
        }
        shape = tuple(problem.schema.shape)
        settings = {"size": self.size, "loud": self.loud}
        return Release(
            problem.schema,
            ("noise-map", settings),
            networks.veil,
            Noise("gaussian", shape, self.loud),
            card,
        )


class UNoiseNetworks:
    """The services, one per task, and the network that makes the noise map."""

    def __init__(self, problem: Problem, method: UNoise, taught: Sequence[Service] = ()) -> None:
        """With services that are `taught` already, only the map is left to be learned."""
        self.method = method
        # Services first: the same seed then gives the same services, whatever the size of the map's
        # network.
        self.services = list(taught) or [
            segmentation.new_service(problem, task, method.width)
            if task.kind == "mask"
            else services.new_service(problem, task, method.width)
            for task in problem.utility
        ]
        self.veil = NoiseMap(cast(Sequence[int], problem.schema.shape), method.size, method.loud)

    def modules(self) -> dict[str, nn.Module]:
        return {
            "veil": self.veil,
            **{f"service {place}": service.module for place, service in enumerate(self.services)},
        }

    def teach(self) -> list[Phase]:
        """One phase per service."""
        lessons = [
            segmentation.teaching_phase if one.attribute.kind == "mask" else services.teaching_phase
            for one in self.services
        ]
        phases = [
            teach(one, self.method.lessons)
            for teach, one in zip(lessons, self.services, strict=True)
        ]
        return [hardened(phase, self.method.rough) for phase in phases]

    def drown(self) -> Phase:
        return Phase(
            "learning where noise may be",
            self.method.epochs,
            [Player("veil", self.veil, self.serve, self.method.lr)],
            schedule=segmentation.cooling,
            steady=True,
        )

    def serve(self, batch: Batch) -> Move:
        """The map's loss: what the services lose, less c times the mean logarithm of the map."""
        x = prepare(batch.x)
        logits = self.veil.logits(x)
        share = torch.sigmoid(logits)
        z = self.veil.drown(x, share, torch.randn_like(x))
        lost = torch.stack(
            [loss_of(one, one(z), batch.labels[one.attribute.name]) for one in self.services]
        ).mean()
        loss = lost - self.method.c * F.logsigmoid(logits).mean()
        return Move(
            loss,
            {"service loss": lost, "mean map": share.mean(), "kept": (share < KEPT).float().mean()},
        )

    @torch.inference_mode()
    def judge(self, feed: Feed) -> dict[str, Any]:
        """How well the services do on raw and on released pictures of people nobody learned from,
        and how much noise there is."""
        self.veil.eval()
        rows: dict[str, list[Tensor]] = {}
        for batch in feed.batches(
            np.array_split(np.arange(len(feed)), max(1, len(feed) // self.method.batch))
        ):
            x = prepare(batch.x)
            share = self.veil.map(x)
            z = self.veil.drown(x, share, torch.randn_like(x))
            rows.setdefault("map", []).append(share.mean((1, 2, 3)))
            rows.setdefault("kept", []).append((share < KEPT).float().mean((1, 2, 3)))
            for place, one in enumerate(self.services):
                truth = batch.labels[one.attribute.name]
                rows.setdefault(f"raw {place}", []).append(score_of(one, one(x), truth))
                rows.setdefault(f"released {place}", []).append(score_of(one, one(z), truth))
        mean = {name: float(torch.cat(parts).nanmean()) for name, parts in rows.items()}
        said: dict[str, Any] = {
            "part": "select",
            "n": len(feed),
            "mean map": mean["map"],
            "share of pixels kept": mean["kept"],
        }
        for place, one in enumerate(self.services):
            measure = "dice" if one.attribute.kind == "mask" else "accuracy"
            said[one.attribute.name] = {
                "measure": measure,
                "raw": mean[f"raw {place}"],
                "released": mean[f"released {place}"],
            }
        return said


def hardened(phase: Phase, rough: float) -> Phase:
    """The same phase on pictures that are noisy in places, and elsewhere clean.

    A network that has never seen noise loses everything to a little of it, wherever it is, and
    every pixel seems needed.
    """

    def seen(player: Player) -> Player:
        return replace(
            player,
            objective=lambda batch: player.objective(
                Batch(patchy(prepare(batch.x), rough), batch.labels)
            ),
        )

    return replace(phase, players=[seen(player) for player in phase.players]) if rough else phase


def patchy(x: Tensor, rough: float) -> Tensor:
    """Noise whose loudness changes from place to place, from none to `rough`; every fourth picture
    stays as it is."""
    coarse = torch.rand(len(x), 1, 4, 4, device=x.device) * 2 - 0.5
    spared = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.25
    loudness = F.interpolate(coarse, size=x.shape[2:], mode="bilinear").clamp(0, 1) * ~spared
    return x + rough * loudness * torch.randn_like(x)


def loss_of(service: Service, scores: Tensor, truth: Tensor) -> Tensor:
    """What a service loses on a batch; records without a label count nothing."""
    if service.attribute.kind == "mask":
        return segmentation.mask_loss(scores, truth)
    return F.cross_entropy(scores, truth, ignore_index=-1, reduction="sum") / (
        truth >= 0
    ).sum().clamp(min=1)


def score_of(service: Service, scores: Tensor, truth: Tensor) -> Tensor:
    """Per picture: Dice of a mask, or whether the class is right; nan where the label is
    missing."""
    if service.attribute.kind == "mask":
        return segmentation.dice(scores.squeeze(1) > 0, truth)
    return torch.where(truth >= 0, (scores.argmax(1) == truth).float(), torch.nan)
