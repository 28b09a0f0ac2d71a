"""Generative adversarial privacy as benchmarks/sources.py plays it.

Settings are those of `privet.GAP`, and two more:

    endless   the channel goes on where the adversary's cross-entropy is above that of guessing, as
              in the report's Algorithm 1
    guarded   the adversary sees moved and mirrored pictures, with dropout and weight decay. Without,
              it learns its half of *fit* by heart: its cross-entropy on the channel's half is then
              above that of guessing, and a gain that is cut off there says that nothing is left
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from privet.methods.gap import GAP, GAPNetworks
from privet.methods.method import Problem
from privet.nets.code import body
from privet.nets.resnet import Jitter
from privet.train.feed import Batch
from privet.train.game import Move, Phase
from sources_parts.learned import Bench, Learned

DROPOUT, DECAY = 0.3, 5e-2


class Networks(GAPNetworks):
    """GAP's players, with a guarded adversary or the report's objective."""

    def __init__(self, problem: Problem, method: GAP, endless: bool, guarded: bool) -> None:
        super().__init__(problem, method)
        self.endless, self.guarded = endless, guarded
        if guarded:
            classes = sum(attribute.classes for attribute in self.private)
            plain = body(problem.schema.plain, classes, method.width, DROPOUT)
            self.adversary = nn.Sequential(Jitter(2), plain)

    def phases(self) -> list[Phase]:
        if not self.guarded:
            return super().phases()
        return [
            replace(
                phase,
                players=[
                    replace(p, decay=DECAY) if p.name == "adversary" else p for p in phase.players
                ],
            )
            for phase in super().phases()
        ]

    def defend(self, batch: Batch) -> Move:
        if not self.endless:
            return super().defend(batch)
        released, _, moved = self.release(batch)
        privacy = self._gains(released, batch).mean()
        loss = moved + self.method.penalty * privacy + self._task_loss(released, batch)
        return Move(loss, {"distortion": moved, "privacy": privacy})


def learn(bench: Bench, settings: dict[str, Any]) -> Learned:
    settings = dict(settings)
    how = (settings.pop("endless", False), settings.pop("guarded", False))
    saved = settings.pop("saved", None)
    method = GAP(**settings)
    problem = bench.problem(method, [])
    torch.manual_seed(method.seed)
    networks = Networks(problem, method, *how)
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
