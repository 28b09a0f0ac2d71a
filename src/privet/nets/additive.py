"""A network and Gaussian noise of one scale on what it gives: z = f(x) + scale * noise."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Additive(nn.Module):
    def __init__(self, body: nn.Module, scale: float) -> None:
        super().__init__()
        self.body = body
        self.shape = body.shape
        self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return add(self.body(x), self.scale * noise, x)  # type: ignore[operator]


def add(z: Tensor, noise: Tensor, x: Tensor) -> Tensor:
    """z plus noise; the padded end of a text stays zero, as its reader expects."""
    if x.dtype == torch.int64:
        noise = noise * (x != 0).unsqueeze(2)
    return z + noise.to(z.dtype)
