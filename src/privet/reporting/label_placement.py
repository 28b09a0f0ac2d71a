"""Where the name of a point goes, so that no name covers another point, an interval or another
name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDE = 0.56
"""Width of a letter as a share of the font size; a little more than most system fonts need."""


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Shared area."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0.0) * max(down, 0.0)

    def outside(self, frame: Box) -> float:
        """Area that sticks out of the frame."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(frame)


class Label(NamedTuple):
    text: str
    x: float
    y: float
    """Base line."""
    anchor: str
    """SVG's text-anchor: start, middle or end."""


def shorten(text: str, most: int) -> str:
    """
    >>> shorten("a rather long name", 10), shorten("short", 10)
    ('a rather\u2026', 'short')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"


def place(
    points: Sequence[tuple[float, float, str]],
    taken: Sequence[Box],
    frame: Box,
    size: float,
    gap: float,
) -> list[Label]:
    """A place for each point's name, the first points choosing first.

    Each name tries eight places around its point, near ones first, and takes the one that covers
    least. It also keeps away from the other points, so that it is clear whose name it is.
    """
    near = [Box(x - 1.8 * gap, y - 1.8 * gap, x + 1.8 * gap, y + 1.8 * gap) for x, y, _ in points]
    busy, labels = list(taken), []
    for own, (x, y, text) in enumerate(points):
        others = [box for i, box in enumerate(near) if i != own]
        wide = WIDE * size * len(text)
        places = []
        for far in (gap, 2.2 * gap):
            low, middle, high = y + far + size * 0.75, y + size * 0.35, y - far
            places += [
                (x + far, high, "start"),
                (x + far, low, "start"),
                (x - far, low, "end"),
                (x - far, high, "end"),
            ]
            places += [
                (x + far, middle, "start"),
                (x - far, middle, "end"),
                (x, high - far / 2, "middle"),
                (x, low + far / 2, "middle"),
            ]
        costs = []
        for order, (at, base, anchor) in enumerate(places):
            left = at - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = Box(left, base - size * 0.85, left + wide, base + size * 0.25)
            costs.append(
                (sum(box.overlap(b) for b in (*busy, *others)) + 4 * box.outside(frame), order, box)
            )
        _, best, box = min(costs, key=lambda cost: cost[:2])
        busy.append(Box(box.left - size, box.top, box.right + size, box.bottom))
        at, base, anchor = places[best]
        labels.append(Label(text, at, base, anchor))
    return labels
