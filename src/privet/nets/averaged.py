"""The mean of k releases of a record with fresh noise each: what an adversary makes of a record
that it is sent more than once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.nets.additive import Additive
from privet.nets.symbols import Symbols


class Averaged(nn.Module):
    """Noise comes last, so the network runs once for all k; `noise` holds k draws per record."""

    def __init__(self, once: Additive | Symbols, k: int) -> None:
        super().__init__()
        self.once, self.body, self.k, self.shape = once, once.body, k, once.shape

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.drown(self.body(x), noise, x)

    def drown(self, code: Tensor, noise: Tensor, x: Tensor) -> Tensor:
        """What is released of a code that is known already."""
        return torch.stack([self.once.drown(code, noise[:, i], x) for i in range(self.k)]).mean(0)
