"""Two halves of the people learned from, for two who must not learn from the same."""

from __future__ import annotations

import numpy as np

from privet.data.dataset import Array


def halves(people: Array, seed: int) -> tuple[Array, Array]:
    """Positions of the records of either half, by person where there are several.

    >>> first, second = halves(np.array([7, 7, 8, 8]), 0)
    >>> sorted(np.concatenate([first, second]).tolist()), len(first)
    ([0, 1, 2, 3], 2)
    """
    groups = people if len(np.unique(people)) > 1 else np.arange(len(people))
    codes = np.random.default_rng([seed, 11]).permutation(np.unique(groups))
    first = np.isin(groups, codes[: len(codes) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)
