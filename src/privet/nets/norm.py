"""Group normalisation that stays in the half precision it is given."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GroupNorm(nn.GroupNorm):
    """As torch's (Wu and He, ECCV 2018). Autocast would turn every map to float32 and what follows
    with it; sums inside are float32 either way, and half the bytes are half the time."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != torch.bfloat16:
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return F.group_norm(
                x, self.num_groups, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps
            )
