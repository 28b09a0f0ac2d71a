"""A network and noise of one scale on what it gives: z = f(x) + scale * noise, rounded to a grid.

The sum of two floats keeps, in its last bits, a trace of the summands: of two known codes 0.11 and
0.12 under noise of 0.4, whoever checks which of them could have given z to the last bit is right 63
times in 100, where the noise itself allows 51 (Mironov, On significance of the least significant
bits for differential privacy, CCS 2012). On a grid four thousand times finer than the noise, and a
hundred times coarser than the floats, that trace is gone, and rounding after the noise tells
nothing new.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.nets.noise_grid import GRID_STEPS, grid_step


class Additive(nn.Module):
    """A network with noise added to what it gives, rounded to a grid.

    Parameters:
        body: The network; its `shape` is that of one released record.
        scale: Standard deviation of Gaussian noise, or the scale of another law.
    """

    scale: Tensor

    def __init__(self, body: nn.Module, scale: float) -> None:
        super().__init__()
        self.body = body
        self.shape = body.shape
        self.register_buffer("scale", torch.tensor(float(scale)))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.drown(self.body(x), noise, x)

    def drown(self, code: Tensor, noise: Tensor, x: Tensor) -> Tensor:
        """What is released of a code that is known already."""
        z = add(code, self.scale * noise, x)
        step = torch.exp2(torch.floor(torch.log2(self.scale.clamp(min=1e-30)))) / GRID_STEPS
        return torch.round(z / step) * step

    @property
    def step(self) -> float:
        return grid_step(float(self.scale))


def add(z: Tensor, noise: Tensor, x: Tensor) -> Tensor:
    """z plus noise; the padded end of a text stays zero, as its reader expects."""
    if x.dtype == torch.int64 and z.dim() == 3:
        noise = noise * (x != 0).unsqueeze(2)
    return z + noise.to(z.dtype)
