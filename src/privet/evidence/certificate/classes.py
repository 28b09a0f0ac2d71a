"""What an adversary guesses, as classes: several attributes at once, or a number by ranges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from privet.evidence import Array


def jointly(
    labels: Sequence[Array], values: Sequence[Sequence[str]]
) -> tuple[Array, tuple[str, ...]]:
    """Several attributes as one, whose values are those combinations that occur; -1 where any of
    them is missing.

    The certificate then bounds guessing all of them at once. A combination that nobody in the
    sample has is not covered.

    >>> codes, names = jointly(
    ...     [np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1])], [("f", "m"), ("young", "old")]
    ... )
    >>> codes, names
    (array([ 0,  1,  2, -1]), ('f, young', 'm, young', 'm, old'))
    """
    sizes = [len(v) for v in values]
    table = np.stack([np.asarray(column) for column in labels])
    known = (table >= 0).all(0)
    cells = np.ravel_multi_index(tuple(np.where(known, table, 0)), sizes)
    present = np.unique(cells[known])
    names = [
        ", ".join(v[i] for v, i in zip(values, np.unravel_index(cell, sizes), strict=True))
        for cell in present
    ]
    return np.where(known, np.searchsorted(present, cells), -1), tuple(names)


def quantile_edges(numbers: Array, bins: int) -> Array:
    """Inner edges that put equally many of these people's numbers into each bin; take other people
    than those certified.

    >>> quantile_edges(np.arange(101.0), 4)
    array([25., 50., 75.])
    """
    there = np.asarray(numbers, dtype=np.float64)
    there = there[np.isfinite(there)]
    return np.unique(np.quantile(there, np.arange(1, bins) / bins)) if len(there) else np.empty(0)


def binned(numbers: Array, edges: Array) -> tuple[Array, tuple[str, ...]]:
    """A number as classes: codes, -1 where it is missing, and the bins' names.

    >>> binned(np.array([3.0, 30.0, np.nan, 70.0]), np.array([25.0, 50.0]))
    (array([ 0,  1, -1,  2]), ('below 25', '25 to 50', 'from 50'))
    """
    inner = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    names = (f"below {edges[0]:g}", *inner, f"from {edges[-1]:g}") if len(edges) else ("any",)
    return np.where(np.isfinite(numbers), np.digitize(numbers, edges), -1), names
