"""What is around a face: the background behind it, clothes, glasses, earrings, hats, and what comes
in front."""

from __future__ import annotations

import numpy as np

from privet.data.portraits.canvas import ACROSS, DOWN, Page, arc, both, box, limit, oval


def sky(p: Page) -> None:
    x, y = p.t["phase"] + ACROSS / 7, DOWN / 5
    cloud = np.sin(x + 1.3 * np.sin(y + p.t["phase"])) * np.sin(0.8 * y + 6 * p.t["grid"])
    p.lay(p.t["ground2"], limit(0.9 * cloud + 0.55 - y / 12, 0, 1))


def leaves(p: Page) -> None:
    x, y = ACROSS * p.t["grid"], DOWN * p.t["grid"]
    x, y = x + 1.2 * np.sin(0.7 * y + p.t["phase"]), y + 1.2 * np.sin(0.6 * x)
    p.lay(
        p.t["ground2"],
        limit(2.2 * np.sin(x + 0.6 * y) * np.sin(0.8 * y - 0.5 * x + p.t["phase"]) + 0.4, 0, 1),
    )


def bricks(p: Page) -> None:
    y = DOWN * p.t["grid"] * 0.4 + p.t["phase"]
    x = ACROSS * p.t["grid"] * 0.2 + 0.5 * (np.floor(y) % 2)
    p.lay(
        p.t["ground2"],
        limit(7 * both(2 * np.abs(y % 1 - 0.5) - 0.72, 2 * np.abs(x % 1 - 0.5) - 0.84), 0, 1),
    )


def paper(p: Page) -> None:
    p.lay(
        p.t["ground2"],
        limit(4 * np.sin((1.4 * ACROSS + 0.1 * DOWN) * p.t["grid"] + p.t["phase"]) + 0.3, 0, 1),
    )


def body(p: Page) -> None:
    t = p.t
    p.paint(t["skin_dark"], box(p.u, p.v - 1.1, 0.34, 0.4))
    p.paint(t["cloth"], oval(p.u, p.v - 1.95, 1.25, 0.75))
    p.paint(t["cloth2"], arc(p.u, p.v - 1.22, 0.36, 0.16, 0.05))


def glasses(p: Page) -> None:
    """Round or square, thin or thick, clear or dark."""
    t = p.t
    x, y = p.side - t["eyes"], p.v - t["eye_y"] - 0.02
    rim = np.where(
        t["square"] > 0,
        box(x, y, t["rim_w"], 0.85 * t["rim_h"]),
        oval(x, y, t["rim_w"], t["rim_h"]),
    )
    p.paint(t["glass"], rim, t["tint"])
    bridge = arc(p.f, y + 0.03, t["eyes"] - 0.9 * t["rim_w"], -0.05, t["rim"])
    temple = both(box(p.side - 0.8, y + 0.05, 0.8 - t["eyes"] - t["rim_w"], t["rim"]), p.head)
    p.paint(t["frame"], np.minimum(np.minimum(np.abs(rim) - t["rim"], bridge), temple))


def earrings(p: Page) -> None:
    """A drop or a hoop below each ear; the far one is out of sight when the head turns."""
    t = p.t
    x = np.abs(p.u) - t["width"] + 0.4 * np.abs(t["yaw"]) - 0.03
    y = p.v - 0.36 - t["dangle"]
    drop = np.where(t["hoop"] > 0, np.abs(oval(x, y, 0.13, 0.14)) - 0.035, oval(x, y, 0.11, 0.12))
    hidden = (p.u * np.sign(t["yaw"]) > 0) & (np.abs(t["yaw"]) > 0.12)
    p.paint(t["metal"], np.minimum(drop, box(x, y + 0.12, 0.022, t["dangle"])), ~hidden)


def hat(p: Page) -> None:
    """A woollen cap, or a hat with a band and a brim."""
    t = p.t
    x = p.u + 0.1 * t["yaw"]
    dome = oval(x, p.v + 0.5, t["width"] + 0.14, 0.62 + t["crown"])
    p.paint(t["hat_colour"], both(dome, p.v + 0.5 + 0.06 * np.square(x)))
    p.paint(
        t["hat_band"], both(oval(x, p.v + 0.5, t["width"] + 0.17, 0.7), np.abs(p.v + 0.56) - 0.1)
    )
    p.paint(
        t["hat_colour"],
        oval(x - t["yaw"] * t["peak"], p.v + 0.46, t["width"] + t["brim"], 0.1),
        t["brim"] > 0.14,
    )


def strands(p: Page) -> None:
    """Hair blown across the face."""
    t = p.t
    for k in (0.0, 0.16, 0.3):
        x = p.f - t["strand"] - k - 0.3 * p.v - 0.12 * np.sin(3 * p.v + t["phase"])
        p.paint(t["hair_colour"], both(np.abs(x) - 0.035, np.abs(p.v + 0.25) - 0.55 + k))


def scarf(p: Page) -> None:
    t = p.t
    y, ends = p.v - t["scarf_y"] - 0.1 * np.square(p.u), np.abs(p.u) - 0.95
    p.paint(t["cloth2"], both(-y, ends))
    p.paint(t["cloth"], both(np.abs(y - 0.2) - 0.05, ends), 0.8)


def hand(p: Page) -> None:
    """A hand held to the cheek or the mouth: a palm and three fingers."""
    t = p.t
    x, y = (p.u - t["hand_x"]) * t["lean"], p.v - t["hand_y"]
    p.paint(t["skin_line"], oval(x, y - 0.55, 0.29, 0.37))
    p.paint(t["skin"], oval(x, y - 0.55, 0.25, 0.34))
    for k, up in ((-0.16, 0.06), (0.0, 0.12), (0.16, 0.05)):
        p.paint(t["skin_line"], oval(x - k, y - 0.2 + up, 0.1, 0.27))
        p.paint(t["skin"], oval(x - k, y - 0.2 + up, 0.07, 0.24))


def stripe(p: Page) -> None:
    """Something across the lens: a twig, a strap, a pole."""
    t = p.t
    p.paint(
        t["cloth"], np.abs(p.u * np.cos(t["angle"]) + p.v * np.sin(t["angle"]) - t["strand"]) - 0.09
    )
