"""Averages of several releases: what an adversary sees who is sent the same record more than once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.release import Release


def averaged(release: Release, k: int) -> Release:
    """A release whose every record is the mean of k releases with independent noise."""
    return Release(release.schema, ("averaged", {}), _Mean(release, k), None, {**release.card, "random": True})


class _Mean(nn.Module):
    def __init__(self, release: Release, k: int) -> None:
        super().__init__()
        self.module, self.release, self.k, self.shape = release.module, release, k, release.shape

    def forward(self, x: Tensor) -> Tensor:
        total = self.release.forward(x)
        for _ in range(self.k - 1):
            total = total + self.release.forward(x)
        return torch.div(total, self.k)
