"""The face itself, layer by layer: ears, head, the lines of age, beard, mouth, nose, eyes, hair.

Numbers are positions and sizes in units of the face, see `page`: the head reaches from about -1 to
1 in v.
"""

from __future__ import annotations

import numpy as np

from privet.data.portraits.canvas import Page, arc, both, box, limit, oval


def back_hair(p: Page) -> None:
    t = p.t
    x = p.u + 0.2 * t["yaw"]
    crown = oval(x, p.v + 0.12, t["width"] + t["volume"], t["height"] + t["volume"])
    p.paint(t["hair_dark"], both(crown, p.v - 0.05 - 0.5 * t["long_hair"]))


def falling_hair(p: Page) -> None:
    t = p.t
    x = p.u + 0.2 * t["yaw"] - 0.05 * np.sin(9 * p.v + t["phase"])
    p.paint(t["hair_dark"], box(x, p.v - 0.55, t["width"] + t["volume"], 0.62 + t["length"]))


def ears(p: Page) -> None:
    """Two ears beside the head, which is drawn over them."""
    t = p.t
    x = np.abs(p.u) - t["width"] + 0.4 * np.abs(t["yaw"])
    p.paint(t["skin_dark"], oval(x, p.v - 0.08, 0.13, 0.2))


def near_ear(p: Page) -> None:
    """Of a head that turns, one ear comes round to the front."""
    t = p.t
    x = p.u * -np.sign(t["yaw"]) - t["width"] + 0.4 * np.abs(t["yaw"])
    p.paint(t["skin_dark"], oval(x, p.v - 0.08, 0.12, 0.2))
    p.paint(t["skin"], oval(x, p.v - 0.07, 0.08, 0.15))


def head(p: Page) -> None:
    t = p.t
    inside = p.ink(p.head)
    p.lay(t["skin"], inside)
    p.lay(t["skin_dark"], inside * limit(0.8 * p.head + 0.21, 0, 0.3))
    p.lay(
        t["blush"],
        inside * limit(1 - 6 * oval(p.side - 0.42, p.v - 0.3, 0.2, 0.16), 0, 1) * t["flush"],
    )


def lines(p: Page) -> None:
    """What age leaves: on the forehead, at the corners of the eyes and below them, beside the
    nose."""
    t = p.t
    x, y = p.side - t["eyes"], p.v - t["eye_y"]
    folds = (
        arc(p.f, p.v + 0.66 - t["brow_y"], 0.36, -0.04, 0.03),
        arc(p.f, p.v + 0.53 - t["brow_y"], 0.36, -0.04, 0.03),
        both(np.abs(np.abs(y) - 0.55 * (x - 0.13)) - 0.028, np.abs(x - 0.26) - 0.09, p.head + 0.04),
        both(np.abs(p.side - 0.42 * p.v - 0.116) - 0.034, np.abs(p.v - 0.36) - 0.17),
        arc(x, y - 0.19, 0.12, 0.05, 0.026),
    )
    for fold in folds:
        p.paint(t["skin_line"], fold, t["furrow"])


def beard(p: Page) -> None:
    """From stubble (thin, all over) to a full beard that hangs below the chin; a narrow one is a
    goatee."""
    t = p.t
    hang = p.head - t["hang"] * np.maximum(p.v - 0.3, 0)
    cheek = 0.36 - 1.2 * np.maximum(p.side - 0.34, 0) - p.v
    grain = 1 + 0.22 * p.grain[:, 0] * (1.4 - t["dense"])
    p.paint(
        t["beard_colour"], both(hang, cheek, p.side - t["reach"]), limit(t["dense"] * grain, 0, 1)
    )


def mouth(p: Page) -> None:
    """Two parabolas with common corners; a smile lifts the corners, an open mouth parts the
    curves."""
    t = p.t
    bow = 1 - np.square(p.f / t["lips"])
    y = p.v - t["mouth_y"] + 0.55 * t["bend"]
    upper, lower = bow * (t["bend"] - 0.35 * t["gap"]) - y, y - bow * (t["bend"] + 0.65 * t["gap"])
    ends = p.side - t["lips"]
    p.paint(t["lip"], both(both(upper, lower) - t["lip_thick"], ends))
    hole = both(upper, lower, ends)
    p.paint(t["throat"], hole, t["mouth_open"])
    p.paint(t["teeth"], both(hole, -upper - 0.09), t["mouth_open"] * t["teeth_show"])


def nose(p: Page) -> None:
    t = p.t
    x, y = p.f - 0.25 * t["yaw"], p.v - 0.22
    ridge = np.abs(x - 0.25 * t["yaw"] - 0.35 * t["nose"] * t["lean"]) - 0.03
    p.paint(t["skin_dark"], both(ridge, np.abs(y + 0.14) - t["nose_long"]), 0.55)
    p.paint(t["skin_line"], oval(x, y, t["nose"], 0.055), 0.75)
    p.paint(t["skin"], oval(x, y + 0.05, 0.85 * t["nose"], 0.06))


def eyes(p: Page) -> None:
    t = p.t
    x, y = p.side - t["eyes"], p.v - t["eye_y"]
    p.paint(t["lash"], oval(x, y + 0.02, t["eye_w"] + 0.025, t["eye_h"] + 0.03))
    white = oval(x, y, t["eye_w"], t["eye_h"])
    p.paint(t["white"], white)
    iris = oval(x - t["gaze"] * np.sign(p.f), y, 0.08, 0.085)
    p.paint(t["iris"], both(iris, white))
    p.paint(t["lash"], both(iris + 0.042, white))
    p.paint(t["brow"], arc(x, y + t["brow_gap"] - t["frown"] * x, 0.17, -0.06, t["brow_thick"]))


def front_hair(p: Page) -> None:
    """A cap of hair above a hairline that is straight, parted or receding; it comes down at the
    temples."""
    t = p.t
    cap = oval(
        p.u + 0.1 * t["yaw"],
        p.v + 0.1,
        t["width"] + 0.05 + 0.6 * t["volume"],
        t["height"] + 0.05 + 0.7 * t["volume"],
    )
    fringe = (
        t["hairline"]
        + t["part"] * p.f
        + t["curl"] * np.sin(13 * p.f + t["phase"])
        - t["peaked"] * (0.25 - p.side)
    )
    temple = 2.6 * np.maximum(p.side - t["width"] + 0.22, 0)
    cover = p.ink(both(cap, p.v - fringe - temple, p.v - 0.02))
    p.lay(t["hair_colour"], cover)
    p.lay(t["hair_dark"], cover * limit(0.45 * np.sin(22 * p.f + 5 * p.v), 0, 1))
    p.lay(t["hair_light"], cover * limit(1 - 5 * np.abs(p.v + 0.78 - 0.3 * np.square(p.f)), 0, 0.6))


def locks(p: Page) -> None:
    """Long hair beside the face, in front of the ears."""
    t = p.t
    x = np.abs(p.u + 0.2 * t["yaw"]) - t["width"] - 0.02 - 0.03 * np.sin(8 * p.v + t["phase"])
    cover = p.ink(
        box(x, p.v - 0.3 - 0.5 * t["length"], 0.09 + 0.3 * t["volume"], 0.72 + 0.5 * t["length"])
    )
    p.lay(t["hair_colour"], cover)
    p.lay(t["hair_dark"], cover * limit(0.5 * np.sin(26 * x + 4 * p.v), 0, 1))
