"""The last bits: what hides in whether released whole numbers are odd or even, which no smooth
function of them shows.

Where released values are whole numbers (pictures), the lowest two bits of every value, their means
over rows, columns and channels, and the parity of the sums over these are laid side by side; of
these thousands the ones that depend on the attribute most are kept (on *attack*), and boosting
reads them. This is the oldest way of hiding data in a picture, and of finding it: Fridrich, Goljan
and Du, Detecting LSB steganography, IEEE Multimedia 8 (2001), 22-28.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, known, silent
from privet.adversaries.released import Released
from privet.adversaries.vector_models import shares
from privet.adversaries.view import View
from privet.data.dataset import Array, Attribute


@dataclass(frozen=True)
class ReadBits:
    step: float
    kept: Array
    model: Any
    classes: int

    def answers(self, released: Released) -> Array:
        return shares(
            self.model.predict_proba(_all_bits(released, self.step, self.kept)),
            self.model.classes_,
            self.classes,
        )


@dataclass(frozen=True, kw_only=True)
class Bits(Adversary):
    columns: int = 128
    """How many bits, means and parities to keep."""
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
    ) -> ReadBits:
        from sklearn.ensemble import HistGradientBoostingClassifier

        assert seen.view.step is not None, "asked only where released values are whole numbers"
        y = seen.labels(attribute.name)
        there = known(y)
        told = np.eye(attribute.classes)[y[there].astype(int)]
        told -= told.mean(0)
        kept = self._screen(seen, told, there)
        tick(0.5)
        rows = _all_bits(seen, seen.view.step, kept)[there]
        model = HistGradientBoostingClassifier(
            max_iter=60, early_stopping=False, random_state=seed
        ).fit(rows, y[there])
        tick(1.0)
        return ReadBits(seen.view.step, kept, model, attribute.classes)

    def _screen(self, seen: Released, told: Array, there: Array) -> Array:
        """The bits that go most with the attribute: the largest correlation with one of its
        values."""
        wanted = torch.zeros(len(seen), told.shape[1], device=seen.feed.device)
        wanted[torch.as_tensor(np.flatnonzero(there), device=wanted.device)] = torch.as_tensor(
            told, dtype=torch.float32, device=wanted.device
        )
        sums: list[Tensor] = []
        done = 0
        for z, _ in seen.batches(512):
            bits = _bits(z, seen.view.step or 1.0)
            rows = torch.as_tensor(there[done : done + len(z)], device=bits.device).float()[:, None]
            own = wanted[done : done + len(z)]
            part = torch.cat(
                [bits.T @ own, (bits * rows).sum(0)[:, None], (bits * bits * rows).sum(0)[:, None]],
                dim=1,
            ).double()
            sums = [part if not sums else sums[0] + part]
            done += len(z)
        n = max(int(there.sum()), 1)
        cross, mean, square = sums[0][:, :-2], sums[0][:, -2] / n, sums[0][:, -1] / n
        spread = (square - mean**2).clamp(min=1e-12).sqrt()
        strength = (cross.abs() / spread[:, None]).amax(1)
        return strength.topk(min(self.columns, len(strength))).indices.sort().values.cpu().numpy()


def _all_bits(released: Released, step: float, kept: Array) -> Array:
    where = torch.as_tensor(kept, device=released.feed.device)
    return torch.cat([_bits(z, step)[:, where].cpu() for z, _ in released.batches(512)]).numpy()


def _bits(z: Tensor, step: float) -> Tensor:
    """Lowest two bits of every value; means of the lowest bit and parities of sums over every axis
    and over all."""
    whole = z.long() if z.dtype == torch.uint8 else (z.double() / step).round().long()
    low = whole & 1
    flat = [low.flatten(1), (whole.flatten(1) >> 1) & 1]
    for axis in range(1, low.dim()):
        flat += [
            low.float().mean(axis).reshape(len(z), -1),
            (low.sum(axis) & 1).reshape(len(z), -1),
        ]
        others = [a for a in range(1, low.dim()) if a != axis]
        if others:
            flat += [low.float().mean(others), low.sum(others) & 1]
    flat += [low.flatten(1).float().mean(1, keepdim=True), low.flatten(1).sum(1, keepdim=True) & 1]
    return torch.cat([part.float() for part in flat], dim=1)
