"""Which c is best: values of a grid that are tried, and whether the best has a neighbour on both
sides that is not better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence


def whole(grid: Sequence[float]) -> Iterator[float]:
    """Every value, from the middle outward: a run that is cut off has the likely ones.

    >>> list(whole([0.01, 0.1, 1, 10]))
    [1, 0.1, 10, 0.01]
    """
    middle = len(grid) // 2
    return (grid[at] for at in sorted(range(len(grid)), key=lambda at: (abs(at - middle), at)))


def around(grid: Sequence[float], start: float, area: Mapping[float, float]) -> Iterator[float]:
    """`start`, then what lies beside the best value so far and was not tried. `area` is filled by
    who tries them.

    >>> area = {}
    >>> for c in around([1, 2, 3, 4, 5], 3, area):
    ...     area[c] = -abs(c - 4)
    >>> list(area)
    [3, 2, 4, 5]
    """
    yield start
    while area:
        at = grid.index(best(area))
        beside = [grid[place] for place in (at - 1, at + 1) if 0 <= place < len(grid)]
        new = next((c for c in beside if c not in area), None)
        if new is None:
            return
        yield new


def tried(
    values: Iterator[float],
    measure: Callable[[float], float],
    area: dict[float, float],
    late: Callable[[], bool],
) -> None:
    """Fill `area`, as long as there is time to start one more; the first is always measured."""
    for c in values:
        if area and late():
            return
        area[c] = measure(c)


def best(area: Mapping[float, float]) -> float:
    return max(area, key=lambda c: area[c])


def closed(area: Mapping[float, float]) -> bool:
    """Whether a smaller and a larger value than the best were tried.

    >>> closed({1: 0.2, 2: 0.3, 3: 0.1}), closed({1: 0.2, 2: 0.3})
    (True, False)
    """
    return min(area) < best(area) < max(area)
