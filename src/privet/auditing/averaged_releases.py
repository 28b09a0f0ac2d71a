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

SMALL = 1024
"""Numbers in a record's noise of which many draws fit into memory at once."""


def averaged(release: Release, k: int) -> Release:
    """A release whose every record is the mean of k releases with independent noise."""
    law, last = release.noise, type(release.module) in (Additive, Symbols)
    if (
        law is not None
        and last
        and None not in law.shape
        and math.prod(size or 1 for size in law.shape) <= SMALL
    ):
        module = Averaged(cast(Additive | Symbols, release.module), k)
        return Release(
            release.schema,
            ("averaged", {}),
            module,
            replace(law, shape=(k, *law.shape)),
            release.card,
        )
    return Release(
        release.schema, ("averaged", {}), _Mean(release, k), None, {**release.card, "random": True}
    )


class _Mean(nn.Module):
    def __init__(self, release: Release, k: int) -> None:
        super().__init__()
        self.module, self.release, self.k, self.shape = release.module, release, k, release.shape

    def forward(self, x: Tensor) -> Tensor:
        total = self.release.forward(x)
        for _ in range(self.k - 1):
            total = total + self.release.forward(x)
        return torch.div(total, self.k)
