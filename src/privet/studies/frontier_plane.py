"""The plane of a comparison as SVG: the worst adversary across (right is more private), the task
up, a mark per variant and budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import between, is_number, percent, times_in_100
from privet.reporting.label_placement import Box, place, shorten
from privet.reporting.pictures import axis_start, clamp
from privet.studies.groups import Group

COLOURS = 8
_SHAPES = (
    "M{r} 0A{r} {r} 0 1 1 -{r} 0A{r} {r} 0 1 1 {r} 0Z",
    "M-{a} -{a}H{a}V{a}H-{a}Z",
    "M0 -{b}L{b} {a}H-{b}Z",
    "M0 -{b}L{b} 0L0 {b}L-{b} 0Z",
    "M0 {b}L{b} -{a}H-{b}Z",
    "M-{b} -{c}H-{c}V-{b}H{c}V-{c}H{b}V{c}H{c}V{b}H-{c}V{c}H-{b}Z",
    "M0 -{b}L{b} -{c}L{a} {b}H-{a}L-{b} -{c}Z",
)
"""Circle, square, triangles, diamond, cross, pentagon: seven shapes and eight colours repeat
together only after 56."""

MOST_NAMES = 40
"""Points that can carry their budget in the picture; of more, those on the front carry their
name."""


class Look(NamedTuple):
    """How a variant is drawn."""

    label: str
    place: int

    @property
    def colour(self) -> str:
        return f"s{self.place % COLOURS}"

    def path(self, radius: float) -> str:
        sizes = {
            "r": radius,
            "a": round(radius * 0.88, 2),
            "b": round(radius * 1.15, 2),
            "c": round(radius * 0.4, 2),
        }
        return _SHAPES[self.place % len(_SHAPES)].format(**sizes)


def swatch(look: Look) -> Markup:
    """The mark of a variant beside its name."""
    whole = '<svg class="swatch {}" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true"><path class="mark" d="{}"/></svg>'
    return Markup(whole).format(look.colour, look.path(5.5))


class Scale(NamedTuple):
    """From value to place along one axis."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (clamp(value, self.low, self.high) - self.low) / max(self.high - self.low, 1e-9)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        """
        >>> Scale(0.45, 0.72, 0, 1).ticks, Scale(0.0, 1.0, 0, 1).ticks
        ([0.45, 0.5, 0.55, 0.6, 0.65, 0.7], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        """
        span = self.high - self.low
        step = 5 if span < 0.36 else 10 if span < 0.7 else 20
        first, last = math.ceil(round(self.low * 100, 6)), math.floor(round(self.high * 100, 6))
        return [t / 100 for t in range(first, last + 1) if t % step == 0 and t >= 0]

    @staticmethod
    def of(chance: float, values: Sequence[float], start: float, end: float) -> Scale:
        """A little below chance to a little above the highest value: most releases lie far from
        1."""
        known = [v for v in values if is_number(v)]
        return Scale(
            axis_start(chance, known), min(1.02, max([chance + 0.2, *known]) + 0.02), start, end
        )


def picture(
    points: Sequence[Group],
    front: Sequence[int],
    looks: dict[str, Look],
    width: int = 760,
    height: int = 470,
) -> Markup:
    """One picture. `front` names the points that no other release beats, the most private first."""
    private, utility = points[0].private, points[0].utility
    frame = Box(46, 46, width - 14, height - 62)
    leaks = [v for g in points for v in (g.leak.value, g.leak.high, g.certified or g.leak.value)]
    across = Scale.of(points[0].leak.chance, leaks, frame.right, frame.left)
    up = Scale.of(
        points[0].use.chance,
        [v for g in points for v in (g.use.value, g.use.high)],
        frame.bottom,
        frame.top,
    )
    parts = _ground(points[0], across, up, frame, width, height)
    parts.append(_staircase([points[i] for i in front], across, up, frame))
    spots = [(across.at(g.leak.value), up.at(g.use.value)) for g in points]
    taken = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in spots]
    marks: list[Markup] = []
    for group, (x, y) in zip(points, spots, strict=True):
        bars, boxes = _bars(group, x, y, across, up, looks)
        parts += bars
        taken += boxes
        marks.append(_mark(group, x, y, looks))
    few = len(points) <= MOST_NAMES
    shown = range(len(points)) if few else front
    named = [
        (*spots[i], _short(points[i]) if few else shorten(points[i].first.cell.label, 18))
        for i in shown
    ]
    text = Markup('<text class="name {}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    for i, label in zip(
        shown, place(named, taken, frame._replace(right=width), 12.0, 9), strict=True
    ):
        marks.append(
            text(
                _colour(points[i], looks),
                round(label.x, 1),
                round(label.y, 1),
                label.anchor,
                label.text,
            )
        )
    said = "; ".join(
        f"{g.name}: {private} {percent(g.leak.value)}, {utility} {percent(g.use.value)}"
        for g in points
    )
    whole = Markup(
        '<svg class="plane frontier" viewBox="0 0 {} {}" role="group" aria-label="{}">{}{}</svg>'
    )
    return whole.format(
        width,
        height,
        f"Privacy and utility picture. {said}.",
        Markup("").join(parts),
        Markup("").join(marks),
    )


def _ground(
    any_point: Group, across: Scale, up: Scale, frame: Box, width: int, height: int
) -> list[Markup]:
    """Axes, grid, and what lies beyond chance."""
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    rect = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format
    edge, floor = across.at(any_point.leak.chance), up.at(any_point.use.chance)
    parts = [
        rect(
            "beyond private",
            edge,
            frame.top,
            round(frame.right - edge, 1),
            frame.bottom - frame.top,
        ),
        rect(
            "beyond utility",
            frame.left,
            floor,
            frame.right - frame.left,
            round(frame.bottom - floor, 1),
        ),
    ]
    for tick in across.ticks:
        parts += [line("grid", across.at(tick), across.at(tick), frame.top, frame.bottom)]
        parts += [text("tick", across.at(tick), frame.bottom + 18, "middle", times_in_100(tick))]
    for tick in up.ticks:
        parts += [line("grid", frame.left, frame.right, up.at(tick), up.at(tick))]
        parts += [text("tick", frame.left - 9, up.at(tick) + 4, "end", times_in_100(tick))]
    parts += [
        line("chance private", edge, edge, frame.top, frame.bottom),
        line("chance utility", frame.left, frame.right, floor, floor),
    ]
    parts += [text("note private", edge - 6, frame.bottom - 8, "end", "attacker guesses")]
    parts += [text("note utility", frame.left + 6, floor + 16, "start", "model guesses")]
    long = max(int(width / 7) - 44, 8)
    counted = [_counted(any_point.leak), _counted(any_point.use)]
    parts += [
        text(
            "axis utility",
            2,
            14,
            "start",
            f"Model for {shorten(any_point.utility, long)}{counted[1]}",
        )
    ]
    parts += [text("way utility", 2, 33, "start", "\u2191 more useful")]
    parts += [
        text(
            "axis private",
            frame.right,
            height - 23,
            "end",
            f"Worst attacker on {shorten(any_point.private, long)}{counted[0]}",
        )
    ]
    parts += [text("way private", frame.right, height - 4, "end", "more private \u2192")]
    return parts


def _counted(figure: Figure) -> str:
    return ", % of variance explained" if "variance" in figure.measure else ", times right in 100"


def _staircase(front: Sequence[Group], across: Scale, up: Scale, frame: Box) -> Markup:
    """The Pareto front and what lies behind it."""
    if not front:
        return Markup("")
    floor = up.at(front[0].use.chance)
    path = [f"M{across.at(front[0].leak.value)} {floor}"]
    for group in front:
        path.append(f"H{across.at(group.leak.value)}V{up.at(group.use.value)}")
    path.append(f"H{frame.left}")
    line = "".join(path)
    return Markup('<path class="behind" d="{}V{}Z"/><path class="front" d="{}"/>').format(
        line, floor, line
    )


def _bars(
    group: Group, x: float, y: float, across: Scale, up: Scale, looks: dict[str, Look]
) -> tuple[list[Markup], list[Box]]:
    """Intervals, seeds as dots, and the certified level as an open diamond on the same height."""
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    colour = _colour(group, looks)
    left, right, top, bottom = (
        across.at(group.leak.high),
        across.at(group.leak.low),
        up.at(group.use.high),
        up.at(group.use.low),
    )
    parts = [line(f"bars {colour}", left, right, y, y), line(f"bars {colour}", x, x, top, bottom)]
    boxes = [Box(left, y - 2, right, y + 2), Box(x - 2, top, x + 2, bottom)]
    if len(group.rows) > 1:
        dot = Markup('<circle class="seed {}" cx="{}" cy="{}" r="2.2"/>').format
        for row in group.rows:
            leak, use = row.score(group.private), row.score(group.utility)
            if leak is not None and use is not None:
                parts.append(dot(colour, across.at(leak.value), up.at(use.value)))
    if group.certified is not None:
        at = across.at(group.certified)
        parts.append(line(f"proof {colour}", at, x, y, y))
        parts.append(
            Markup(
                '<path class="bound {}" transform="translate({} {})" d="M0 -6L6 0L0 6L-6 0Z"/>'
            ).format(colour, at, y)
        )
        boxes.append(Box(at - 7, y - 7, at + 7, y + 7))
    return parts, boxes


def _mark(group: Group, x: float, y: float, looks: dict[str, Look]) -> Markup:
    """A link to the cell's sheet; what it says is shown at the pointer."""
    look = looks.get(group.first.cell.label)
    shape = Look("", 0).path(5.5) if look is None else look.path(6.2)
    lines = [group.name + (f" ({len(group.rows)} seeds)" if len(group.rows) > 1 else "")]
    lines.append(f"{group.private}: {percent(group.leak.value)} ({between(group.leak)})")
    lines.append(f"{group.utility}: {percent(group.use.value)} ({between(group.use)})")
    if group.certified is not None:
        lines.append(f"no adversary above {percent(group.certified, 'up')}")
    lines += [f"{key} {value}" for key, value in group.first.cell.settings.items()]
    kind = "raw" if look is None else look.colour
    return Markup(
        '<a class="spot" href="#c-{}" aria-label="{}" data-tip="{}"><circle class="near" cx="{}" cy="{}" r="13"/>'
        '<path class="mark {}" transform="translate({} {})" d="{}"/></a>'
    ).format(
        group.first.cell.key[:16], "; ".join(lines[:4]), "\n".join(lines), x, y, kind, x, y, shape
    )


def _colour(group: Group, looks: dict[str, Look]) -> str:
    look = looks.get(group.first.cell.label)
    return "raw" if look is None else look.colour


def _short(group: Group) -> str:
    cell = group.first.cell
    return shorten(cell.label, 18) if cell.budget is None else f"{cell.budget:g}"
