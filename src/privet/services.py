"""Service: a model that exists before the release and must go on working, or a model of the private attribute that its owner lends.

A service takes records in the network's own scale, which is also the form in which releases that keep a record's form come out:
pictures as floats in [-1, 1], rows and windows standardised by their schema. It gives one score per class. Once taught, or
brought, it is frozen: it passes gradients on and learns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Attribute
from privet.feed import Batch
from privet.game import Move, Phase, Player
from privet.methods.method import Problem
from privet.nets.code import body
from privet.nets.convolutions import prepare


@dataclass(frozen=True)
class Service:
    attribute: Attribute
    module: nn.Module
    """Records in the network's scale to (n, classes) scores."""
    source: str = "trained here"

    def __call__(self, x: Tensor) -> Tensor:
        """Scores; the module answers as it would in use, whatever the game around it does."""
        self.module.eval()
        scores: Tensor = self.module(x)
        return scores.float()


def untaught(problem: Problem, attribute: Attribute, width: float = 0.25, dropout: float = 0.1) -> Service:
    """A service of our own for one attribute, to be taught by `lesson` first."""
    return Service(attribute, body(problem.schema, attribute.classes, width, dropout))


def lesson(service: Service, epochs: float, lr: float = 1e-3) -> Phase:
    """The phase of a game in which a service learns its attribute from raw records."""

    def learn(batch: Batch) -> Move:
        service.module.train()
        scores = service.module(prepare(batch.x)).float()
        truth = batch.labels[service.attribute.name]
        loss = F.cross_entropy(scores, truth, ignore_index=-1)
        right = ((scores.argmax(1) == truth) & (truth >= 0)).sum() / (truth >= 0).sum().clamp(min=1)
        return Move(torch.nan_to_num(loss), {f"{service.attribute.name} right": right})

    return Phase(f"teaching {service.attribute.name}", epochs, [Player("service", service.module, learn, lr, decay=1e-2)])
