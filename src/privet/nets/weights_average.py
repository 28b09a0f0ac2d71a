"""A slow average of a network's weights, made in place while it learns."""

from __future__ import annotations

import torch
from torch import Tensor, nn


@torch.no_grad()
def update_average(average: nn.Module, latest: nn.Module, newest: Tensor | float) -> None:
    """Move every weight and every running figure of `average` towards that of `latest`, by the
    share `newest`; whole numbers are taken as they are."""
    now = latest.state_dict()
    for name, value in average.state_dict().items():
        if value.is_floating_point():
            value.lerp_(now[name], newest)
        else:
            value.copy_(now[name])
