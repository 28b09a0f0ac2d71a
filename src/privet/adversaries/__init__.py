"""Ways to attack a release, one file each. A new one is a file here and a line in ADVERSARIES."""

from __future__ import annotations

from privet.adversaries.adversary import Adversary, Trained
from privet.adversaries.linear import Linear
from privet.adversaries.mlp import MLP
from privet.adversaries.network import Network
from privet.adversaries.released import Released, View

ADVERSARIES: dict[str, type[Adversary]] = {adversary.name: adversary for adversary in (Linear, MLP, Network)}

__all__ = ["ADVERSARIES", "Adversary", "Linear", "MLP", "Network", "Released", "Trained", "View"]
