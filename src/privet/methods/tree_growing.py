"""Growing one decision tree whose leaves tell a task and not a private attribute.

    min over splits of   sum over leaves of
        (1 - gamma) * mass_y * gini_y  +  gamma * mass_u * (1 - gini_u)

with gini = (1 - sum_c p_c^2) / (1 - 1 / k), from 0 (one value) to 1 (all k equally often). The leaf
whose best split gains most is split next, so the first j splits are the tree of j + 1 leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privet.data.dataset import Array

# Thresholds that are tried for a column, at its quantiles.
THRESHOLDS = 48
# A split that gains less than this is none.
LEAST_GAIN = 1e-9


class Shares(NamedTuple):
    """What each record counts for each value of an attribute.

    Parameters:
        weights: (n, k): the record's weight at its own value, 0 elsewhere; all sum to 1.
        private: Whether leaves shall not tell it.
    """

    weights: Array
    private: bool

    @classmethod
    def of(cls, labels: Array, classes: int, private: bool) -> Shares:
        """Records without a label count nothing. The values of a private attribute count equally,
        whatever their frequency: what is bounded is balanced accuracy."""
        table = (labels[:, None] == np.arange(classes)).astype(np.float64)
        number = table.sum(0)
        if private:
            table /= np.maximum(number, 1)
        return cls(table / max(table.sum(), 1), private)


class Split(NamedTuple):
    """An inner node: rows of the leaf `leaf` with x[feature] > threshold leave it for a new leaf,
    which gets the next free number."""

    leaf: int
    feature: int
    threshold: float


def grow(x: Array, shares: Sequence[Shares], gamma: float, leaves: int, fewest: int) -> list[Split]:
    """Splits in the order in which they are made, at most `leaves` - 1.

    `x` (n, columns) is float32, `fewest` how many records a leaf keeps at least.

    >>> x = np.arange(8, dtype=np.float32)[:, None]
    >>> told = Shares.of(np.arange(8) // 4, 2, private=False)
    >>> grow(x, [told], 0.0, 4, 1)
    [Split(leaf=0, feature=0, threshold=3.5)]
    """
    bins = Bins.of(x)
    members: list[Array] = [np.arange(len(x))]
    best = [_best_split(bins, members[0], shares, gamma, fewest)]
    splits: list[Split] = []
    while len(members) < leaves:
        leaf = max(range(len(best)), key=lambda i: best[i][0])
        gain, feature, place = best[leaf]
        if gain <= LEAST_GAIN:
            break
        splits.append(Split(leaf, feature, float(bins.thresholds[feature][place])))
        left = bins.codes[members[leaf], feature] <= place
        members[leaf], new = members[leaf][left], members[leaf][~left]
        members.append(new)
        best[leaf] = _best_split(bins, members[leaf], shares, gamma, fewest)
        best.append(_best_split(bins, new, shares, gamma, fewest))
    return splits


def leaf_of(x: Array, splits: Sequence[Split]) -> Array:
    """The leaf of every row."""
    leaf = np.zeros(len(x), dtype=np.int64)
    for number, split in enumerate(splits, start=1):
        right = (leaf == split.leaf) & ~(x[:, split.feature] <= np.float32(split.threshold))
        leaf[right] = number
    return leaf


def paths(splits: Sequence[Split]) -> Array:
    """(nodes, leaves): 1 where the way to a leaf goes left at a node, -1 right, 0 past it."""
    table = np.zeros((len(splits), len(splits) + 1), dtype=np.float32)
    for node, split in enumerate(splits):
        table[:node, node + 1] = table[:node, split.leaf]
        table[node, node + 1], table[node, split.leaf] = -1, 1
    return table


class Bins(NamedTuple):
    """Columns as numbers of bins: code <= j exactly where x <= thresholds[j]."""

    codes: Array
    thresholds: list[Array]

    @classmethod
    def of(cls, x: Array) -> Bins:
        codes, thresholds = np.zeros(x.shape, dtype=np.int64), []
        for column in range(x.shape[1]):
            values = np.unique(x[:, column])
            if len(values) > THRESHOLDS:
                at = np.linspace(0, 1, THRESHOLDS + 2)[1:-1]
                values = np.unique(np.quantile(x[:, column], at, method="lower"))
                values = np.append(values, np.float32(np.inf))
            # Half-way to the next value, so that no value that was seen lies on a threshold.
            cuts = (values[:-1].astype(np.float64) + values[1:]) / 2
            cuts = np.where(np.isfinite(cuts), cuts, values[:-1]).astype(np.float32)
            codes[:, column] = np.searchsorted(cuts, x[:, column], side="left")
            thresholds.append(cuts)
        return cls(codes, thresholds)


def _impurity(masses: Sequence[Array], shares: Sequence[Shares], gamma: float) -> Array:
    """What leaves cost whose masses (..., k) of each attribute are given."""
    total = np.zeros(masses[0].shape[:-1])
    for mass, share in zip(masses, shares, strict=True):
        alike = sum(other.private == share.private for other in shares)
        whole, k = mass.sum(-1), mass.shape[-1]
        gini = whole - (mass**2).sum(-1) / np.maximum(whole, 1e-300)
        gini = gini / (1 - 1 / k) if k > 1 else gini
        total += (gamma * (whole - gini) if share.private else (1 - gamma) * gini) / alike
    return total


def _best_split(
    bins: Bins, members: Array, shares: Sequence[Shares], gamma: float, fewest: int
) -> tuple[float, int, int]:
    """Gain, feature and place among its thresholds of the best split of a leaf's records."""
    codes = bins.codes[members]
    sizes = np.array([len(cuts) + 1 for cuts in bins.thresholds])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    places = (codes + starts).ravel()
    width, columns = int(sizes.sum()), codes.shape[1]

    def lower(weights: Array | None) -> Array:
        """Weight at or below each threshold: (bins,), summed from the start of each column."""
        each = None if weights is None else np.repeat(weights, columns)
        sums = np.cumsum(np.bincount(places, each, minlength=width))
        before = np.concatenate([[0], sums])[starts]
        return np.asarray(sums - np.repeat(before, sizes), dtype=np.float64)

    number = lower(None)
    masses = [
        np.stack([lower(weights) for weights in share.weights[members].T], -1) for share in shares
    ]
    wholes = [share.weights[members].sum(0) for share in shares]
    rest = [whole - mass for whole, mass in zip(wholes, masses, strict=True)]
    parts = _impurity(masses, shares, gamma) + _impurity(rest, shares, gamma)
    gains = _impurity(wholes, shares, gamma) - parts
    last = np.zeros(width, dtype=bool)
    last[starts + sizes - 1] = True
    allowed = ~last & (number >= fewest) & (len(members) - number >= fewest)
    if not allowed.any():
        return -np.inf, 0, 0
    best = int(np.where(allowed, gains, -np.inf).argmax())
    feature = int(np.searchsorted(starts, best, side="right")) - 1
    return float(gains[best]), feature, best - int(starts[feature])
