"""Pictures and windows as bands of detail, in which every place and scale counts the same.

    band_j = x_j - up(x_{j+1}),   x_{j+1} = mean of neighbouring pixels of x_j,   x_0 = x

A Laplacian pyramid (Burt and Adelson, 1983). Each entry is divided by its deviation over the people
learned from: in pixels, a background outweighs a mouth by far.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# The coarsest level has about this many steps per axis.
COARSEST = 4
# A deviation is at least this share of the band's mean one.
FLOOR = 0.25
# Weight of a place where the mean record has no detail, beside its detail in deviations.
EVERYWHERE = 0.2


def bands(x: Tensor) -> list[Tensor]:
    """The bands of (n, channels, ...), finest first; the last is what is left.

    >>> [tuple(band.shape[2:]) for band in bands(torch.zeros(1, 3, 16, 16))]
    [(16, 16), (8, 8), (4, 4)]
    """
    parts = []
    while min(x.shape[2:]) >= 2 * COARSEST:
        coarse = (
            F.avg_pool1d(x, 2, ceil_mode=True)
            if x.dim() == 3
            else F.avg_pool2d(x, 2, ceil_mode=True)
        )
        parts.append(x - F.interpolate(coarse, size=x.shape[2:], mode="nearest"))
        x = coarse
    return [*parts, x]


class BandDistance(nn.Module):
    """Mean absolute difference of standardised bands: 1 for the mean record, 0 for the record.

    Parameters:
        batches: Prepared records to take means and deviations from.
        aligned: Whether places count more where the mean record has detail: where records that
            are aligned, such as faces, have their eyes and mouths, and backgrounds have none.
    """

    def __init__(self, batches: Iterable[Tensor], aligned: bool = False) -> None:
        super().__init__()
        records = torch.cat(list(batches))
        if records.dim() == 4:
            records = torch.cat([records, records.flip(3)])
        self.count, apart = 0, []
        for number, band in enumerate(bands(records)):
            mean, deviation = band.mean(0), band.std(0)
            scale = deviation.clamp(min=FLOOR * float(deviation.mean()) + 1e-6)
            if aligned:
                weight = EVERYWHERE + mean.abs() / scale
                scale = scale * weight.mean() / weight
            apart.append(((band - mean).abs() / scale).mean())
            self.register_buffer(f"scale{number}", scale)
            self.count += 1
        self.register_buffer("unit", torch.stack(apart).mean())
        self.unit: Tensor

    def forward(self, made: Tensor, x: Tensor) -> Tensor:
        apart = [
            (band / self.get_buffer(f"scale{number}")).abs().mean()
            for number, band in enumerate(bands(made - x))
        ]
        return torch.stack(apart).mean() / self.unit


class PixelDistance(nn.Module):
    """Mean absolute difference, and half that of neighbours' differences at three scales.

    Parameters:
        batches: Prepared records; their mean record has the distance 1.
    """

    def __init__(self, batches: Iterable[Tensor]) -> None:
        super().__init__()
        records = torch.cat(list(batches))
        self.register_buffer("unit", torch.ones(()))
        self.unit: Tensor
        self.unit.copy_(self(records.mean(0, keepdim=True).expand_as(records), records))

    def forward(self, made: Tensor, x: Tensor) -> Tensor:
        apart = made - x
        total, steps = apart.abs().mean(), apart.new_zeros(())
        for _ in range(3):
            for axis in range(2, apart.dim()):
                steps = steps + torch.diff(apart, dim=axis).abs().mean() / (apart.dim() - 2)
            apart = F.avg_pool1d(apart, 2) if apart.dim() == 3 else F.avg_pool2d(apart, 2)
        return (total + 0.5 * steps / 3) / self.unit
