"""SSIM of tensors, on their device and with gradients; `privet.evidence.distortion` defines it."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from privet.evidence import distortion


def similarity(made: Tensor, truth: Tensor, peak: float = 255.0) -> tuple[Tensor, Tensor]:
    """SSIM per picture, and its contrast and structure part alone, as tensors (n,).

    `made` may be one picture, (1, channels, height, width), that is compared with all.
    """
    down, across = (_window(size, made.dtype, made.device) for size in made.shape[2:])
    return distortion.similarity(made, truth, down, across, peak)


@lru_cache(maxsize=32)
def _window(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Kept on the device: nothing is sent there while a step is recorded."""
    return torch.as_tensor(distortion.window(size), dtype=dtype, device=device)
