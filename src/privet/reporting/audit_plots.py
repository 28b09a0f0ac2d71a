"""The plots of an audit: one figure on a line, privacy against utility, groups of people, records.

In a plot of privacy against utility what attackers read grows to the right and what tasks reach
upwards, so the best corner is the top left one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from privet.evidence.figures import Audit, Figure, Group, Reading, Risk
from privet.evidence.formatting import between, is_number, measured, percent
from privet.reporting import sentences
from privet.reporting.label_placement import Box, shorten
from privet.reporting.plot import Axis, Bin, Plot, Point, histogram, round_numbers

Kind = Literal["release", "raw", "other"]

# Points that can be named in a wide picture; more, or less room, and they are numbered.
MOST_NAMES = 6


@dataclass(frozen=True)
class Alternative:
    """One way to hand out the data: how private, and how useful.

    Parameters:
        label, kind: Its name, and whether it is the release, the raw data or another release.
        private, utility: What the worst attacker reads, and what a task model reaches.
        key: What stands in the picture where the label would not fit: a number that the table
            below explains.
        is_number: Whether the private attribute is a number, so that variance is counted.
    """

    label: str
    kind: Kind
    private: Figure
    utility: Figure | None
    key: str
    is_number: bool


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
        leak, use = _figure(one.private, private, kind), _figure(one.utility, utility, kind)
        if leak is not None and (use is not None or utility is None):
            numbers = {reading.attribute for reading in one.private if reading.is_number}
            made.append(Alternative(name, kind, leak, use, key, private in numbers))
    return made


def _figure(readings: Iterable[Reading], name: str | None, kind: Kind) -> Figure | None:
    """What was measured of one attribute, on the raw data or on the release."""
    for reading in readings:
        if reading.attribute == name and (reading.raw if kind == "raw" else reading.released):
            figure = (reading.reference if kind == "raw" else reading.headline).score
            return figure if measured(figure) else None
    return None


def axis_start(chance: float, values: Iterable[float]) -> float:
    """Lower end of a scale: a little below chance, so that chance is a place and not an edge.

    Guessing explains no variance; how far below none a bad model falls is nothing to draw, so there
    the scale is fixed.
    """
    if not is_number(chance) or chance <= 0:
        return -0.12
    return max(0.0, min([chance, *filter(is_number, values)]) - 0.12 * (1 - chance))


def score_axis(
    figures: Sequence[Figure],
    bounds: Iterable[float] = (),
    title: str = "",
    css: str = "",
    hint: str = "",
) -> Axis:
    """From a little below chance to a little above the highest: most releases lie far from 1."""
    ends = [*(end for figure in figures for end in (figure.low, figure.high)), *bounds]
    chance = figures[0].chance
    high = min(1.0, max([chance + 0.2, *ends]) + 0.02)
    low = axis_start(chance, ends)
    ticks = round_numbers(max(low, 0.0), high)
    return Axis(low, high, title, css, hint, factor=100, ticks=ticks)


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
    css = f"gauge {role}{' quiet' if quiet else ''}"
    plot = Plot(Axis(low, 1), Axis(-11, 11), None, 22, css=css, frame=Box(0.5, 0, 99.5, 22))
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


def privacy_plane(
    names: tuple[str, str],
    figures: Sequence[tuple[Figure, Figure]],
    are_numbers: tuple[bool, bool],
    size: tuple[int, int],
    bounds: Iterable[float] = (),
) -> Plot:
    """Axes for a private attribute and a task (their `names`): the worst attacker across, the model
    up, as far as the figures and `bounds` reach."""
    titles = [
        f"{who} {shorten(name, size[0] // 7 - 38)}: "
        f"{'% of variance explained' if number else 'balanced accuracy, %'}"
        for who, name, number in zip(
            ("Worst attacker on", "Model for"), names, are_numbers, strict=True
        )
    ]
    leaks, uses = zip(*figures, strict=True)
    x = score_axis(leaks, bounds, titles[0], "private", "\u2190 more private")
    y = score_axis(uses, (), titles[1], "utility", "\u2191 more useful")
    plot = Plot(x, y, *size)
    leak, use = leaks[0].chance, uses[0].chance
    plot.bar("beyond private", (x.low, leak), (y.low, y.high))
    plot.bar("beyond utility", (x.low, x.high), (y.low, use))
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
    pairs = [(one, one.private, one.utility) for one in shown if one.utility is not None]
    names, numbers = (reading.attribute, task.attribute), (reading.is_number, task.is_number)
    figures = [(leak, use) for _, leak, use in pairs]
    plot = privacy_plane(names, figures, numbers, (width, height))
    for one, leak, use in pairs:
        plot.segment(f"whisker private {one.kind}", (leak.low, leak.high), (use.value, use.value))
        plot.segment(f"whisker utility {one.kind}", (leak.value, leak.value), (use.low, use.high))
    ends = {one.kind: (leak.value, use.value) for one, leak, use in pairs}
    if "raw" in ends and "release" in ends:
        plot.arrow(ends["raw"], ends["release"])
    by_name = len(pairs) <= (MOST_NAMES if width >= 600 else 2)
    said = []
    for one, leak, use in pairs:
        at = leak.value, use.value
        lines = [one.label, f"{names[0]}: {exactly(leak)}", f"{names[1]}: {exactly(use)}"]
        plot.name(*at, shorten(one.label if by_name else one.key, 30), one.kind)
        with plot.spot(*at, lines):
            plot.point(f"point {one.kind}", *at, radius=4.5 if one.kind == "other" else 6)
        said.append(f"{lines[0]}: {lines[1]}, {lines[2]}")
    return plot.svg(f"Privacy and utility, worst attacker and model in %. {'; '.join(said)}.")


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
    bins = []
    for low, high, count in zip(risk.edges, risk.edges[1:], risk.counts, strict=False):
        share = count / max(sum(risk.counts), 1)
        said = f"{low * 100:.0f} to {high * 100:.0f} % sure of the true value"
        title = f"{said}: {percent(share)} % of records ({count:,})"
        bins.append(Bin(low, high, share, title, "sure" if low >= 0.9 - 1e-9 else ""))
    if not any(one.share for one in bins):
        return Markup("")
    return histogram(bins, lambda value: f"{value * 100:.0f} %")


def curve_plot(reading: Reading, width: int = 560, height: int = 240) -> Markup:
    """Records learned from across, what was read up: does the strongest still gain?"""
    points = [point for point in reading.curve if measured(point.score)]
    counts = [point.records for point in points]
    y = score_axis([point.score for point in points], title="read, %")
    x = Axis(counts[0], counts[-1], "records learned from", scale=math.log, ticks=counts)
    plot = Plot(x, y, width, height)
    plot.axes(5)
    plot.level("chance", y=points[0].score.chance, name="guessing")
    marks = [
        Point(
            p.records,
            p.score.value,
            f"{p.records:,}: {exactly(p.score)}",
            p.score.low,
            p.score.high,
        )
        for p in points
    ]
    plot.line(marks, reading.role)
    return plot.svg("; ".join(mark.title for mark in marks))
