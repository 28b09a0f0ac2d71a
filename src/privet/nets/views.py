"""Other views of the same pictures: turned, moved, nearer, under another light, with a hole."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# Deviations of the colours' tint beside that of the light.
TINT = 0.25
# Share of a picture's side that a hole takes, and how often there is one.
HOLE = (0.36, 0.7)


def moved(x: Tensor, turn: float = 0.06, zoom: float = 0.05, shift: float = 0.03) -> Tensor:
    """Pictures (n, channels, height, width) turned, zoomed, shifted and mirrored at random.

    Parameters:
        turn: Deviation of the angle, in radians.
        zoom: Deviation of the size.
        shift: Deviation of the place, in halves of a side.
    """
    n = len(x)
    angle, size, down, right = torch.randn(4, n, device=x.device)
    angle, size = turn * angle, 1 + zoom * size
    side = torch.where(torch.rand(n, device=x.device) < 0.5, -1.0, 1.0)
    rows = [side * size * angle.cos(), -size * angle.sin(), shift * right]
    rows += [side * size * angle.sin(), size * angle.cos(), shift * down]
    where = torch.stack(rows, 1).view(n, 2, 3)
    grid = F.affine_grid(where, list(x.shape), align_corners=False)
    return F.grid_sample(x.float(), grid, padding_mode="reflection", align_corners=False)


def relit(x: Tensor, light: float = 0.12) -> Tensor:
    """Pictures in [-1, 1] under a light that differs from theirs with this deviation."""
    n, channels = x.shape[:2]
    gain = 1 + light * torch.randn(n, 1, 1, 1, device=x.device)
    tint = torch.randn(n, 1, 1, 1, device=x.device) + TINT * torch.randn(
        n, channels, 1, 1, device=x.device
    )
    return (x * gain + light * tint).clamp(-1, 1)


def grey(x: Tensor, share: float) -> Tensor:
    """A share of the pictures, at random, without their colours."""
    some = (torch.rand(len(x), 1, 1, 1, device=x.device) < share).float()
    return x + some * (x.mean(1, keepdim=True) - x)


def holed(x: Tensor) -> Tensor:
    """Pictures of which most have a square hole, filled with the picture's mean."""
    n, _, height, width = x.shape
    side, share = HOLE
    here = torch.rand(n, 2, 1, 1, device=x.device)
    down = torch.linspace(0, 1, height, device=x.device).view(1, -1, 1) - here[:, 0]
    right = torch.linspace(0, 1, width, device=x.device).view(1, 1, -1) - here[:, 1]
    hole = (down.abs() < side / 2) & (right.abs() < side / 2)
    hole = hole & (torch.rand(n, 1, 1, device=x.device) < share)
    return torch.where(hole.unsqueeze(1), x.mean((2, 3), keepdim=True), x)
