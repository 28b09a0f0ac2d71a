"""Any released record as one standardised vector, for adversaries that know nothing of its shape."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from privet.adversaries.released import View
from privet.nets.convolutions import prepare
from privet.nets.sequences import last, present

BAG = 64


class Flat(nn.Module):
    """Maps and vectors are laid flat; a text's vectors are pooled (mean, largest, last); word ids become a bag of words."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(view.vocabulary, BAG, mode="sum", padding_idx=0) if view.vocabulary else None
        self.sequence = len(view.shape) == 2 and view.shape[0] is None
        if self.bag is not None:
            self.features = BAG
        elif self.sequence:
            self.features = 3 * (view.shape[-1] or 0)
        else:
            self.features = math.prod(size or 0 for size in view.shape)
        self.standard = nn.BatchNorm1d(self.features, affine=False)

    def forward(self, z: Tensor) -> Tensor:
        if self.bag is not None:
            return self.standard(self.bag(z))  # type: ignore[no-any-return]
        if self.sequence:
            where = present(z)
            count = where.sum(1, keepdim=True).clamp(min=1)
            top = z.masked_fill(~where.unsqueeze(2), -1e4).amax(1).clamp(min=-1e3)
            return self.standard(torch.cat([z.sum(1) / count, top, last(z, where)], dim=1))  # type: ignore[no-any-return]
        return self.standard(prepare(z).flatten(1))  # type: ignore[no-any-return]
