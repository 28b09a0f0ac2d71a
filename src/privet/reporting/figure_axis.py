"""One labelled axis for one attribute: guessing, what was found, the goal, the certified bound and
raw data, each with its name and number above its mark."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import between, is_number, measured, percent
from privet.reporting.label_placement import Box
from privet.reporting.plot import Axis, Plot

# Sizes in pixels: a row of names, the height of the marks, the room below for numbers and words.
ROW, MARKS, BELOW, EDGE = 19, 30, 48, 10
# Width of a letter as a share of the font size, in bold and in the widest of the page's fonts.
WIDEST = 0.64


class Mark(NamedTuple):
    """A value on the axis.

    Parameters:
        at: The value.
        text: What stands above it.
        css: found, raw, guess, goal or cap: how it is drawn.
    """

    at: float
    text: str
    css: str


class Scale(NamedTuple):
    """What one axis shows.

    Parameters:
        found: The figure of the strongest attacker or the best model; None where nothing was
            measured.
        chance: What guessing reaches.
        raw: The same figure from raw data.
        goal: What attackers should not exceed.
        bound: What no attacker can exceed.
        role: private or utility: which way is better.
        measure: What is counted, in words.
        worst: What no attacker can exceed in the worst certified group.
    """

    found: Figure | None
    chance: float
    raw: Figure | None = None
    goal: float | None = None
    bound: float | None = None
    role: str = "private"
    measure: str = "balanced accuracy"
    worst: float | None = None


def marks(scale: Scale, short: bool = False) -> list[Mark]:
    """Everything on the axis, the most important first; `short` leaves out the interval, which is
    drawn as well."""
    who = "found" if scale.role == "private" else "this release"
    listed = []
    if scale.found is not None and measured(scale.found):
        said = f"{who} {percent(scale.found.value)}"
        said += "" if short else f" ({between(scale.found)})"
        listed.append(Mark(scale.found.value, said, "found"))
    if scale.goal is not None:
        listed.append(Mark(scale.goal, f"goal {100 * scale.goal:.3g}", "goal"))
    if scale.bound is not None:
        listed.append(Mark(scale.bound, f"certified {percent(scale.bound, 'up')}", "cap"))
    if scale.worst is not None:
        listed.append(Mark(scale.worst, f"worst group {percent(scale.worst, 'up')}", "cap"))
    if is_number(scale.chance):
        listed.append(Mark(scale.chance, f"guessing {percent(scale.chance)}", "guess"))
    if scale.raw is not None and measured(scale.raw):
        listed.append(Mark(scale.raw.value, f"raw {percent(scale.raw.value)}", "raw"))
    return listed


class Spot(NamedTuple):
    """Where a name stands: its row, counted upwards, its ends, and the mark it names."""

    row: int
    left: float
    right: float
    at: float


def name_spots(places: list[tuple[float, str]], width: float, size: float) -> list[Spot]:
    """A place for each name, so that none covers another or leaves the picture, and as few lines
    from names to marks as possible go through a name; the first names stand lowest.

    >>> [spot.row for spot in name_spots([(100, "one"), (104, "two"), (300, "three")], 400, 13)]
    [0, 1, 0]
    """
    tries = product((0.5, 0.05, 0.95), repeat=len(places))
    return min((_stacked(places, shares, width, size) for shares in tries), key=_cost)


def _stacked(
    places: list[tuple[float, str]], shares: tuple[float, ...], width: float, size: float
) -> list[Spot]:
    spots: list[Spot] = []
    for (x, text), share in zip(places, shares, strict=True):
        length = WIDEST * size * len(text)
        left = min(max(x - share * length, 0.0), max(width - length, 0.0))
        right, row = left + length, 0
        while any(s.row == row and left < s.right + 10 and s.left < right + 10 for s in spots):
            row += 1
        spots.append(Spot(row, left, right, x))
    return spots


def _cost(spots: list[Spot]) -> float:
    crossed = sum(
        lower.left - 3 < upper.at < lower.right + 3
        for upper in spots
        for lower in spots
        if lower.row < upper.row
    )
    aside = sum(abs((s.left + s.right) / 2 - s.at) / (s.right - s.left) for s in spots)
    return 10 * crossed + 2 * sum(spot.row for spot in spots) + aside


def figure_axis(scale: Scale, width: int = 640) -> Markup:
    """The axis, from a little below guessing to never wrong, the same for every release."""
    shown = marks(scale, short=width < 500)
    ends = [mark.at for mark in shown]
    if scale.found is not None and measured(scale.found):
        ends.append(scale.found.low)
    low = max(math.floor(round(10 * (min(ends, default=0.5) - 0.03), 6)) / 10, 0.0)
    axis = Axis(low, 1.0, factor=100)
    flat = Axis(-1, 1)
    probe = Plot(axis, flat, width, 100, frame=Box(EDGE, 0, width - EDGE, 100))
    spots = name_spots([(probe.at(mark.at, 0)[0], mark.text) for mark in shown], width, 13)
    top = ROW * (1 + max((spot.row for spot in spots), default=0)) + 4
    frame = Box(EDGE, top, width - EDGE, top + MARKS)
    plot = Plot(
        axis, flat, width, top + MARKS + BELOW, css=f"figure-axis {scale.role}", frame=frame
    )
    if scale.goal is not None:
        plot.bar("zone within", (low, scale.goal), (-1, 1))
        plot.bar("zone beyond-goal", (scale.goal, 1.0), (-1, 1))
    else:
        plot.bar("zone", (low, 1.0), (-1, 1))
    plot.segment("floor", (low, 1.0), (-1, -1))
    for tick, number in axis.written(7 if width > 500 else 4):
        across = plot.at(tick, -1)[0]
        plot.add("path", css="floor", d=f"M{across:g} {frame.bottom:g}v5")
        plot.text(across, frame.bottom + 18, number, "tick", "middle")
    better = "\u2190 lower is better" if scale.role == "private" else "higher is better \u2192"
    plot.text(EDGE, frame.bottom + 38, f"{scale.measure}, %", "axis")
    plot.text(width - EDGE, frame.bottom + 38, better, "way", "end")
    for mark, spot in zip(shown, spots, strict=True):
        across, centre = plot.at(mark.at, 0)
        start = top - 4 - ROW * spot.row
        plot.add("path", css="leader", d=f"M{across:g} {start:g}V{centre - 9:g}")
        _draw(plot, mark, scale)
    for mark, spot in zip(shown, spots, strict=True):
        middle = round((spot.left + spot.right) / 2, 1)
        plot.text(middle, top - 8 - ROW * spot.row, mark.text, f"name {mark.css}", "middle")
    return plot.svg(in_words(scale))


def _draw(plot: Plot, mark: Mark, scale: Scale) -> None:
    if mark.css == "found" and scale.found is not None:
        plot.segment("whisker", (scale.found.low, scale.found.high), (0, 0))
        for end in (scale.found.low, scale.found.high):
            plot.segment("whisker", (end, end), (-0.35, 0.35))
        plot.point("dot", mark.at, 0, radius=6)
    elif mark.css == "raw":
        plot.point("ring", mark.at, 0, radius=6)
    else:
        plot.segment(f"upright {mark.css}", (mark.at, mark.at), (-1, 0.9))


def in_words(scale: Scale) -> str:
    """The same for those who do not see it."""
    said = "; ".join(mark.text for mark in marks(scale)) or "nothing was measured"
    better = "lower" if scale.role == "private" else "higher"
    return f"Axis of {scale.measure} in %, {better} is better: {said}."
