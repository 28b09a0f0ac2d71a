"""Logistic regression on standardised features: what a straight cut can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from privet.adversaries.adversary import Adversary
from privet.adversaries.flat import Flat
from privet.adversaries.released import View


@dataclass(frozen=True, kw_only=True)
class Linear(Adversary):
    rates: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    name: ClassVar[str] = "linear"

    def build(self, view: View, classes: int) -> nn.Module:
        flat = Flat(view)
        return nn.Sequential(flat, nn.Linear(flat.features, classes))
