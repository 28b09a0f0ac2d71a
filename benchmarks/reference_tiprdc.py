"""TIPRDC's step as it is published, written again from its description, as the yardstick of
benchmarks/learning.py.

    for every batch (Li and others, KDD 2020, Algorithm 1; the Jensen-Shannon estimate of equation 18)
        C: one step down  CE(C(E(x)), u)
        M: one step up    J = mean(-softplus(-M(x, E(x), u))) - mean(softplus(M(x', E(x), u)))
        E: one step up    lambda CE(C(E(x)), u) + (1 - lambda) J

Three backward passes, each from a forward pass of its own; M looks at (x, z) and at (x', z), x'
being the batch shifted by one, with its whole trunk; float32 records, PyTorch's defaults throughout
(which let convolutions, not products, use TF32). The networks are those of the paper's Table 1 with
batch normalisation after every convolution: layer for layer those of nets/convolutions.py, so that
weights can be carried over and loss curves compared. Nothing of Privet is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def blocks(
    plan: Sequence[tuple[int, int]], channels: int, width: float
) -> tuple[nn.Sequential, int]:
    layers: list[nn.Module] = []
    for convolutions, size in plan:
        for _ in range(convolutions):
            out = max(4, round(size * width))
            layers += [
                nn.Conv2d(channels, out, 3, padding=1, bias=False),
                nn.BatchNorm2d(out),
                nn.ReLU(),
            ]
            channels = out
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers), channels


def trunk(channels: int, width: float) -> tuple[nn.Sequential, int]:
    return blocks(((3, 256), (3, 512), (3, 512)), channels, width)


class Adversary(nn.Module):
    def __init__(self, channels: int, places: int, classes: int, width: float) -> None:
        super().__init__()
        self.trunk, out = trunk(channels, width)
        hidden = max(4, round(4096 * width))
        self.head = nn.Sequential(
            nn.Linear(out * places, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.trunk(z).flatten(1))  # type: ignore[no-any-return]


class Estimator(nn.Module):
    def __init__(self, places: int, classes: int, width: float) -> None:
        super().__init__()
        self.lift, channels = blocks(((3, 64), (2, 128)), 3, width)
        self.trunk, out = trunk(channels, width)
        first, second = max(4, round(4096 * width)), max(4, round(512 * width))
        self.first = nn.Linear(2 * out * places + classes, first)
        self.rest = nn.Sequential(
            nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, 1)
        )

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> Tensor:
        from_x, from_z = self.trunk(torch.cat([self.lift(x), z])).flatten(1).chunk(2)
        return self.rest(self.first(torch.cat([from_x, from_z, u], 1))).squeeze(1)  # type: ignore[no-any-return]


class Reference:
    def __init__(
        self,
        height: int,
        across: int,
        classes: int = 2,
        width: float = 1.0,
        budget: float = 0.9,
        lr: float = 3e-4,
    ) -> None:
        self.classes, self.budget = classes, budget
        places = (height // 32) * (across // 32)
        self.extractor, channels = blocks(((2, 64), (2, 128)), 3, width)
        self.adversary = Adversary(channels, places, classes, width)
        self.estimator = Estimator(places, classes, width)
        self.lr = lr

    def to(self, device: torch.device) -> Reference:
        self.players = [
            self.extractor.to(device),
            self.adversary.to(device),
            self.estimator.to(device),
        ]
        self.optimisers = [
            torch.optim.Adam(player.parameters(), lr=self.lr) for player in self.players
        ]
        return self

    def take(self, extractor: nn.Module, adversary: nn.Module, estimator: nn.Module) -> None:
        """The weights of Privet's three networks, whose names and shapes are these but for the
        estimator's first full layer."""
        self.extractor.load_state_dict(
            {key.removeprefix("body."): value for key, value in extractor.state_dict().items()}
        )
        self.adversary.load_state_dict(
            {
                key.replace("trunk.body.", "trunk."): value
                for key, value in adversary.state_dict().items()
            }
        )
        theirs: Mapping[str, Tensor] = estimator.state_dict()
        mine = {
            key.replace("trunk.body.", "trunk."): value
            for key, value in theirs.items()
            if not key.startswith("pair.")
        }
        mine |= {
            key.replace("pair.score.", "rest."): value
            for key, value in theirs.items()
            if key.startswith("pair.score.")
        }
        mine["first.weight"] = torch.cat([theirs[f"pair.of_{part}.weight"] for part in "xzu"], 1)
        mine["first.bias"] = theirs["pair.of_x.bias"]
        self.estimator.load_state_dict(mine)

    def step(self, pictures: Tensor, u: Tensor) -> dict[str, Tensor]:
        """One round on pictures in 0..255 with private values u. Figures are those before the
        player in question has moved."""
        x, one_hot = pictures.float() / 127.5 - 1.0, F.one_hot(u, self.classes).float()
        extractor_step, adversary_step, estimator_step = self.optimisers

        adversary_step.zero_grad()
        accused = F.cross_entropy(self.adversary(self.extractor(x).detach()), u)
        accused.backward()  # type: ignore[no-untyped-call]
        adversary_step.step()

        estimator_step.zero_grad()
        informed = self.information(x, self.extractor(x).detach(), one_hot)
        (-informed).backward()  # type: ignore[no-untyped-call]
        estimator_step.step()

        extractor_step.zero_grad()
        z = self.extractor(x)
        loss = self.defence(F.cross_entropy(self.adversary(z), u), self.information(x, z, one_hot))
        loss.backward()  # type: ignore[no-untyped-call]
        extractor_step.step()
        accused, informed = accused.detach(), informed.detach()
        return {
            "adversary loss": accused,
            "information J": informed,
            "extractor loss": self.defence(accused, informed),
        }

    def defence(self, accused: Tensor, informed: Tensor) -> Tensor:
        return -self.budget * accused - (1 - self.budget) * informed

    def warm_up(self, pictures: Tensor, u: Tensor) -> Tensor:
        """One step of extractor and adversary together, to predict u."""
        x = pictures.float() / 127.5 - 1.0
        for optimiser in self.optimisers[:2]:
            optimiser.zero_grad()
        loss = F.cross_entropy(self.adversary(self.extractor(x)), u)
        loss.backward()  # type: ignore[no-untyped-call]
        for optimiser in self.optimisers[:2]:
            optimiser.step()
        return loss.detach()

    def information(self, x: Tensor, z: Tensor, u: Tensor) -> Tensor:
        together, apart = self.estimator(x, z, u), self.estimator(x.roll(1, 0), z, u)
        return -F.softplus(-together).mean() - F.softplus(apart).mean()
