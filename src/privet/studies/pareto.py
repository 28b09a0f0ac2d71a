"""The Pareto front and the hypervolume of points (leak, use): less leak and more use are better.
Functions of numbers only.

    q dominates p   if  leak_q <= leak_p  and  use_q >= use_p, one of them strictly
    hypervolume     area of { (leak, use) : some point dominates it } inside the rectangle from
                    `worst` to `best`, as a share of it

Zitzler and Thiele, Multiobjective evolutionary algorithms, IEEE Transactions on Evolutionary
Computation 3(4), 1999.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# (leak, use)
Point = tuple[float, float]


def front(points: Sequence[Point]) -> list[int]:
    """Which points no other dominates, the least leaking first; points that are not numbers never
    are.

    >>> front([(0.9, 0.9), (0.6, 0.8), (0.7, 0.7), (0.5, 0.5)])
    [3, 1, 0]
    """
    table = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    finite = np.flatnonzero(np.isfinite(table).all(1))
    leak, use = table[finite].T
    no_worse = (leak[None] <= leak[:, None]) & (use[None] >= use[:, None])
    better = (leak[None] < leak[:, None]) | (use[None] > use[:, None])
    best = ~(no_worse & better).any(1)
    order = np.lexsort((-use[best], leak[best]))
    return [int(i) for i in finite[best][order]]


def hypervolume(points: Sequence[Point], worst: Point, best: Point) -> float:
    """Share of the rectangle between `worst` and `best` that is dominated; what lies outside of it
    counts as far as its edge.

    >>> hypervolume([(0.75, 0.75)], worst=(1.0, 0.5), best=(0.5, 1.0))
    0.25
    """
    if not (best[0] < worst[0] and worst[1] < best[1]):
        return 0.0
    table = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    table = table[np.isfinite(table).all(1)]
    if not len(table):
        return 0.0
    leak = np.clip(table[:, 0], best[0], worst[0])
    use = np.clip(table[:, 1], worst[1], best[1])
    order = np.argsort(leak, kind="stable")
    height = np.maximum.accumulate(use[order]) - worst[1]
    width = np.diff(leak[order], append=worst[0])
    return float((width * height).sum() / ((worst[0] - best[0]) * (best[1] - worst[1])))
