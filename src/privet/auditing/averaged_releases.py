"""Averages of several releases: what an adversary sees who is sent the same record more than
once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from privet.nets.additive import Additive
from privet.nets.averaged import Averaged
from privet.nets.symbols import Symbols
from privet.release.release import Release

# Numbers in a record's noise of which many draws fit into memory at once.
SMALL_NOISE = 1024


def average_of(release: Release, k: int) -> Release:
    """A release whose every record is the mean of k releases with independent noise."""
    law, module = release.noise, release.module
    size = None if law is None or None in law.shape else math.prod(cast(list[int], law.shape))
    if law and size and size <= SMALL_NOISE and type(module) in (Additive, Symbols):
        mean: nn.Module = Averaged(cast(Additive | Symbols, module), k)
        law, card = replace(law, shape=(k, *law.shape)), release.card
    else:
        law, mean, card = None, _MeanOfReleases(release, k), {**release.card, "random": True}
    return Release(release.schema, ("averaged", {}), mean, law, card)


class _MeanOfReleases(nn.Module):
    def __init__(self, release: Release, k: int) -> None:
        super().__init__()
        self.module, self.release, self.k, self.shape = release.module, release, k, release.shape

    def forward(self, x: Tensor) -> Tensor:
        total = self.release.forward(x)
        for _ in range(self.k - 1):
            total = total + self.release.forward(x)
        return torch.div(total, self.k)
