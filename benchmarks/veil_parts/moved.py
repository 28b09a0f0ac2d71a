"""Codes of two values moved together: a linear map for each value, then a game.

    z = g + R(g, u)    min  |R|^2 + kernel · MMD(z | u=0, z | u=1) + confuse · perceptrons

R is small, MMD is the distance in four Gaussian kernels (Gretton and others, JMLR 13, 2012), and
the perceptrons must have no idea of u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.class_matching import barycentre_maps
from privet.methods.confusion import uninformed
from privet.methods.veil import one_cycle
from privet.nets.perceptrons import Perceptrons


@dataclass(frozen=True, kw_only=True)
class Game:
    """Settings of the game.

    Parameters:
        kernel: Weight of the distance in kernels.
        confuse: Weight of the perceptrons.
        members: Perceptrons.
        hidden: Their layers' size, and that of R.
        steps: Rounds.
        batch: Records in a round, half of each value.
        restart: Rounds after which a perceptron starts again, in turn.
        lr: Highest learning rate of R.
    """

    kernel: float = 100.0
    confuse: float = 1.0
    members: int = 2
    hidden: int = 512
    steps: int = 800
    batch: int = 1024
    restart: int = 200
    lr: float = 1e-3


def mapped(
    codes: dict[str, Tensor], u: dict[str, Tensor], on: tuple[str, ...]
) -> dict[str, Tensor]:
    """Codes after the linear maps that give both values one mean and covariance, learned on the
    parts named."""
    some = torch.cat([codes[name] for name in on]).double().numpy()
    maps, shifts = barycentre_maps(some, torch.cat([u[name] for name in on]).numpy(), 2)
    turn = torch.as_tensor(np.asarray(maps)).float()
    shift = torch.as_tensor(np.asarray(shifts)).float()
    return {
        name: torch.einsum("nd,ned->ne", z, turn[u[name]]) + shift[u[name]]
        for name, z in codes.items()
    }


def kernel_distance(one: Tensor, other: Tensor) -> Tensor:
    """The unbiased squared distance of two sets in four Gaussian kernels.

    >>> same = kernel_distance(torch.zeros(4, 2), torch.zeros(5, 2))
    >>> far = kernel_distance(torch.zeros(4, 2), torch.full((5, 2), 9.0))
    >>> round(float(same), 3), round(float(far), 3)
    (0.0, 8.0)
    """
    dims = one.shape[1]

    def near(a: Tensor, b: Tensor) -> Tensor:
        apart = torch.cdist(a, b).square() / dims
        return torch.stack([torch.exp(-apart * rate) for rate in (0.2, 0.5, 1.0, 2.0)]).sum(0)

    def within(a: Tensor) -> Tensor:
        close = near(a, a)
        return (close.sum() - close.diagonal().sum()) / (len(a) * (len(a) - 1))

    return within(one) + within(other) - 2 * near(one, other).mean()


def play(
    codes: dict[str, Tensor], u: dict[str, Tensor], on: tuple[str, ...], game: Game
) -> dict[str, Tensor]:
    """Codes after the game, learned on the parts named."""
    some, values = torch.cat([codes[name] for name in on]), torch.cat([u[name] for name in on])
    dims, half = some.shape[1], game.batch // 2
    each = [torch.nonzero(values == value)[:, 0] for value in (0, 1)]
    truth = torch.arange(2).repeat_interleave(half)
    told = F.one_hot(truth, 2).float()
    moved = nn.Sequential(
        nn.Linear(dims + 2, game.hidden),
        nn.ReLU(),
        nn.Linear(game.hidden, game.hidden),
        nn.ReLU(),
        nn.Linear(game.hidden, dims),
    )
    nn.init.zeros_(moved[-1].weight)
    nn.init.zeros_(moved[-1].bias)
    panel = Perceptrons(game.members, (dims, game.hidden, game.hidden, 2))
    release = torch.optim.AdamW(moved.parameters(), lr=game.lr, weight_decay=1e-2)
    readers = torch.optim.AdamW(panel.parameters(), lr=2e-3, weight_decay=1e-2)
    for step in range(game.steps):
        release.param_groups[0]["lr"] = game.lr * one_cycle(step / game.steps)
        index = torch.cat([one[torch.randint(0, len(one), (half,))] for one in each])
        way = moved(torch.cat([some[index], told], 1))
        z = some[index] + way
        loss = way.square().mean() + game.kernel * kernel_distance(z[:half], z[half:])
        loss = loss + game.confuse * uninformed(panel(z).flatten(0, 1))
        release.zero_grad(set_to_none=True)
        loss.backward()
        release.step()
        scores = panel(z.detach()).flatten(0, 1)
        readers.zero_grad(set_to_none=True)
        (game.members * F.cross_entropy(scores, truth.repeat(game.members))).backward()
        readers.step()
        if step and step % game.restart == 0 and step < 0.8 * game.steps:
            panel.renew(step // game.restart % game.members)
    with torch.no_grad():
        return {
            name: z + moved(torch.cat([z, F.one_hot(u[name], 2).float()], 1))
            for name, z in codes.items()
        }
