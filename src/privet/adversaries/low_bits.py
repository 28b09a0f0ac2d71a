"""The last bits: reads what hides in whether released whole numbers are odd or even, which no
smooth function of them shows.

Where released values are whole numbers (pictures), the lowest two bits of every value, their means
over rows, columns and channels, and the parity of the sums over these are the features. Of these
thousands the ones that depend on the attribute most are kept (on *attack*), and boosting reads
them. This is the oldest way of hiding data in a picture, and of finding it: Fridrich, Goljan and
Du, Detecting LSB steganography, IEEE Multimedia 8 (2001), 22-28.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, TrainedFunction, has_label, silent
from privet.adversaries.released import Released
from privet.adversaries.trees import boosted_trees
from privet.adversaries.vector_models import all_classes, target_columns
from privet.adversaries.view import View
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True, kw_only=True)
class Bits(Adversary):
    """Boosting on the lowest bits of released whole numbers.

    Parameters:
        columns: How many bits, means and parities to keep.
    """

    columns: int = 128
    name: ClassVar[str] = "bits"
    title: ClassVar[str] = "last bits"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return view.step is not None and attribute.is_class and view.vocabulary is None

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> TrainedFunction:
        step = seen.view.step
        assert step is not None, "suits() lets whole numbers pass only"
        y = seen.labels(attribute.name)
        present = has_label(y)
        columns = target_columns(y[present], attribute)
        targets = np.zeros((len(y), columns.shape[1]))
        targets[present] = columns - columns.mean(0)
        best = self._strongest(seen, targets, present, step)
        tick(0.5)

        def rows(released: Released) -> Array:
            parts = [_bits(z, step)[:, best].cpu() for z, _ in released.batches(512)]
            return torch.cat(parts).numpy()

        model = boosted_trees(True, seed, max_iter=60).fit(rows(seen)[present], y[present])
        tick(1.0)
        return TrainedFunction(
            lambda released: all_classes(
                model.predict_proba(rows(released)), model.classes_, attribute.classes
            )
        )

    def _strongest(self, seen: Released, targets: Array, present: Array, step: float) -> Tensor:
        """The columns whose correlation with a value of the attribute is largest."""
        wanted = torch.as_tensor(targets, dtype=torch.float32, device=seen.feed.device)
        labelled = torch.as_tensor(present, device=wanted.device).float()[:, None]
        sums: list[Tensor] = []
        for z, _ in seen.batches(512):
            bits, some = _bits(z, step), slice(512 * len(sums), 512 * len(sums) + len(z))
            counts = [(each * labelled[some]).sum(0)[:, None] for each in (bits, bits * bits)]
            sums.append(torch.cat([bits.T @ wanted[some], *counts], dim=1).double())
        total = reduce(torch.add, sums)
        n = max(int(present.sum()), 1)
        cross, mean, square = total[:, :-2], total[:, -2] / n, total[:, -1] / n
        deviation = (square - mean**2).clamp(min=1e-12).sqrt()
        strength = (cross.abs() / deviation[:, None]).amax(1)
        return strength.topk(min(self.columns, len(strength))).indices.sort().values


def _bits(z: Tensor, step: float) -> Tensor:
    """Lowest two bits of every value; means of the lowest bit and parities of sums over every axis
    and over all."""
    whole = z.long() if z.dtype == torch.uint8 else (z.double() / step).round().long()
    low = whole & 1
    axes = range(1, low.dim())
    columns = [low.flatten(1), (whole.flatten(1) >> 1) & 1]
    for axis in axes:
        columns += [low.float().mean(axis).reshape(len(z), -1)]
        columns += [(low.sum(axis) & 1).reshape(len(z), -1)]
        if others := [other for other in axes if other != axis]:
            columns += [low.float().mean(others), low.sum(others) & 1]
    columns += [
        low.flatten(1).float().mean(1, keepdim=True),
        low.flatten(1).sum(1, keepdim=True) & 1,
    ]
    return torch.cat([part.float() for part in columns], dim=1)
