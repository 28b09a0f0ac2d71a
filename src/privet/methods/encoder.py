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
from typing import Any, cast

import torch
from torch import nn

from privet.methods.method import Method, Problem
from privet.methods.tiprdc import jensen_shannon
from privet.nets import plan as nets
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run


@dataclass(kw_only=True)
class Encoder(Method):
    """Features that keep as much of the record as they can: a baseline that hides nothing.

    TIPRDC's extractor and estimator of mutual information learn without an adversary. Private
    attributes are only named, so that they are left out of the input and audited.

    Parameters:
        width: Factor on all layer sizes; 1 is the size published for TIPRDC.
        epochs: How often every record of *fit* is seen.
        batch: Records per step.
        lr: Learning rate of Adam.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Encoder(width=0.05, epochs=1)
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.card["history"][-1]["phase"]
        'encoding'
    """

    width: float = 1.0
    epochs: float = 20.0
    batch: int = 64
    lr: float = 3e-4

    name = "encoder"
    title = "Encoder"
    numbers = True

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
        """An extractor that knows no private attribute, and its figures per epoch."""
        plan = nets.plan(problem.schema)
        extractor = plan.extractor(self.width)
        estimator = plan.estimator(cast(Sequence[int | None], extractor.shape), 1, self.width)

        def inform(batch: Batch) -> Move:
            nothing = torch.zeros(len(batch.x), 1, device=batch.x.device)
            value = jensen_shannon(*estimator(batch.x, extractor(batch.x), nothing))
            return Move(-value, {"information J": value})

        both = nn.ModuleList([extractor, estimator])
        player = Player("encoder", both, inform, self.lr)
        phase = Phase("encoding", self.epochs, [player], steady=True)
        history = self.game(problem, {"encoder": both}, [phase], self.batch).play(run)
        return extractor.eval(), history
