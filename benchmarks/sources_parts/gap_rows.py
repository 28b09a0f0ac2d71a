"""Generative adversarial privacy as benchmarks/sources.py plays it.

Settings are those of `privet.GAP`, and `endless`: the channel goes on where the adversary is wrong
more often than guessing, as in the report's Algorithm 1, whose cross-entropy has no end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from privet.methods.gap import GAP, GAPNetworks
from privet.train.feed import Batch
from privet.train.game import Move
from sources_parts.learned import Bench, Learned


class Endless(GAPNetworks):
    """The report's objective: distortion minus penalty times cross-entropy, not cut off."""

    def defend(self, batch: Batch) -> Move:
        released, _, moved = self.release(batch)
        privacy = self._gains(released, batch).mean()
        loss = moved + self.method.penalty * privacy + self._task_loss(released, batch)
        return Move(loss, {"distortion": moved, "privacy": privacy})


def learn(bench: Bench, settings: dict[str, Any]) -> Learned:
    settings = dict(settings)
    kind = Endless if settings.pop("endless", False) else GAPNetworks
    saved = settings.pop("saved", None)
    method = GAP(**settings)
    problem = bench.problem(method, [])
    torch.manual_seed(method.seed)
    networks = kind(problem, method)
    channel = networks.channel.to(bench.device)
    facts: dict[str, Any] = {}
    if saved is None:
        history = bench.play(
            method.game(problem, networks.modules(), networks.phases(), method.batch)
        )
        for module in networks.modules().values():
            module.eval()
        facts = {"card": networks.judge(problem), "history": history[-1]}
    else:
        channel.load_state_dict(saved["module"])
        facts = saved["facts"]
    channel.eval()

    def release(x: Tensor) -> Tensor:
        noise = torch.randn(len(x), *channel.draws, device=x.device) if channel.draws else None
        return channel(x, noise)  # type: ignore[no-any-return]

    shape = tuple(bench.raw["test"].shape[1:])
    return Learned(
        channel, release, shape, True, bool(channel.draws), facts["card"]["in_game"], facts
    )
