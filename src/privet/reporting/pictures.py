"""Inline SVG: small, crisp at any size, coloured by the page's style sheet, so that one drawing
serves light and dark.

Every text goes through `Markup.format`, which escapes it. Privacy is drawn in one colour and
utility in the other; along the privacy axis *right is more private* and along the utility axis *up
is more useful*, so the best corner is the top right one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from privet.evidence.figures import Audit, Figure, Reading
from privet.evidence.formatting import (
    between,
    explained,
    is_number,
    measured,
    percent,
    times_in_100,
)
from privet.reporting import sentences as words
from privet.reporting.label_placement import WIDE, Box, place, shorten

Kind = Literal["release", "raw", "other"]


@dataclass(frozen=True)
class Point:
    """One way to hand out the data: how private, and how useful."""

    label: str
    kind: Kind
    private: Figure
    utility: Figure | None = None
    key: str = ""
    """What stands in the picture where the label would not fit: a number that the table beside it
    explains."""
    explains: tuple[bool, bool] = (False, False)
    """Whether the private attribute and the task are numbers, so that variance is counted and not
    how often one is right."""


MOST_NAMES = 6
"""Points that can be named in a wide picture; more, or less room, and they are numbered."""


def axis_start(chance: float, values: Iterable[float]) -> float:
    """Lower end of a scale: a little below chance, so that chance is a place and not an edge.

    Guessing explains no variance; how far below none a bad model falls is nothing to draw, so there
    the scale is fixed.
    """
    chance = chance if is_number(chance) else 0.0
    if chance <= 0:
        return -0.12
    lowest = min([chance, *(v for v in values if is_number(v))])
    return max(0.0, lowest - 0.12 * (1 - chance))


def clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def gauge(
    figure: Figure, role: str, raw: Figure | None = None, quiet: bool = False, small: bool = False
) -> Markup:
    """A bar from chance to the value, with the interval as a whisker and what it is compared with,
    mostly the raw data, as a ring.

    As wide as its place: only percentages across. The same numbers stand beside it as text, so it
    is hidden from screen readers.
    """
    start = axis_start(figure.chance, [figure.value, raw.value if raw else figure.value])

    def at(value: float) -> float:
        return round(0.5 + 99 * clamp((value - start) / max(1 - start, 1e-9), 0, 1), 2)

    line = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format
    parts = [
        line("track", at(start), at(1), 11, 11),
        line("chance", at(figure.chance), at(figure.chance), 2, 20),
    ]
    if measured(figure):
        left, right = sorted((at(figure.chance), at(figure.value)))
        low, high = at(figure.low), at(figure.high)
        bar = Markup('<rect class="bar" x="{}%" width="{}%" y="7.5" height="7" rx="1"/>')
        parts.append(bar.format(left, round(right - left, 2)))
        parts += [
            line("whisker", low, high, 11, 11),
            line("whisker", low, low, 7, 15),
            line("whisker", high, high, 7, 15),
        ]
    if raw is not None and measured(raw):
        ring = Markup('<circle class="ring" cx="{}%" cy="11" r="4.5"><title>{}</title></circle>')
        parts.append(ring.format(at(raw.value), _exactly(raw)))
    if measured(figure):
        parts.append(
            Markup('<circle class="dot" cx="{}%" cy="11" r="{}"/>').format(
                at(figure.value), 3 if small else 4.5
            )
        )
    parts.append(Markup("<title>{}</title>").format(_exactly(figure)))
    name = f"gauge {role}{' quiet' if quiet else ''}"
    return Markup('<svg class="{}" width="100%" height="22" aria-hidden="true">{}</svg>').format(
        name, Markup("").join(parts)
    )


def _exactly(figure: Figure) -> str:
    """
    >>> _exactly(Figure(0.611, 0.589, 0.633, 2000, 0.5))
    '61.1 (58.9 to 63.3)'
    """
    return f"{percent(figure.value)} ({between(figure)})" if measured(figure) else "not measured"


def points(
    audit: Audit, compare: Sequence[Audit], private: str, utility: str | None
) -> list[Point]:
    """The raw data, the release, and the other audits that measured the same attributes; unmeasured
    ones are left out."""
    among = (audit, *compare)
    found = [_point(audit, private, utility, "raw data", "raw", "raw data")]
    label = words.called(audit, among) if compare else "this release"
    found.append(_point(audit, private, utility, label, "release", "this release"))
    for number, other in enumerate(compare, 1):
        found.append(
            _point(other, private, utility, words.called(other, among), "other", str(number))
        )
    return [point for point in found if point is not None]


def _point(
    audit: Audit, private: str, utility: str | None, label: str, kind: Kind, key: str
) -> Point | None:
    across, up = _figure(audit.private, private, kind), _figure(audit.utility, utility, kind)
    if across is None or (up is None and utility is not None):
        return None
    numbers = {r.attribute for r in audit.readings if r.is_number}
    return Point(label, kind, across, up, key, (private in numbers, utility in numbers))


def _figure(readings: Iterable[Reading], name: str | None, kind: Kind) -> Figure | None:
    """What was measured of one attribute, on the raw data or on the release."""
    reading = next((r for r in readings if r.attribute == name), None)
    if reading is None or not (reading.raw if kind == "raw" else reading.released):
        return None
    figure = (reading.reference if kind == "raw" else reading.worst).score
    return figure if measured(figure) else None


def _does(figure: Figure, explains: bool) -> str:
    return (
        f"explains {explained(figure.value)}"
        if explains
        else f"right {times_in_100(figure.value)} times in 100"
    )


def described(private: str, utility: str | None, shown: Sequence[Point]) -> str:
    """The picture in words, for those who do not see it."""
    parts = []
    for p in shown:
        part = f"{p.label}: worst attacker on {private} {_does(p.private, p.explains[0])}"
        if p.utility is not None:
            part += f", model for {utility} {_does(p.utility, p.explains[1])}"
        parts.append(part)
    return f"Privacy{' and utility' if utility is not None else ''} picture. {'; '.join(parts)}."


def plane(
    reading: Reading, task: Reading, shown: Sequence[Point], width: int = 720, height: int = 430
) -> Markup:
    """Privacy across, utility up, an arrow from the raw data to the release."""
    size = 13.0
    frame = Box(44, 46, width - 14, height - 62)
    pairs = [(p, p.utility) for p in shown if p.utility is not None]
    x_chance, y_chance = pairs[0][0].private.chance, pairs[0][1].chance
    x_start = axis_start(x_chance, [p.private.value for p, _ in pairs])
    y_start = axis_start(y_chance, [u.value for _, u in pairs])

    def across(value: float) -> float:
        share = (clamp(value, x_start, 1) - x_start) / (1 - x_start + 0.02)
        return round(frame.right - share * (frame.right - frame.left), 1)

    def up(value: float) -> float:
        share = (clamp(value, y_start, 1) - y_start) / (1 - y_start + 0.02)
        return round(frame.bottom - share * (frame.bottom - frame.top), 1)

    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    rect = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format
    parts: list[Markup] = []

    # Where nothing is gained by looking: beyond chance.
    edge, floor = across(x_chance), up(y_chance)
    parts.append(
        rect(
            "beyond private",
            edge,
            frame.top,
            round(frame.right - edge, 1),
            frame.bottom - frame.top,
        )
    )
    parts.append(
        rect(
            "beyond utility",
            frame.left,
            floor,
            frame.right - frame.left,
            round(frame.bottom - floor, 1),
        )
    )
    for tick in _ticks(x_start):
        parts.append(line("grid", across(tick), across(tick), frame.top, frame.bottom))
        parts.append(text("tick", across(tick), frame.bottom + 18, "middle", times_in_100(tick)))
    for tick in _ticks(y_start):
        parts.append(line("grid", frame.left, frame.right, up(tick), up(tick)))
        parts.append(text("tick", frame.left - 9, up(tick) + 4, "end", times_in_100(tick)))
    parts.append(line("chance private", edge, edge, frame.top, frame.bottom))
    parts.append(line("chance utility", frame.left, frame.right, floor, floor))
    guess = [text("note private", edge - 6, frame.top + 16, "end", "attacker guesses")]
    guess.append(text("note utility", frame.left + 6, floor + 16, "start", "model guesses"))
    taken = [
        Box(edge - 110, frame.top + 4, edge, frame.top + 20),
        Box(frame.left, floor + 3, frame.left + 100, floor + 20),
    ]

    long = int(width / (size * 0.54)) - len("Worst attacker on , % of variance explained")
    counted = [
        ", % of variance explained" if r.is_number else ", times right in 100"
        for r in (reading, task)
    ]
    parts.append(
        text(
            "axis utility", 2, 14, "start", f"Model for {shorten(task.attribute, long)}{counted[1]}"
        )
    )
    parts.append(text("way utility", 2, 33, "start", "\u2191 more useful"))
    parts.append(
        text(
            "axis private",
            frame.right,
            height - 23,
            "end",
            f"Worst attacker on {shorten(reading.attribute, long)}{counted[0]}",
        )
    )
    parts.append(text("way private", frame.right, height - 4, "end", "more private \u2192"))

    spots = []
    for p, u in pairs:
        x, y = across(p.private.value), up(u.value)
        spots.append((x, y))
        left, right, top, bottom = (
            across(p.private.high),
            across(p.private.low),
            up(u.high),
            up(u.low),
        )
        parts.append(line(f"whisker private {p.kind}", left, right, y, y))
        parts.append(line(f"whisker utility {p.kind}", x, x, top, bottom))
        taken += [
            Box(left, y - 2, right, y + 2),
            Box(x - 2, top, x + 2, bottom),
            Box(x - 7, y - 7, x + 7, y + 7),
        ]
    by_kind = {p.kind: spot for (p, _), spot in zip(pairs, spots, strict=True)}
    if "raw" in by_kind and "release" in by_kind:
        parts.append(_arrow(by_kind["raw"], by_kind["release"]))
        taken += _along(by_kind["raw"], by_kind["release"])
    by_name = len(pairs) <= (MOST_NAMES if width >= 600 else 2)
    named = [
        (x, y, shorten(p.label if by_name else p.key, 30))
        for (p, _), (x, y) in zip(pairs, spots, strict=True)
    ]
    for (p, _), label in zip(
        pairs, place(named, taken, frame._replace(right=width), size, 10), strict=True
    ):
        parts.append(
            text(f"name {p.kind}", round(label.x, 1), round(label.y, 1), label.anchor, label.text)
        )
    parts += guess
    for (p, u), (x, y) in zip(pairs, spots, strict=True):
        lines = [
            p.label,
            f"{reading.attribute}: {_exactly(p.private)}",
            f"{task.attribute}: {_exactly(u)}",
        ]
        parts.append(_spot(p.kind, x, y, lines, frame))
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>')
    return whole.format(
        width, height, described(reading.attribute, task.attribute, shown), Markup("").join(parts)
    )


def _spot(
    kind: Kind, x: float, y: float, lines: Sequence[str], frame: Box, size: float = 12.5
) -> Markup:
    """A point that shows its exact values when it is pointed at or reached with the keyboard; no
    script is needed."""
    radius = {"release": 6, "raw": 5.5, "other": 4.5}[kind]
    lines = [shorten(line, int((frame.right - frame.left - 24) / (WIDE * size))) for line in lines]
    wide, tall = max(map(len, lines)) * WIDE * size + 20, len(lines) * 18 + 12
    left = round(clamp(x - wide / 2, frame.left, max(frame.left, frame.right - wide)), 1)
    top = round(y + 14 if y - 14 - tall < frame.top - 40 else y - 14 - tall, 1)
    said = Markup("").join(
        Markup('<text x="{}" y="{}">{}</text>').format(left + 10, round(top + 20 + 18 * i, 1), line)
        for i, line in enumerate(lines)
    )
    return Markup(
        '<g class="spot" tabindex="0" role="img" aria-label="{}"><circle class="near" cx="{}" cy="{}" r="14"/>'
        '<circle class="point {}" cx="{}" cy="{}" r="{}"/>'
        '<g class="tip" aria-hidden="true"><rect x="{}" y="{}" width="{}" height="{}" rx="6"/>{}</g></g>'
    ).format("; ".join(lines), x, y, kind, x, y, radius, left, top, round(wide, 1), tall, said)


def strip(rows: Sequence[tuple[str, Sequence[Point]]]) -> Markup:
    """Privacy alone, one row per attribute and audit, where there is no task to weigh it
    against."""
    start = min(axis_start(p.private.chance, [p.private.value]) for _, shown in rows for p in shown)

    def at(value: float) -> float:
        return round(97.5 - 94 * (clamp(value, start, 1) - start) / max(1 - start, 1e-9), 2)

    line = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}%" y="{}" text-anchor="{}">{}</text>').format
    tall, bottom = 58, 58 * len(rows) + 6
    parts = [line("grid", at(t), at(t), 6, bottom) for t in _ticks(start)]
    parts += [text("tick", at(t), bottom + 18, "middle", times_in_100(t)) for t in _ticks(start)]
    told = []
    for row, (name, shown) in enumerate(rows):
        y = tall * row + 38
        told.append(described(name, None, shown))
        parts.append(text("name release", 1, y - 18, "start", shorten(name, 40)))
        parts.append(
            line(
                "chance private",
                at(shown[0].private.chance),
                at(shown[0].private.chance),
                y - 14,
                y + 14,
            )
        )
        ends = {p.kind: at(p.private.value) for p in shown}
        if len(ends) > 1:
            parts.append(line("way-line", *ends.values(), y, y))
        for p in shown:
            parts.append(
                line(f"whisker private {p.kind}", at(p.private.high), at(p.private.low), y, y)
            )
            dot = Markup(
                '<circle class="point {}" cx="{}%" cy="{}" r="6.5"><title>{}</title></circle>'
            )
            parts.append(
                dot.format(p.kind, at(p.private.value), y, f"{p.label}: {_exactly(p.private)}")
            )
    kinds = {p.explains[0] for _, shown in rows for p in shown}
    counted = " or ".join(
        ["times right in 100"] * (False in kinds) + ["% of variance explained"] * (True in kinds)
    )
    parts.append(text("axis private", 98, bottom + 42, "end", f"Worst attacker, {counted}"))
    parts.append(text("way private", 98, bottom + 60, "end", "more private \u2192"))
    whole = Markup(
        '<svg class="strip" width="100%" height="{}" role="img" aria-label="{}">{}</svg>'
    )
    return whole.format(bottom + 66, " ".join(told), Markup("").join(parts))


def _ticks(start: float) -> list[float]:
    """
    >>> _ticks(0.45), _ticks(0.0)
    ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    tenths = 1 if start > 0.35 else 2
    return [t / 10 for t in range(0, 11, tenths) if t / 10 >= start - 1e-9]


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    """A thin arrow that stops short of both points; nothing where they lie on each other."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    long = math.hypot(dx, dy)
    if long < 34:
        return Markup("")
    ux, uy = dx / long, dy / long
    x1, y1, x2, y2 = start[0] + 11 * ux, start[1] + 11 * uy, end[0] - 12 * ux, end[1] - 12 * uy
    bx, by = x2 - 9 * ux, y2 - 9 * uy
    head = f"M{x2:.1f} {y2:.1f}L{bx - 4.5 * uy:.1f} {by + 4.5 * ux:.1f}L{bx + 4.5 * uy:.1f} {by - 4.5 * ux:.1f}Z"
    shaft = f"M{x1:.1f} {y1:.1f}L{bx:.1f} {by:.1f}"
    return Markup('<path class="shaft" d="{}"/><path class="head" d="{}"/>').format(shaft, head)


def _along(start: tuple[float, float], end: tuple[float, float], steps: int = 24) -> list[Box]:
    """The arrow as small boxes, so that names keep off it."""
    spots = [
        (start[0] + (end[0] - start[0]) * i / steps, start[1] + (end[1] - start[1]) * i / steps)
        for i in range(1, steps)
    ]
    return [Box(x - 4, y - 3, x + 4, y + 3) for x, y in spots]
