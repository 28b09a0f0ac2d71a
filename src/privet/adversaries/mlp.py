"""A multi-layer perceptron on standardised features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from privet.adversaries.adversary import Adversary
from privet.adversaries.flat import Flat
from privet.adversaries.released import View
from privet.nets.convolutions import scaled


@dataclass(frozen=True, kw_only=True)
class MLP(Adversary):
    hidden: int = 512
    dropout: float = 0.3
    name: ClassVar[str] = "mlp"

    def build(self, view: View, classes: int) -> nn.Module:
        flat = Flat(view)
        size = scaled(self.hidden, self.width)
        layers: list[nn.Module] = [flat]
        for inside in (flat.features, size):
            layers += [nn.Linear(inside, size), nn.BatchNorm1d(size), nn.ReLU(), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, nn.Linear(size, classes))
