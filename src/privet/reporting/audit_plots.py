"""The plots of an audit: one figure on a line, privacy against utility, groups of people, records.

In every plot of privacy *right is more private* and *up is more useful*, so the best corner is the
top right one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from privet.evidence.figures import Audit, Figure, Group, Reading, Risk
from privet.evidence.formatting import (
    between,
    explained,
    is_number,
    measured,
    percent,
    times_in_100,
)
from privet.reporting import sentences
from privet.reporting.label_placement import Box, shorten
from privet.reporting.plot import Axis, Bin, Plot, histogram

Kind = Literal["release", "raw", "other"]

MOST_NAMES = 6
"""Points that can be named in a wide picture; more, or less room, and they are numbered."""


@dataclass(frozen=True)
class Alternative:
    """One way to hand out the data: how private, and how useful."""

    label: str
    kind: Kind
    private: Figure
    utility: Figure | None = None
    key: str = ""
    """What stands in the picture where the label would not fit: a number that the table beside it
    explains."""
    is_number: tuple[bool, bool] = (False, False)
    """Whether the private attribute and the task are numbers, so that variance is counted and not
    how often one is right."""


def alternatives(
    audit: Audit, compare: Sequence[Audit], private: str, utility: str | None
) -> list[Alternative]:
    """The raw data, the release, and the other audits that measured the same attributes; unmeasured
    ones are left out."""
    among = (audit, *compare)
    label = sentences.called(audit, among) if compare else "this release"
    shown: list[tuple[Audit, str, Kind, str]] = [
        (audit, "raw data", "raw", "raw data"),
        (audit, label, "release", "this release"),
        *((a, sentences.called(a, among), "other", str(n)) for n, a in enumerate(compare, 1)),
    ]
    made = []
    for one, name, kind, key in shown:
        across = _figure(one.private, private, kind)
        up = _figure(one.utility, utility, kind)
        if across is not None and (up is not None or utility is None):
            numbers = {r.attribute for r in one.readings if r.is_number}
            both = (private in numbers, utility in numbers)
            made.append(Alternative(name, kind, across, up, key, both))
    return made


def _figure(readings: Iterable[Reading], name: str | None, kind: Kind) -> Figure | None:
    """What was measured of one attribute, on the raw data or on the release."""
    reading = next((r for r in readings if r.attribute == name), None)
    if reading is None or not (reading.raw if kind == "raw" else reading.released):
        return None
    figure = (reading.reference if kind == "raw" else reading.worst).score
    return figure if measured(figure) else None


def axis_start(chance: float, values: Iterable[float]) -> float:
    """Lower end of a scale: a little below chance, so that chance is a place and not an edge.

    Guessing explains no variance; how far below none a bad model falls is nothing to draw, so there
    the scale is fixed.
    """
    if not is_number(chance) or chance <= 0:
        return -0.12
    lowest = min([chance, *filter(is_number, values)])
    return max(0.0, lowest - 0.12 * (1 - chance))


def score_axis(
    figures: Sequence[Figure],
    bounds: Iterable[float] = (),
    title: str = "",
    css: str = "",
    hint: str = "",
    reverse: bool = False,
) -> Axis:
    """From a little below chance to a little above the highest: most releases lie far from 1."""
    ends = [*(v for f in figures for v in (f.value, f.low, f.high) if is_number(v)), *bounds]
    chance = figures[0].chance
    high = min(1.0, max([chance + 0.2, *ends]) + 0.02)
    return Axis(axis_start(chance, ends), high, title, css, hint, reverse, factor=100)


def exactly(figure: Figure) -> str:
    """
    >>> exactly(Figure(0.611, 0.589, 0.633, 2000, 0.5))
    '61.1 (58.9 to 63.3)'
    """
    return f"{percent(figure.value)} ({between(figure)})" if measured(figure) else "not measured"


def gauge(
    figure: Figure, role: str, raw: Figure | None = None, quiet: bool = False, small: bool = False
) -> Markup:
    """A bar from chance to the value, with its interval, and what it is compared with, mostly the
    raw data, as a ring."""
    low = axis_start(figure.chance, [figure.value, raw.value if raw else figure.value])
    name = f"gauge {role}{' quiet' if quiet else ''}"
    plot = Plot(Axis(low, 1), Axis(-11, 11), None, 22, css=name, frame=Box(0.5, 0, 99.5, 22))
    plot.segment("track", (low, 1), (0, 0))
    plot.segment("chance", (figure.chance, figure.chance), (-9, 9))
    if measured(figure):
        plot.bar("bar", (figure.chance, figure.value), (-3.5, 3.5), rx=1)
        plot.segment("whisker", (figure.low, figure.high), (0, 0))
        for end in (figure.low, figure.high):
            plot.segment("whisker", (end, end), (-4, 4))
    if raw is not None and measured(raw):
        plot.point("ring", raw.value, 0, exactly(raw))
    if measured(figure):
        plot.point("dot", figure.value, 0, radius=3 if small else 4.5)
    plot.add("title", exactly(figure))
    return plot.svg()


def described(private: str, utility: str, shown: Sequence[tuple[Alternative, Figure]]) -> str:
    """The picture in words, for those who do not see it."""

    def does(figure: Figure, is_number: bool) -> str:
        if is_number:
            return f"explains {explained(figure.value)}"
        return f"right {times_in_100(figure.value)} times in 100"

    parts = [
        f"{one.label}: worst attacker on {private} {does(one.private, one.is_number[0])}, "
        f"model for {utility} {does(use, one.is_number[1])}"
        for one, use in shown
    ]
    return f"Privacy and utility picture. {'; '.join(parts)}."


def privacy_plane(
    names: tuple[str, str],
    figures: Sequence[tuple[Figure, Figure]],
    is_number: tuple[bool, bool],
    size: tuple[int, int],
    bounds: Sequence[float] = (),
) -> Plot:
    """Axes for a private attribute and a task (their `names`): the worst attacker across, the model
    up, from a little below chance to a little above the highest of the figures and `bounds`."""
    leaks, uses = zip(*figures, strict=True)
    room = size[0] // 7 - 38
    titles = [
        f"{who} {shorten(name, room)}: {'% of variance explained' if number else 'balanced accuracy, %'}"
        for who, name, number in zip(
            ("Worst attacker on", "Model for"), names, is_number, strict=True
        )
    ]
    x = score_axis(leaks, bounds, titles[0], "private", "more private \u2192", reverse=True)
    y = score_axis(uses, (), titles[1], "utility", "\u2191 more useful")
    plot = Plot(x, y, *size)
    leak, use = leaks[0].chance, uses[0].chance
    plot.beyond("beyond private", x=leak)
    plot.beyond("beyond utility", y=use)
    plot.axes()
    plot.level("chance private", x=leak, name="attacker guesses")
    plot.level("chance utility", y=use, name="model guesses")
    return plot


def plane(
    reading: Reading,
    task: Reading,
    shown: Sequence[Alternative],
    width: int = 720,
    height: int = 430,
) -> Markup:
    """Privacy across, utility up, an arrow from the raw data to the release."""
    pairs = [(one, one.utility) for one in shown if one.utility is not None]
    names, figures = (reading.attribute, task.attribute), [(one.private, use) for one, use in pairs]
    size = (width, height)
    plot = privacy_plane(names, figures, (reading.is_number, task.is_number), size)
    for one, use in pairs:
        leak = one.private
        plot.segment(f"whisker private {one.kind}", (leak.low, leak.high), (use.value, use.value))
        plot.segment(f"whisker utility {one.kind}", (leak.value, leak.value), (use.low, use.high))
    ends = {one.kind: (one.private.value, use.value) for one, use in pairs}
    if "raw" in ends and "release" in ends:
        plot.arrow(ends["raw"], ends["release"])
    by_name = len(pairs) <= (MOST_NAMES if width >= 600 else 2)
    for one, use in pairs:
        at = one.private.value, use.value
        plot.name(*at, shorten(one.label if by_name else one.key, 30), one.kind)
        figures_said = zip(names, (one.private, use), strict=True)
        lines = [one.label, *(f"{name}: {exactly(figure)}" for name, figure in figures_said)]
        with plot.spot(*at, lines):
            radius = {"release": 6, "raw": 5.5, "other": 4.5}[one.kind]
            plot.point(f"point {one.kind}", *at, radius=radius)
    return plot.svg(described(*names, pairs))


def group_axis(figures: Sequence[Figure]) -> Axis:
    """From tenth to tenth, as narrow as the figures allow: dots, unlike bars, need no zero.

    >>> axis = group_axis([Figure(0.61, 0.58, 0.64, 900, 0.5)])
    >>> axis.low, axis.high
    (0.5, 0.7)
    """
    ends = [v for f in figures if measured(f) for v in (f.low, f.high, f.chance) if is_number(v)]
    low = max(math.floor(round(min(ends, default=0.0) * 10, 6)) / 10, -0.1)
    high = math.ceil(round(max(ends, default=1.0) * 10, 6)) / 10
    high = min(max(high, low + 0.2), 1.0)
    return Axis(round(min(low, high - 0.2), 1), round(high, 1), factor=100)


def group_numbers(axis: Axis) -> Markup:
    """The numbers above a column of rows."""
    plot = Plot(axis, Axis(0, 1), None, 18, css="row", frame=Box(3, 0, 97, 18))
    for tick, number in axis.written(5):
        plot.text(plot.at(tick, 0)[0], 13, number, "tick", "middle")
    return plot.svg()


def group_row(figure: Figure, axis: Axis, overall: Figure | None = None) -> Markup:
    """One group: its value and interval, and the value over everyone as a line. As tall as its row,
    so that the lines of all rows meet."""
    plot = Plot(axis, Axis(0, 1), None, None, css="row", frame=Box(3, 0, 97, 100))
    for tick, _ in axis.written(5):
        plot.level("grid", x=tick)
    if is_number(figure.chance):
        plot.level("chance", x=figure.chance)
    if overall is not None and measured(overall):
        plot.level("overall", x=overall.value)
    if measured(figure):
        plot.segment("whisker", (figure.low, figure.high), (0.5, 0.5))
        plot.point("dot", figure.value, 0.5, f"{exactly(figure)}, n = {figure.n:,}")
    return plot.svg()


def known(groups: Sequence[Group]) -> list[Group]:
    """Groups with anything to show."""
    return [group for group in groups if measured(group.score)]


def widest(groups: Sequence[Group]) -> tuple[Group, Group] | None:
    """The groups read least and most, where their intervals do not meet: otherwise the difference
    may be chance."""
    ranked = sorted(known(groups), key=lambda group: group.score.value)
    if not ranked or ranked[0].score.high >= ranked[-1].score.low:
        return None
    return ranked[0], ranked[-1]


def risk_histogram(risk: Risk) -> Markup:
    """Share of records by how much of its probability the attacker puts on the true value."""
    total = sum(risk.counts)
    bins = [
        Bin(
            low,
            high,
            count / max(total, 1),
            f"{low * 100:.0f} to {high * 100:.0f} % sure of the true value: "
            f"{percent(count / max(total, 1))} % of records ({count:,})",
            "sure" if low >= 0.9 - 1e-9 else "",
        )
        for low, high, count in zip(risk.edges[:-1], risk.edges[1:], risk.counts, strict=False)
    ]
    if not any(one.share for one in bins):
        return Markup("")
    return histogram(bins, lambda value: f"{value * 100:.0f} %")
