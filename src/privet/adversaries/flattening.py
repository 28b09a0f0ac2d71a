"""Any released record as one vector, for adversaries that know nothing of its shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from privet.adversaries.view import View
from privet.nets.convolutions import prepare
from privet.nets.sequences import last, present

MOST = {"cpu": 256, "cuda": 1024}
"""Longest vector made of a map, a series or a text; longer ones are turned to their main directions
and cut there. Networks see all of such records."""
VECTOR = 2048
"""The same for records that are vectors themselves, of which nobody else sees more."""
ENOUGH = {"cpu": 3000, "cuda": 20000}
"""Records from which the main directions are found."""
SMALL = 1e-6
"""A main direction that varies less than this, next to the first, is rounding."""


@dataclass(frozen=True)
class Flattening:
    """Standardised coordinates, learned on *attack*.

    Maps and vectors are laid flat; a text's vectors are pooled (mean, largest, last); word ids
    become the presence of the most frequent words. What is longer than MOST is projected onto its
    principal directions (randomised SVD, Halko, Martinsson and Tropp, SIAM Review 53 (2011),
    217-288).
    """

    view: View
    kept: Tensor
    """Which coordinates vary (or which words are frequent)."""
    mean: Tensor
    deviation: Tensor
    directions: Tensor | None = None
    """(coordinates, MOST), each column divided by the deviation along it."""

    def __call__(self, z: Tensor) -> Tensor:
        x = ((_lay(self.view, z, self.kept).double() - self.mean) / self.deviation).float()
        return x if self.directions is None else x @ self.directions

    @staticmethod
    def learn(view: View, batches: Iterable[Tensor], n: int, device: torch.device) -> Flattening:
        most = VECTOR if len(view.shape) == 1 and not view.is_text else MOST[device.type]
        enough = min(n, ENOUGH[device.type])
        taken: list[Tensor] = []
        for z in batches:
            taken.append(z)
            if sum(map(len, taken)) >= enough:
                break
        if view.vocabulary:
            counts = sum(
                (torch.bincount(z[z > 0], minlength=view.vocabulary) for z in taken),
                torch.zeros(view.vocabulary, device=device),
            )
            kept = counts.topk(min(2 * most, int((counts > 0).sum()))).indices.sort().values
            sample = torch.cat([_lay(view, z, kept) for z in taken])
            one = sample.double().std().clamp(min=1e-6)
            return Flattening(view, kept, sample.double().mean(0), one.expand(len(kept)))
        sample = torch.cat([_lay(view, z, None) for z in taken])
        # Small is not nothing: whoever hides an attribute in the last digits of a coordinate has
        # still released it.
        kept = (sample.amax(0) > sample.amin(0)).nonzero()[:, 0]
        if not len(kept):
            kept = torch.zeros(1, dtype=torch.long, device=device)
        mean = torch.cat(
            [part.double().mean(0) for part in torch.split(sample[:, kept], 2048, dim=1)]
        )
        deviation = torch.cat(
            [
                part.double().std(0, correction=0)
                for part in torch.split(sample[:, kept], 2048, dim=1)
            ]
        ).clamp(min=1e-30)
        if len(kept) <= most:
            return Flattening(view, kept, mean, deviation)
        sample = torch.cat(
            [
                ((part.double() - mean) / deviation).float()
                for part in torch.split(sample[:, kept], 512)
            ]
        )
        rank = min(most, len(sample) - 1)
        torch.manual_seed(0)
        _, values, directions = torch.svd_lowrank(sample, q=rank, niter=2)
        along = values / max(len(sample) - 1, 1) ** 0.5
        return Flattening(
            view, kept, mean, deviation, directions / along.clamp(min=SMALL * float(along[0]))
        )


def _lay(view: View, z: Tensor, kept: Tensor | None) -> Tensor:
    if view.vocabulary:
        assert kept is not None
        place = torch.full((view.vocabulary,), len(kept), device=z.device)
        place[kept] = torch.arange(len(kept), device=z.device)
        bag = torch.zeros(len(z), len(kept) + 1, device=z.device)
        return bag.scatter_(1, place[z], 1.0)[:, :-1]
    if view.is_text:
        where = present(z)
        count = where.sum(1, keepdim=True).clamp(min=1)
        top = z.masked_fill(~where.unsqueeze(2), -1e4).amax(1).clamp(min=-1e3)
        flat = torch.cat([z.sum(1) / count, top, last(z, where)], dim=1).float()
    else:
        flat = prepare(z).float().flatten(1)
    return flat if kept is None else flat[:, kept]
