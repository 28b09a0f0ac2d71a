"""Features of pictures or windows that nobody labelled, and how far apart two records are in them.

The network learns to find a record again, under another light and shifted, among the others of a
batch (Chen and others, "A simple framework for contrastive learning", ICML 2020). Two records are
then compared by their maps at every depth, each place's channels scaled to length one (Zhang and
others, "The unreasonable effectiveness of deep features", CVPR 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.nets.convolutions import scaled
from privet.nets.norm import GroupNorm
from privet.nets.resnet import Jitter

_CONV = {1: nn.Conv1d, 2: nn.Conv2d}
# Channels at each depth, which halves every axis.
DEPTHS = (64, 128, 256)
TEMPERATURE = 0.2
# Largest shift of a view, in pixels.
REACH = 4


class ContrastiveFeatures(nn.Module):
    """A network that tells records apart, taught without labels.

    Parameters:
        shape: Of one record: channels, then its axes.
        width: Factor on all layer sizes.
    """

    def __init__(self, shape: Sequence[int], width: float = 1.0) -> None:
        super().__init__()
        channels, *size = shape
        conv = _CONV[len(size)]
        sizes = [channels, *(scaled(depth, width) for depth in DEPTHS)]
        self.depths = nn.ModuleList(
            nn.Sequential(
                conv(inside, outside, 3, stride=2, padding=1),
                GroupNorm(1, outside),
                nn.SiLU(),
                conv(outside, outside, 3, padding=1),
                GroupNorm(1, outside),
                nn.SiLU(),
            )
            for inside, outside in pairwise(sizes)
        )
        self.head = nn.Sequential(
            nn.Linear(sizes[-1], sizes[-1]), nn.SiLU(), nn.Linear(sizes[-1], scaled(128, width))
        )
        self.jitter = Jitter(REACH) if len(size) == 2 else nn.Identity()

    def maps(self, x: Tensor) -> list[Tensor]:
        """Maps at every depth, each place's channels of length one."""
        found = []
        for depth in self.depths:
            x = depth(x)
            found.append(F.normalize(x.float(), dim=1))
        return found

    def distance(self, made: Tensor, x: Tensor) -> Tensor:
        """0 for the record itself; 1 for another record of the batch, on average."""
        rebuilt, wanted = self.maps(made), self.maps(x)
        apart = []
        for one, other in zip(rebuilt, wanted, strict=True):
            between = (other - other.roll(1, 0)).square().sum(1).mean().detach()
            apart.append((one - other).square().sum(1).mean() / between.clamp(min=1e-6))
        return torch.stack(apart).mean()

    def contrast(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of finding each record's other view among all, and how often it is found."""
        both = torch.cat([self._view(x), self._view(x)])
        for depth in self.depths:
            both = depth(both)
        codes = F.normalize(self.head(both.flatten(2).mean(2)).float(), dim=1)
        near = codes @ codes.T / TEMPERATURE
        near = torch.diagonal_scatter(near, near.new_full((len(near),), -1e4))
        partner = torch.arange(len(near), device=x.device).roll(len(x))
        found = (near.argmax(1) == partner).float().mean()
        return F.cross_entropy(near, partner), found

    def _view(self, x: Tensor) -> Tensor:
        """The same records shifted, mirrored and under another light."""
        x = self.jitter(x)
        scale = torch.randn(len(x), *(1,) * (x.dim() - 1), device=x.device)
        tint = torch.randn(len(x), x.shape[1], *(1,) * (x.dim() - 2), device=x.device)
        return x * (1 + 0.3 * scale) + 0.2 * tint
