"""How well rows are rebuilt: each column in its own likelihood, in nats.

    number      log s + (made - x)^2 / (2 s^2),   s learned for each column, at least SMALLEST
    category    cross-entropy of the scores of its values

A missing number was encoded as the mean and a missing category as zeros, which count nothing.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from privet.data.dataset import Array
from privet.data.schema import TableSchema

# Of standardised numbers: a deviation below which precision earns nothing.
SMALLEST = 0.1


class ColumnLoss(nn.Module):
    """Mean over columns of the likelihood's loss: 1 for the best constant row.

    Parameters:
        schema: Of the rows.
        frequencies: Mean of every number of encoded rows.
    """

    unit: Tensor

    def __init__(self, schema: TableSchema, frequencies: Array) -> None:
        super().__init__()
        self.sizes = [column.size for column in schema.columns]
        self.categories = [bool(column.values) for column in schema.columns]
        self.log_spread = nn.Parameter(torch.zeros(self.categories.count(False)))
        starts = np.cumsum([0, *self.sizes[:-1]])
        numbers = [
            int(s) for s, category in zip(starts, self.categories, strict=True) if not category
        ]
        self.numbers: Tensor
        self.register_buffer("numbers", torch.tensor(numbers, dtype=torch.int64))
        total = 0.5 * len(numbers)
        for start, size, category in zip(starts, self.sizes, self.categories, strict=True):
            if category:
                frequency = frequencies[start : start + size]
                total -= float((frequency * np.log(np.maximum(frequency, 1e-12))).sum())
        self.register_buffer("unit", torch.tensor(max(total, 1e-3), dtype=torch.float32))

    def forward(self, made: Tensor, x: Tensor) -> Tensor:
        total = made.new_zeros(())
        if len(self.numbers):
            spread = self.log_spread.exp().clamp(min=SMALLEST)
            apart = (made[:, self.numbers] - x[:, self.numbers]) / spread
            total = total + (0.5 * apart.square() + spread.log()).mean(0).sum()
        made_parts, parts = (torch.split(both, self.sizes, dim=1) for both in (made, x))
        for scores, truth, category in zip(made_parts, parts, self.categories, strict=True):
            if category:
                total = total - (truth * scores.log_softmax(1)).sum(1).mean()
        return total / self.unit
