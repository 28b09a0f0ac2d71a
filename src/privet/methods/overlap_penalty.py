"""The penalty of Hedge: how often the best possible adversary is right about a batch of codes.

It is the certificate's own functional (evidence/certificate, the smoothed plug-in) on a batch.
With z = c + sigma xi and p_a(z) the mean of the Gaussian kernel around the codes of value a,
leaving out the record's own, ::

    V = mean over values a of the mean over z of value a of  max_b p_b(z) / sum_b p_b(z)

1 / k where all values look alike, 1 where none do. The inner maximum is the answer of the best
adversary, found anew at every step: there is no opponent whose training could lag behind. Kernels
stand around the codes of this batch, which feel the gradient, and around those of earlier ones,
kept in a memory so that the density is that of thousands of people.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.methods.known_labels import one_hot_known

# Added to densities: where no kernel reaches, all values are equally likely.
TINY = 1e-30
# Kernels held at once where no gradient is asked for. Larger arrays leave the cache, and their
# memory is allocated anew each time.
KERNELS_AT_ONCE = 2**20


class CodeMemory(nn.Module):
    """The latest codes and their private values, oldest first out. A module, so that it is part of
    a checkpoint."""

    codes: Tensor
    values: Tensor
    place: Tensor

    def __init__(self, size: int, dims: int, attributes: int) -> None:
        super().__init__()
        self.register_buffer("codes", torch.zeros(size, dims))
        self.register_buffer("values", torch.full((size, attributes), -1, dtype=torch.int64))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def add(self, codes: Tensor, values: Tensor) -> None:
        """Put codes (n, d) and values (n, attributes) in place of the oldest."""
        where = (self.place + torch.arange(len(codes), device=codes.device)) % len(self.codes)
        self.codes[where], self.values[where] = codes.detach(), values
        self.place.copy_((self.place + len(codes)) % len(self.codes))


def success(
    z: Tensor,
    codes: Tensor,
    values: Tensor,
    around: Tensor,
    around_values: Tensor,
    sigma: float,
    classes: int,
) -> Tensor:
    """V for one attribute. z (n, d) are noisy releases of codes (n, d) with values (n,), -1 where
    missing; `around` are codes to put further kernels on."""
    # In half precision a point of balanced accuracy is rounding.
    with torch.autocast(z.device.type, enabled=False):
        z, centres = z.float(), torch.cat([codes.float(), around.float()])
        member = one_hot_known(torch.cat([values, around_values]), classes)
        inside = one_hot_known(values, classes)
        rows = len(z) if torch.is_grad_enabled() else max(1, KERNELS_AT_ONCE // len(centres))
        near = [
            _kernels(z[start : start + rows], start, centres, sigma) @ member
            for start in range(0, len(z), rows)
        ]
        density = torch.cat(near) / (member.sum(0) - inside).clamp(min=1) + TINY
        best = (density / density.sum(1, keepdim=True)).amax(1)
        present = inside.sum(0) > 0
        weights = (inside / inside.sum(0).clamp(min=1)).sum(1) / present.sum().clamp(min=1)
        return (weights * best).sum()


def _kernels(z: Tensor, start: int, centres: Tensor, sigma: float) -> Tensor:
    """The kernels (n, centres) at z, whose own codes are centres[start:]; those count nothing."""
    apart = z.square().sum(1, keepdim=True) + centres.square().sum(1) - 2 * z @ centres.T
    near = apart / (-2 * sigma**2)
    # Only ratios count: the nearest kernel of each row is taken as 1, so that none of them
    # vanishes.
    kernel = (near - near.detach().amax(1, keepdim=True)).exp()
    return torch.diagonal_scatter(kernel, kernel.new_zeros(len(z)), start)
