"""Pictures whose left half, bright in blue, holds a mask to be read off the green; the right half
tells `u` and matters to no task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from privet.data.attribute_codes import code
from privet.data.dataset import Attribute, Dataset
from privet.data.splitting import assign


def halves(n: int = 200, side: int = 16, seed: int = 0) -> Dataset:
    """n pictures with a mask `where`; `u`, how red the right half is; and `y`, whether the top of
    the left half is marked."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2, n)
    blocks = rng.integers(0, 2, (n, 4, 2))
    mask = np.zeros((n, side, side), dtype=np.uint8)
    mask[:, :, : side // 2] = np.kron(blocks, np.ones((1, side // 4, side // 4), dtype=int))
    x = rng.integers(100, 150, (n, 3, side, side))
    x[:, 1] += 90 * (2 * mask.astype(int) - 1)
    x[:, 2] += np.where(np.arange(side) < side // 2, 90, -90)
    x[:, 0, :, side // 2 :] += (90 * (2 * u - 1))[:, None, None]
    coded = {
        name: code(name, pd.Series(column))
        for name, column in {"u": u, "y": blocks[:, 0, 0]}.items()
    }
    attributes = {name: attribute for name, (attribute, _) in coded.items()} | {
        "where": Attribute("where", "mask")
    }
    labels = {name: column for name, (_, column) in coded.items()} | {"where": mask}
    part, notes = assign(n, None, None, seed)
    return Dataset(
        "halves",
        "image",
        x.astype(np.uint8),
        attributes,
        labels,
        part,
        np.arange(n),
        f"halves{seed}",
        None,
        notes,
    )


class Reader(nn.Module):
    """A service that is right and known to the last number: it reads the green of the left half and
    nothing else."""

    def __init__(self, sharp: float = 8.0) -> None:
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(sharp))
        self.look = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        left = torch.arange(x.shape[3], device=x.device) < x.shape[3] // 2
        seen: Tensor = self.look(x[:, 1:2])
        return torch.where(left, self.sharp * seen, -self.sharp)
