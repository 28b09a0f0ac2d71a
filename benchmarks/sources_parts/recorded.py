"""Learning on a GPU that others share: a step is told once, and nothing is read back in between.

Whoever waits for a figure has no work queued, and waits for a turn of everybody else. Both forms
compute what the plain ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from privet.data.dataset import Array
from privet.nets.device import precision
from privet.train.cuda_graph import ReplayedStep, adamw, set_rate
from privet.train.feed import Positions
from privet.train.game import Game, Phase, Player, Run, Steps
from privet.train.step import take_step

# Epochs whose orders are sent to the device at once.
AT_ONCE = 100


class UnreadGame(Game):
    """A game whose figures are read at the end of a phase instead of every epoch, and whose orders
    are sent to the device for many epochs at once."""

    _last: tuple[Phase, float, Mapping[str, Tensor]] | None = None

    @classmethod
    def of(cls, game: Game) -> UnreadGame:
        return cls(game.modules, game.phases, game.feed, game.batch, game.seed, game.identity)

    def _remember(self, phase: Phase, epoch: float, figures: Mapping[str, Tensor]) -> None:
        self._last = phase, epoch, figures

    def _end_phase(self, number: int, steps: Steps, run: Run) -> None:
        if self._last is not None:
            super()._remember(*self._last)
            self._last = None
        super()._end_phase(number, steps, run)

    def _draw(
        self, number: int, player: Player, move: int, orders: dict[str, tuple[int, Positions]]
    ) -> Positions:
        count = self._count(player)
        size = min(self.batch, count)
        epoch, place = divmod(move, max(1, count // size))
        first = epoch - epoch % AT_ONCE
        if player.name not in orders or orders[player.name][0] != first:
            epochs = range(first, first + AT_ONCE)
            some = np.concatenate([self._order(number, player, size, e) for e in epochs])
            orders[player.name] = first, self.feed.places(some)
        start = (epoch - first) * count + place * size
        return orders[player.name][1][start : start + size]

    def _order(self, number: int, player: Player, size: int, epoch: int) -> Array:
        """Of one epoch, as the game itself draws it."""
        rng = np.random.default_rng([self.seed, number, epoch])
        order = rng.permutation(self._count(player))
        own = order if player.records is None else player.records[order]
        return self.feed.order(own, size, rng)


class Lessons:
    """Steps of AdamW against a loss of the records at given positions, recorded on a GPU.

    Parameters:
        steady: Whether a step computes the same for all positions; others are not recorded.
    """

    def __init__(
        self,
        net: nn.Module,
        loss: Callable[[Tensor], Tensor],
        rate: float,
        decay: float,
        device: torch.device,
        steady: bool = True,
    ) -> None:
        self.rate, self.optimiser = rate, adamw(net, rate, decay, device)
        # Knows nothing of this object: a recording that is held in a circle keeps its memory.
        take = partial(_take, net, loss, self.optimiser, device)
        self._take: Callable[[Tensor], None] = ReplayedStep(take) if steady else take

    def step(self, index: Tensor, factor: float) -> None:
        """One step at `factor` of the rate."""
        set_rate(self.optimiser, self.rate * factor)
        self._take(index)


def _take(
    net: nn.Module,
    loss: Callable[[Tensor], Tensor],
    optimiser: torch.optim.Optimizer,
    device: torch.device,
    index: Tensor,
) -> None:
    net.train()
    with precision(device):
        lost = loss(index)
    take_step(lost, [net], [optimiser])
