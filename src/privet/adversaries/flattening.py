"""Any released record as one vector, for adversaries that know nothing of its shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from privet.adversaries.view import View
from privet.nets.convolutions import prepare
from privet.nets.sequences import last, present

# Longest vector made of a map, a series or a text; longer ones are projected onto their principal
# directions. Networks see all of such records.
LONGEST = {"cpu": 256, "cuda": 1024}
# The same for records that are vectors themselves, of which nobody else sees more.
LONGEST_VECTOR = 2048
# Records from which the principal directions are found.
SAMPLE = {"cpu": 3000, "cuda": 20000}
# A principal direction that varies less than this, relative to the first, is rounding.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Flattening:
    """Standardised coordinates of a record, learned on *attack*.

    Maps and vectors are laid flat; a text's vectors are pooled (mean, largest, last); word ids
    become the presence of the most frequent words. What is longer than LONGEST is projected onto
    its principal directions (randomised SVD, Halko, Martinsson and Tropp, SIAM Review 53 (2011),
    217-288).

    Parameters:
        view: The form of the released records.
        columns: Which coordinates vary, or which words are frequent.
        mean: Of each of these columns.
        deviation: Of each of these columns.
        directions: (columns, LONGEST), each divided by the deviation along it; None for vectors
            that are short enough.
    """

    view: View
    columns: Tensor
    mean: Tensor
    deviation: Tensor
    directions: Tensor | None = None

    def __call__(self, z: Tensor) -> Tensor:
        x = ((_flat(self.view, z, self.columns).double() - self.mean) / self.deviation).float()
        return x if self.directions is None else x @ self.directions

    @staticmethod
    def learn(view: View, batches: Iterable[Tensor], n: int, device: torch.device) -> Flattening:
        """From the first of `batches`, which hold n released records in random order."""
        longest = LONGEST_VECTOR if view.is_vector else LONGEST[device.type]
        taken: list[Tensor] = []
        for z in batches:
            taken.append(z)
            if sum(map(len, taken)) >= min(n, SAMPLE[device.type]):
                break
        if view.vocabulary:
            return _frequent_words(view, view.vocabulary, taken, 2 * longest)
        sample = torch.cat([_flat(view, z, None) for z in taken])
        # Small is not nothing: whoever hides an attribute in the last digits of a coordinate has
        # still released it.
        columns = (sample.amax(0) > sample.amin(0)).nonzero()[:, 0]
        columns = columns if len(columns) else columns.new_zeros(1)
        parts = torch.split(sample[:, columns], 2048, dim=1)
        mean = torch.cat([part.double().mean(0) for part in parts])
        deviation = torch.cat([part.double().std(0, correction=0) for part in parts])
        deviation = deviation.clamp(min=1e-30)
        if len(columns) <= longest:
            return Flattening(view, columns, mean, deviation)
        rows = torch.split(sample[:, columns], 512)
        sample = torch.cat([((part.double() - mean) / deviation).float() for part in rows])
        torch.manual_seed(0)
        rank = min(longest, len(sample) - 1)
        _, values, directions = torch.svd_lowrank(sample, q=rank, niter=2)
        along = values / max(len(sample) - 1, 1) ** 0.5
        directions = directions / along.clamp(min=ROUNDING * float(along[0]))
        return Flattening(view, columns, mean, deviation, directions)


def _frequent_words(view: View, vocabulary: int, taken: list[Tensor], most: int) -> Flattening:
    """Which of the most frequent words are in a text, all divided by one deviation."""
    counts = torch.stack([torch.bincount(z[z > 0], minlength=vocabulary) for z in taken])
    counts = counts.sum(0).float()
    words = counts.topk(min(most, int((counts > 0).sum()))).indices.sort().values
    sample = torch.cat([_flat(view, z, words) for z in taken]).double()
    deviation = sample.std().clamp(min=1e-6).expand(len(words))
    return Flattening(view, words, sample.mean(0), deviation)


def _flat(view: View, z: Tensor, columns: Tensor | None) -> Tensor:
    if view.vocabulary:
        assert columns is not None
        place = torch.full((view.vocabulary,), len(columns), device=z.device)
        place[columns] = torch.arange(len(columns), device=z.device)
        bag = torch.zeros(len(z), len(columns) + 1, device=z.device)
        return bag.scatter_(1, place[z], 1.0)[:, :-1]
    if view.is_text:
        is_word = present(z)
        count = is_word.sum(1, keepdim=True).clamp(min=1)
        top = z.masked_fill(~is_word.unsqueeze(2), -1e4).amax(1).clamp(min=-1e3)
        flat = torch.cat([z.sum(1) / count, top, last(z, is_word)], dim=1).float()
    else:
        flat = prepare(z).float().flatten(1)
    return flat if columns is None else flat[:, columns]
