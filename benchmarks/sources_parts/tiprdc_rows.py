"""TIPRDC and its controls as benchmarks/sources.py plays them, at equal size.

    form: game          extractor, adversary and estimator, as published
          random        the extractor as it is drawn, never taught
          autoencoder   the extractor and its reverse, taught to give pictures back; u unknown
    critic: global      the published estimator: one score for a whole picture
            local       one score for every place of the features, and the mean of J over places
    channels: 0         as many maps as published (128 x width)
              k         a last 1 x 1 convolution leaves k maps: features with less room than the
                        picture

Without J is budget 1: J's gradient is multiplied by 1 - budget, and Adam forgets the scale of what
is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.method import Problem
from privet.methods.tiprdc import TIPRDC, TIPRDCNetworks
from privet.nets import convolutions
from privet.nets.convolutions import blocks, prepare, scaled
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player
from sources_parts.learned import Bench, Learned


@dataclass(frozen=True)
class Form:
    """What differs from the published game."""

    form: str = "game"
    critic: str = "global"
    channels: int = 0


class Narrow(nn.Module):
    """The published extractor and a last convolution that leaves few maps."""

    def __init__(self, extractor: nn.Module, channels: int) -> None:
        super().__init__()
        shape: Any = extractor.shape
        self.extractor = extractor
        self.last = nn.Sequential(
            nn.Conv2d(shape[0], channels, 1, bias=False), nn.BatchNorm2d(channels)
        )
        self.shape = (channels, *shape[1:])

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.extractor(x))  # type: ignore[no-any-return]


class LocalEstimator(nn.Module):
    """Scores every place of the features: do z there, x and u belong together?

    After the local form of Hjelm and others, "Deep InfoMax", ICLR 2019: a global score is won by
    whatever tells one picture from another, such as its light; a local one asks that each place of
    the features tell what is at that place of the picture.
    """

    def __init__(self, shape: Any, features: Any, private: int, width: float) -> None:
        super().__init__()
        self.lift, out = blocks(convolutions.LIFT_OF_ESTIMATOR, shape[0], 2, width)
        size = scaled(512, width)
        self.of_x = nn.Conv2d(out, size, 1)
        self.of_z = nn.Conv2d(features[0], size, 1, bias=False)
        self.of_u = nn.Linear(private, size, bias=False)
        self.score = nn.Sequential(
            nn.ReLU(), nn.Conv2d(size, size, 1), nn.ReLU(), nn.Conv2d(size, 1, 1)
        )

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        of_x = self.of_x(self.lift(prepare(x)))
        rest = self.of_z(z) + self.of_u(u)[:, :, None, None]
        return self.score(of_x + rest), self.score(of_x.roll(1, 0) + rest)


class Networks(TIPRDCNetworks):
    """The published networks, or those of a control."""

    def __init__(self, problem: Problem, method: TIPRDC, form: Form) -> None:
        super().__init__(problem, method)
        features: Any = self.extractor.shape
        if form.channels:
            self.extractor = Narrow(self.extractor, form.channels)
            features = self.shape = self.extractor.shape
        classes = sum(attribute.classes for attribute in self.private)
        shape = problem.schema.shape
        if form.channels:
            self.adversary = convolutions.Classifier(features, classes, method.width)
            # The estimator reads x and z by one trunk, and so wants as many maps of z as of x.
            self.estimator = Widened(shape, features, classes, method.width)
        if form.critic == "local":
            self.estimator = LocalEstimator(shape, features, classes, method.width)
        self.decoder = convolutions.Decoder(shape, features, method.width)  # type: ignore[arg-type]

    def give_back(self, batch: Batch) -> Move:
        """The autoencoder's loss: the squared error of pictures in [0, 1]."""
        made = self.decoder(self.extractor(batch.x)).float() / 255
        return Move(F.mse_loss(made, batch.x.float() / 255))


class Widened(nn.Module):
    """The published estimator for features of few maps: a 1 x 1 convolution widens them first."""

    def __init__(self, shape: Any, features: Any, private: int, width: float) -> None:
        super().__init__()
        wide = scaled(128, width)
        self.widen = nn.Conv2d(features[0], wide, 1)
        inside = (wide, *features[1:])
        self.estimator = convolutions.Estimator(shape, inside, private, width)

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        return self.estimator(x, self.widen(z), u)  # type: ignore[no-any-return]


def learn(bench: Bench, settings: dict[str, Any]) -> Learned:
    settings = dict(settings)
    saved = settings.pop("saved", None)
    about = {key: settings.pop(key) for key in ("form", "critic", "channels") if key in settings}
    form, method = Form(**about), TIPRDC(**settings)
    problem = bench.problem(method, [])
    torch.manual_seed(method.seed)
    networks = Networks(problem, method, form)
    extractor = networks.extractor.to(bench.device)
    facts: dict[str, Any] = {}
    if saved is not None:
        extractor.load_state_dict(saved["module"])
        facts = saved["facts"]
    elif form.form != "random":
        modules = {**networks.modules(), "decoder": networks.decoder}
        history = bench.play(
            method.game(problem, modules, phases(networks, method, form), method.batch)
        )
        in_game = networks.judge(problem.feed("select")) if form.form == "game" else {}
        facts = {"card": {"in_game": in_game}, "history": history[-1]}
    else:
        # Batch normalisation of an extractor that is never taught: the statistics of *fit*.
        extractor.train()
        with torch.no_grad():
            for some in bench.raw["fit"].split(256):
                extractor(some)
        facts = {"card": {"in_game": {}}, "history": {}}
    extractor.eval()
    shape: Any = extractor.shape
    facts["information"] = facts["history"].get("information J")
    return Learned(
        extractor, extractor, tuple(shape), False, False, facts["card"]["in_game"], facts
    )


def phases(networks: Networks, method: TIPRDC, form: Form) -> list[Phase]:
    if form.form == "autoencoder":
        both = nn.ModuleList([networks.extractor, networks.decoder])
        player = Player("autoencoder", both, networks.give_back, method.lr)
        epochs = method.warmup + method.epochs
        return [Phase("giving records back", epochs, [player], steady=True)]
    play = networks.play(method.epochs, method.lr, method.fused)
    return [networks.warm_up(method.warmup, method.lr), replace(play)]
