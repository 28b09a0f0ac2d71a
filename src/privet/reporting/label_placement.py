"""Where the names in a plot go: none covers a point, a line, an interval or another name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# Width of a letter as a share of the font size; a little more than most system fonts need.
LETTER = 0.56


class Box(NamedTuple):
    """A rectangle in a picture, whose y counts downwards."""

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


class Place(NamedTuple):
    """Where a text may stand: a point on its base line, and SVG's text-anchor."""

    x: float
    y: float
    anchor: str = "start"

    def box(self, text: str, size: float) -> Box:
        """About the room that `text` takes there at a font size."""
        width = LETTER * size * len(text)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left, self.y - size * 0.85, left + width, self.y + size * 0.25)


class Name(NamedTuple):
    """A text, the places it may stand at (the best first), and the room around what it names."""

    text: str
    places: Sequence[Place]
    around: Box = Box(0, 0, 0, 0)


def shorten(text: str, most: int) -> str:
    """
    >>> shorten("a rather long name", 10), shorten("short", 10)
    ('a rather\u2026', 'short')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"


def beside_point(text: str, x: float, y: float, size: float, gap: float = 10) -> Name:
    """The name of a point: eight places around it, then eight further away."""
    places = []
    for far in (gap, 2.2 * gap):
        low, middle, high = y + far + size * 0.75, y + size * 0.35, y - far
        right = [Place(x + far, base) for base in (high, low, middle)]
        left = [Place(x - far, base, "end") for base in (low, high, middle)]
        places += [*right, *left, Place(x, high - far / 2, "middle")]
        places.append(Place(x, low + far / 2, "middle"))
    near = 1.3 * gap
    return Name(text, places, Box(x - near, y - near, x + near, y + near))


def beside_line(text: str, line: Box, size: float) -> Name:
    """The name of a level: along it at both ends, on either side."""
    if line.right - line.left > line.bottom - line.top:
        ends = ((line.left + 6, "start"), (line.right - 6, "end"))
        bases = (line.bottom + size + 4, line.top - 7)
        middle = [Place((line.left + line.right) / 2, base, "middle") for base in bases]
        return Name(text, [Place(x, y, anchor) for x, anchor in ends for y in bases] + middle)
    sides = ((line.left - 5, "end"), (line.right + 5, "start"))
    bases = (line.top + size, line.bottom - 7)
    return Name(text, [Place(x, y, anchor) for y in bases for x, anchor in sides])


def place(names: Sequence[Name], taken: Sequence[Box], frame: Box, size: float) -> list[Place]:
    """A place for each name, the first names choosing first.

    Each takes the place that covers least of what is `taken`, of the names before it and of the
    room around what the others name, so that it is clear whose name it is.
    """
    busy = list(taken)
    chosen = []
    for name in names:
        others = [other.around for other in names if other is not name]

        def cost(at: Place, name: Name = name, others: list[Box] = others) -> float:
            box = at.box(name.text, size)
            return sum(map(box.overlap, (*busy, *others))) + 4 * box.outside(frame)

        best = min(name.places, key=cost)
        box = best.box(name.text, size)
        busy.append(box._replace(left=box.left - size, right=box.right + size))
        chosen.append(best)
    return chosen
