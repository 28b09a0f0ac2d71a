"""A page: a batch of pictures that are drawn at once, shape by shape, with soft edges.

Every shape is a signed distance d (negative inside, in units of the face). Its ink is
    a = clip(1/2 - d * scale / soft, 0, 1),        rgb <- rgb + a * (colour - rgb),
so an edge is `soft` pixels wide: 1 is a sharp drawing, 2 an unsharp photograph, at no cost. All
operations are elementwise over the batch, so that a picture's bytes depend on its own traits alone,
not on its neighbours or on the number of threads.

Plain numpy, one thread per page: a hundred small operations that each wait for every core get a
hundred times slower on a machine that has something else to do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privet.data.dataset import Array

# Height and width of a picture, in pixels.
SIZE = 48
ACROSS: Array = np.arange(SIZE, dtype=np.float32)
# Pixel columns and rows.
DOWN: Array = ACROSS[:, None]
# Length of the strip of noise that grain is cut from: every picture takes its piece at a place of
# its own.
GRAIN = 1 << 20

# Per trait one float32 per picture, shaped (batch, 1, 1); colours are (batch, 3, 1, 1).
Traits = Mapping[str, Array]


class Page:
    """Pictures under way: what is drawn so far, and where each pixel lies in the face's own
    coordinates."""

    def __init__(self, traits: Traits, grain: Array) -> None:
        self.t = t = traits
        self.grain = grain
        x, y = ACROSS - (SIZE - 1) / 2 - t["x"], DOWN - (SIZE - 1) / 2 - t["y"]
        cos, sin = np.cos(t["tilt"]) / t["scale"], np.sin(t["tilt"]) / t["scale"]
        self.u: Array = x * cos + y * sin
        """To the viewer's right, 0 in the middle of the head; the head is about 0.75 wide to either
        side."""
        self.v: Array = y * cos - x * sin
        """Downwards: the eyes are near 0, the mouth near 0.5, the chin near 1."""
        self.f: Array = self.u - t["yaw"]
        """Like u, but moving with the features when the head turns."""
        self.side: Array = np.abs(self.f)
        """Distance from the middle of the features: what is drawn once here is there on both
        sides."""
        self.head: Array = oval(self.u / (1 - t["taper"] * self.v), self.v, t["width"], t["height"])
        """Distance from the outline of the head."""
        self.sharp: Array = -t["scale"] / t["soft"]
        self.rgb: Array = np.repeat(np.repeat(t["ground"], SIZE, axis=2), SIZE, axis=3)

    def rows(self, top: float, bottom: float) -> slice:
        """The rows of pixels in which any of the heads has v between top and bottom (where |u| is
        at most 1.5)."""
        t = self.t
        cos, slack = np.cos(t["tilt"]), 1.5 * np.abs(np.sin(t["tilt"]))
        middle = t["y"] + (SIZE - 1) / 2
        first, last = (
            (middle + t["scale"] * (top * cos - slack)).min(),
            (middle + t["scale"] * (bottom * cos + slack)).max(),
        )
        return slice(max(int(first), 0), max(int(last) + 2, 0))

    def part(self, index: Array | None, rows: slice) -> Page:
        """Some rows of some of the pictures (None: of all), as a page of their own; of all pictures
        it shares the paper."""
        page = object.__new__(Page)
        page.t = self.t if index is None else _Some(self.t, index)
        page.sharp = self.sharp if index is None else self.sharp[index]
        for name in ("u", "v", "f", "side", "head", "rgb", "grain"):
            whole = getattr(self, name)[..., rows, :]
            setattr(page, name, whole if index is None else whole[index])
        return page

    def ink(self, distance: Array) -> Array:
        """How much of each pixel a shape covers."""
        cover = distance * self.sharp
        cover += 0.5
        return limit(cover, 0, 1)

    def paint(self, colour: Array, distance: Array, strength: Array | float = 1.0) -> None:
        """Lay a shape over what is there."""
        cover = self.ink(distance)
        cover *= strength
        self.lay(colour, cover)

    def lay(self, colour: Array, cover: Array) -> None:
        """Lay a colour over what is there, as thickly as `cover` says."""
        change = colour - self.rgb
        change *= cover[:, None]
        self.rgb += change


class _Some(dict[str, Array]):
    """The traits of some of the pictures, each looked up when a layer first asks for it."""

    def __init__(self, whole: Traits, index: Array) -> None:
        self.whole, self.index = whole, index

    def __missing__(self, name: str) -> Array:
        self[name] = self.whole[name][self.index]
        return self[name]


def limit(values: Array, low: float, high: float) -> Array:
    """Clip in place: half the time of a new array."""
    return np.clip(values, low, high, out=values)


def oval(x: Array, y: Array, rx: Array | float, ry: Array | float) -> Array:
    """Near its edge, the distance from an ellipse around 0."""
    across, down = x / rx, y / ry
    across *= across
    down *= down
    across += down
    np.sqrt(across, out=across)
    across -= 1
    across *= np.minimum(rx, ry)
    return across


def box(x: Array, y: Array, rx: Array | float, ry: Array | float) -> Array:
    """Distance from a rectangle around 0."""
    return both(np.abs(x) - rx, np.abs(y) - ry)


def arc(
    x: Array, y: Array, half: Array | float, bend: Array | float, thick: Array | float
) -> Array:
    """Distance from a parabola's arc, `half` wide to either side; its middle hangs `bend` below its
    ends."""
    sag = (np.square(x / half) - 1) * bend
    return both(np.abs(y + sag) - thick, np.abs(x) - half)


def both(first: Array, *others: Array) -> Array:
    """What lies inside of all shapes."""
    for other in others:
        first = np.maximum(first, other)
    return first
