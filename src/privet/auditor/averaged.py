"""Averages of several releases: what an adversary sees who is sent the same record more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from privet.nets.additive import Additive
from privet.nets.symbols import Symbols
from privet.release import Release


def averaged(release: Release, k: int) -> Release:
    """A release whose every record is the mean of k releases with independent noise."""
    return Release(release.schema, ("averaged", {}), _Mean(release, k), None, {**release.card, "random": True})


class _Mean(nn.Module):
    def __init__(self, release: Release, k: int) -> None:
        super().__init__()
        self.module, self.release, self.k, self.shape = release.module, release, k, release.shape

    def forward(self, x: Tensor) -> Tensor:
        once = self._releases(x)
        total = once()
        for _ in range(self.k - 1):
            total = total + once()
        return torch.div(total, self.k)

    def _releases(self, x: Tensor) -> Callable[[], Tensor]:
        """Gives a release of these records at every call; where noise comes last, the network runs for the first of them only."""
        module, law = self.release.module, self.release.noise
        if law is None or type(module) not in (Additive, Symbols):
            return lambda: self.release.forward(x)
        last = cast(Additive | Symbols, module)
        code, length = last.body(x), x.shape[1] if x.dim() > 1 else 0
        return lambda: last.drown(code, law.sample(len(x), length, x.device), x)
