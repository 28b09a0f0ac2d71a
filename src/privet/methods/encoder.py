"""Encoder: features that keep what they can of the record and hide nothing.

    max_E max_M  J(x; z),      z = E(x),  J the Jensen-Shannon bound on I(x; z) (methods/tiprdc.py)

The baseline of that name in Li et al., "TIPRDC", KDD 2020, section 5.2. The source says only that a
network learns a latent representation; here it is TIPRDC's extractor and estimator without
adversary, warm-up and private attribute, which is Deep InfoMax's global objective (Hjelm et al.,
ICLR 2019). What an audit finds in it is what features give away when nobody hides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, cast

import torch
from torch import nn

from privet.methods.method import Method, Problem
from privet.methods.tiprdc import jensen_shannon
from privet.nets import plan as nets
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Game, Move, Phase, Player, Run


@dataclass(kw_only=True)
class Encoder(Method):
    width: float = 1.0
    """Factor on all layer sizes; 1 is TIPRDC's published size."""
    epochs: float = 20.0
    batch: int = 64
    lr: float = 3e-4

    name: ClassVar[str] = "encoder"
    title: ClassVar[str] = "Encoder"
    numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.within(width=(0.01, inf), batch=(2, inf), lr=(1e-9, inf), epochs=(0, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        extractor, history = self.encode(problem, run)
        return Release(
            problem.schema,
            ("extractor", {"width": self.width}),
            extractor,
            None,
            {"history": history},
        )

    def encode(self, problem: Problem, run: Run) -> tuple[nn.Module, list[dict[str, Any]]]:
        """An extractor that knows no private attribute, and how its learning went."""
        torch.manual_seed(self.seed)
        plan = nets.plan(problem.schema)
        extractor = plan.extractor(self.width)
        estimator = plan.estimator(cast(Sequence[int | None], extractor.shape), 1, self.width)

        def inform(batch: Batch) -> Move:
            nothing = torch.zeros(len(batch.x), 1, device=batch.x.device)
            value = jensen_shannon(*estimator(batch.x, extractor(batch.x), nothing))
            return Move(-value, {"information J": value})

        both = nn.ModuleList([extractor, estimator])
        phase = Phase(
            "encoding", self.epochs, [Player("encoder", both, inform, self.lr)], steady=True
        )
        game = Game(
            {"encoder": both},
            [phase],
            problem.feed(),
            self.batch,
            self.seed,
            self.identity(problem),
        )
        game.play(run)
        return extractor.eval(), game.history
