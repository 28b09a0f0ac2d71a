"""A small critic that learns which released record belongs to which record, for the lower bounds of
evidence/information.py."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.network_training import BestState
from privet.data.dataset import Array


class Critic(nn.Module):
    """Scores s(x_i, z_j) = f(x_i) . g(z_j) + c of all x with all z: a table that takes one pass of
    each network."""

    def __init__(self, x: int, z: int, hidden: int = 128, out: int = 32) -> None:
        super().__init__()
        self.f, self.g = (
            nn.Sequential(
                nn.Linear(size, hidden),
                nn.GELU(),
                nn.Linear(hidden, hidden),
                nn.GELU(),
                nn.Linear(hidden, out),
            )
            for size in (x, z)
        )
        self.c = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return torch.as_tensor(self.f(x) @ self.g(z).T + self.c)

    @torch.no_grad()
    def scores(self, x: Array, z: Array) -> Array:
        """The table of scores, float64."""
        return np.asarray(self(torch.from_numpy(x), torch.from_numpy(z)).double())


def critic_loss(table: Tensor) -> Tensor:
    """InfoNCE plus Jensen-Shannon: the log-ratio ln p(x, z) / p(x) p(z), which is best for the
    second, is best for both.

    >>> round(float(critic_loss(torch.zeros(4, 4))), 4)  # ln 4 + 2 ln 2
    2.7726
    >>> round(float(critic_loss(100 * torch.eye(4) - 50)), 4)
    0.0
    """
    true, mixed = table.diagonal(), table[~torch.eye(len(table), dtype=torch.bool)]
    infonce = F.cross_entropy(table, torch.arange(len(table)))
    return infonce + F.softplus(-true).mean() + F.softplus(mixed).mean()


def train_critic(
    pairs: tuple[Array, Array],
    others: tuple[Array, Array],
    seed: int = 0,
    steps: int = 500,
    batch: int = 256,
) -> Critic:
    """Trained on float32 pairs x (n, d), z (n, e), in the state that did best on the other pairs.

    >>> x = np.random.default_rng(0).normal(size=(400, 1)).astype(np.float32)
    >>> critic = train_critic((x[:300], x[:300]), (x[300:], x[300:]), steps=50)
    >>> loss = critic_loss(torch.from_numpy(critic.scores(x[300:], x[300:])))
    >>> bool(loss < np.log(100) + 2 * np.log(2))
    True
    """
    random = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        critic = Critic(pairs[0].shape[1], pairs[1].shape[1])
    x, z, *other = (torch.from_numpy(side) for side in (*pairs, *others))
    optimiser = torch.optim.AdamW(critic.parameters(), weight_decay=1e-2)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    best = BestState(critic)
    for step in range(steps):
        some = torch.from_numpy(random.choice(len(x), min(batch, len(x)), replace=False))
        optimiser.zero_grad()
        critic_loss(critic(x[some], z[some])).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rate.step()
        if step % 25 == 24:
            with torch.no_grad():
                best.offer(-float(critic_loss(critic(*other))))
    best.restore()
    return critic
