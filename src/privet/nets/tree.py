"""A decision tree as a network: the leaf that a row falls into, and the symbol that stands for it.

    goes left at node i   where   x[feature_i] <= threshold_i
    leaf(x)  =  the leaf whose path agrees with every node on it
    s(x)     =  symbol of leaf(x),   released as in nets/symbols.py

All sums are of small whole numbers, and thresholds are compared as they are: every runtime finds
the same leaf for the same numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.symbols import Symbols


class TreeSymbols(nn.Module):
    """Scores of K symbols for a row: 1 for the symbol of its leaf, 0 for all others.

    Parameters:
        schema: Of the records, a table.
        leaves: Leaves of the tree; it has one inner node fewer.
        symbols: K, at most as many as leaves.
    """

    feature: Tensor
    threshold: Tensor
    paths: Tensor
    symbol_of: Tensor

    def __init__(self, schema: Schema, leaves: int, symbols: int) -> None:
        super().__init__()
        self.schema, self.shape = schema, (symbols,)
        self.register_buffer("feature", torch.zeros(leaves - 1, dtype=torch.int64))
        self.register_buffer("threshold", torch.zeros(leaves - 1))
        # Of each node (row) and leaf (column): 1 where the way to the leaf goes left at the node,
        # -1 where it goes right, 0 where it does not pass.
        self.register_buffer("paths", torch.zeros(leaves - 1, leaves))
        self.register_buffer("symbol_of", torch.zeros(leaves, symbols))

    def forward(self, x: Tensor) -> Tensor:
        left: Tensor = (self.schema.own(x)[:, self.feature] <= self.threshold).float()
        agrees: Tensor = (2 * left - 1) @ self.paths
        return (agrees == self.paths.abs().sum(0)).float() @ self.symbol_of


def tree_symbols(schema: Schema, leaves: int, symbols: int, flip: float) -> Symbols:
    """The symbol of a row's leaf, replaced at random with probability `flip`."""
    return Symbols(TreeSymbols(schema, leaves, symbols), flip)
