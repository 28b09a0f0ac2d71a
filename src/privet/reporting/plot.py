"""Plots as inline SVG: axes, lines with intervals, bars, levels, legends, names that cover nothing.

    x = Axis(0.1, 10, "noise", scale=math.log, ticks=[0.1, 1, 10])
    plot = Plot(x, Axis(0.4, 1, "right answers, %", factor=100), 720, 400)
    plot.level("chance private", y=0.5, name="guessing")
    plot.line([Point(0.1, 0.9, "noise 0.1: 90 %", low=0.8, high=0.95), Point(...)], "s0")
    plot.name(0.1, 0.9, "Hedge")
    plot.svg("The same in words, for those who do not see it.")

A plot has no colour of its own. The page's style sheet (report.css) colours it by class, in light
and dark: `private` and `utility`, or `s0` to `s7` for one series after another. Every text is
escaped. A plot without a width is as wide as its place and its letters keep their size: all of its
places across are percentages, so it can hold bars, points and intervals, but no lines and names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.formatting import times_in_100
from privet.reporting.label_placement import (
    LETTER,
    Box,
    Name,
    beside_line,
    beside_point,
    place,
)

# Classes s0 to s7 of report.css.
COLOURS = 8
# Size of letters in pixels.
FONT = 13.0
# Circle, square, triangle, diamond, triangle, cross, pentagon: seven shapes and eight colours
# repeat together only after 56.
_SHAPES = (
    "M{r} 0A{r} {r} 0 1 1 -{r} 0A{r} {r} 0 1 1 {r} 0Z",
    "M-{a} -{a}H{a}V{a}H-{a}Z",
    "M0 -{b}L{b} {a}H-{b}Z",
    "M0 -{b}L{b} 0L0 {b}L-{b} 0Z",
    "M0 {b}L{b} -{a}H-{b}Z",
    "M-{b} -{c}H-{c}V-{b}H{c}V-{c}H{b}V{c}H{c}V{b}H-{c}V{c}H-{b}Z",
    "M0 -{b}L{b} -{c}L{a} {b}H-{a}L-{b} -{c}Z",
)


def element(tag: str, *inside: Markup | str, **attributes: object) -> Markup:
    """An element of SVG. `css` is its class, `x_y` the attribute x-y; None leaves one out.

    >>> element("text", "a < b", css="tick", text_anchor="end")
    Markup('<text class="tick" text-anchor="end">a &lt; b</text>')
    """
    written = [
        Markup(' {}="{}"').format("class" if name == "css" else name.replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None
    ]
    return Markup("<{0}{1}>{2}</{0}>").format(
        tag, Markup("").join(written), Markup("").join(inside)
    )


def shape(number: int, radius: float) -> str:
    """The outline of the mark of one series among many, around 0 0."""
    sizes = {"r": radius, "a": radius * 0.88, "b": radius * 1.15, "c": radius * 0.4}
    outline = _SHAPES[number % len(_SHAPES)]
    return outline.format(**{name: round(size, 2) for name, size in sizes.items()})


def round_numbers(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between low and high, `most` of them or one or two more.

    >>> round_numbers(0, 13, 5), round_numbers(95, 131, 5), round_numbers(0.45, 0.72)
    ([0, 5, 10], [100, 110, 120, 130], [0.45, 0.5, 0.55, 0.6, 0.65, 0.7])
    """
    rough = max(high - low, 1e-9) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough - 1e-12)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Axis:
    """From a value to its share of the way along the axis.

    >>> Axis(0, 10).share(2.5), Axis(0, 10, reverse=True).share(2.5)
    (0.25, 0.75)
    >>> Axis(1, 100, scale=math.log).share(10)
    0.5

    Parameters:
        low, high: The ends; values beyond are drawn at the edge.
        title, hint: What the axis shows, and below it which way is better; `css` is their class.
        reverse: Whether small values are on top or on the right; of figures, never across.
        scale: `math.log` for a logarithmic axis.
        factor: What a value is multiplied with when it is written: 100 for per cent.
        ticks: Where numbers stand, as far as they do not touch; None: at round numbers.
    """

    low: float
    high: float
    title: str = ""
    css: str = ""
    hint: str = ""
    reverse: bool = False
    scale: Callable[[float], float] = float
    factor: float = 1.0
    ticks: Sequence[float] | None = None

    def share(self, value: float) -> float:
        low, high = self.scale(self.low), self.scale(self.high)
        part = (self.scale(min(max(value, self.low), self.high)) - low) / ((high - low) or 1.0)
        return 1 - part if self.reverse else part

    def written(self, most: int) -> list[tuple[float, str]]:
        """Where numbers stand, in the order of the axis, and the numbers."""
        ticks = round_numbers(self.low, self.high, most) if self.ticks is None else self.ticks
        return [(tick, _short(tick * self.factor)) for tick in sorted(ticks, key=self.share)]


def _short(value: float) -> str:
    """Three digits; thousands in full.

    >>> _short(0.1234), _short(12345.0)
    ('0.123', '12,345')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


class Point(NamedTuple):
    """A point of a line, what is shown when it is pointed at, and the interval of its y."""

    x: float
    y: float
    title: str = ""
    low: float | None = None
    high: float | None = None
    hollow: bool = False


class Plot:
    """A picture that is being drawn; what is drawn later lies above, and names above all of it.

    Parameters:
        x, y: The axes; `axes` draws them.
        width, height: In pixels of a picture that scales; None: as wide, or as tall, as its place.
        css: The picture's class.
        frame: Where the axes are; in percent along a side that has no length.
        names: Pixels kept free on the right for names.
        legend: Below the picture: names, classes and dashes of lines.
    """

    def __init__(
        self,
        x: Axis,
        y: Axis,
        width: float | None = 720,
        height: float | None = 400,
        *,
        css: str = "plane",
        frame: Box | None = None,
        names: float = 0,
        legend: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        self.x, self.y, self.width, self.height, self.css = x, y, width, height, css
        below = (62 if x.hint else 44) + 18 * ((len(legend) + 1) // 2)
        right, bottom = (width or 100) - 20 - names, (height or 100) - below
        self.frame = frame or Box(54, 46 if y.hint else 30, right, bottom)
        self.parts: list[Markup] = []
        self.spots: list[Markup] = []
        self.names: list[tuple[Name, str]] = []
        self.taken: list[Box] = []
        for number, (name, colour, dash) in enumerate(legend):
            left = self.frame.left + (number % 2) * (self.frame.right - self.frame.left) / 2
            down = self.frame.bottom + (74 if x.hint else 56) + 18 * (number // 2)
            sample = f"M{left:g} {down - 4:g}h34"
            self.add("path", css=f"curve {colour}", d=sample, stroke_dasharray=dash)
            self.text(left + 42, down, name, "tick")

    def add(self, tag: str, *inside: Markup | str, **attributes: object) -> None:
        """Any element of SVG."""
        self.parts.append(element(tag, *inside, **attributes))

    @contextmanager
    def group(self, **attributes: object) -> Iterator[None]:
        """What is drawn inside shares these attributes."""
        before, self.parts = self.parts, []
        yield
        self.parts = [*before, element("g", *self.parts, **attributes)]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of two values in the picture."""
        left, top, right, bottom = self.frame
        across, up = self.x.share(x) * (right - left), self.y.share(y) * (bottom - top)
        return round(left + across, 2), round(bottom - up, 2)

    def _units(self, x: float, y: float) -> tuple[str, str]:
        return f"{x:g}{'%' * (self.width is None)}", f"{y:g}{'%' * (self.height is None)}"

    def text(self, x: float, y: float, words: str, css: str, anchor: str = "start") -> None:
        """Words at a place of the picture, not at values."""
        left, base = self._units(x, y)
        self.add("text", words, css=css, x=left, y=base, text_anchor=anchor)

    def axes(self, most: int = 8) -> None:
        """Both axes: grid, numbers, titles and hints."""
        left, _, right, bottom = self.frame
        across, up = (self.x.low, self.x.high), (self.y.low, self.y.high)
        last = -math.inf
        for tick, number in self.x.written(most):
            at, half = self.at(tick, self.y.low)[0], LETTER * FONT * (len(number) + 1) / 2
            if at - half > last:
                self.segment("grid", (tick, tick), up, free=True)
                self.text(at, bottom + 18, number, "tick", "middle")
                last = at + half
        for tick, number in self.y.written(most):
            self.segment("grid", across, (tick, tick), free=True)
            self.text(left - 14, self.at(self.x.low, tick)[1] + 4, number, "tick", "end")
        self.text(2, 14, self.y.title, f"axis {self.y.css}")
        self.text(2, 33, self.y.hint, f"way {self.y.css}")
        self.text(right, bottom + 37, self.x.title, f"axis {self.x.css}", "end")
        # A hint to the left stands on the left, and below the title where both do not fit.
        letters = LETTER * FONT * (len(self.x.hint) + len(self.x.title) + 4)
        beside = self.x.hint.startswith("\u2190")
        end, anchor = (left, "start") if beside else (right, "end")
        base = bottom + (37 if beside and letters < right - left else 56)
        self.text(end, base, self.x.hint, f"way {self.x.css}", anchor)

    def level(
        self, css: str, *, x: float | None = None, y: float | None = None, name: str = ""
    ) -> None:
        """A value to compare with, as a line through the whole frame."""
        across = (self.x.low, self.x.high) if x is None else (x, x)
        up = (self.y.low, self.y.high) if y is None else (y, y)
        box = self.segment(css, across, up)
        if name:
            self.names.append((beside_line(name, box, FONT), f"note {css.partition(' ')[2]}"))

    def segment(
        self, css: str, x: tuple[float, float], y: tuple[float, float], free: bool = False
    ) -> Box:
        """A straight line between two points: with the class `whisker`, an interval. Names keep
        off it, unless it is `free`."""
        start, end = self.at(x[0], y[0]), self.at(x[1], y[1])
        (x1, y1), (x2, y2) = self._units(*start), self._units(*end)
        self.add("line", css=css, x1=x1, x2=x2, y1=y1, y2=y2)
        if not free:
            self._take(start, end)
        return Box(*map(min, start, end), *map(max, start, end))

    def _take(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Names keep off a line: small boxes along it."""
        steps = max(int(math.dist(start, end) / 8), 1)
        for i in range(steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end, strict=True))
            self.taken.append(Box(x - 4, y - 3, x + 4, y + 3))

    def bar(
        self,
        css: str,
        x: tuple[float, float],
        y: tuple[float, float],
        title: str = "",
        **more: object,
    ) -> None:
        """A rectangle between two values of x and two of y."""
        (left, right), (top, bottom) = map(sorted, zip(*map(self.at, x, y), strict=True))
        place, size = self._units(left, top), self._units(right - left, bottom - top)
        sizes = dict(zip(("x", "y", "width", "height"), (*place, *size), strict=True))
        self.add("rect", *_title(title), css=css, **sizes, **more)

    def point(
        self, css: str, x: float, y: float, title: str = "", radius: float = 4.5, outline: str = ""
    ) -> None:
        """A dot, or a mark with an `outline` of `shape`."""
        across, down = self.at(x, y)
        self.taken.append(Box(across - 7, down - 7, across + 7, down + 7))
        if outline:
            moved = f"translate({across:g} {down:g})"
            self.add("path", *_title(title), css=css, transform=moved, d=outline)
        else:
            cx, cy = self._units(across, down)
            self.add("circle", *_title(title), css=css, cx=cx, cy=cy, r=radius)

    def path(
        self, css: str, places: Sequence[tuple[float, float]], dash: str | None = None
    ) -> None:
        """A line through values."""
        spots = [self.at(x, y) for x, y in places]
        for start, end in pairwise(spots):
            self._take(start, end)
        outline = "M" + "L".join(f"{x:g} {y:g}" for x, y in spots)
        self.add("path", css=css, d=outline, stroke_dasharray=dash)

    def line(
        self,
        points: Sequence[Point],
        css: str,
        *,
        dash: str | None = None,
        outline: str = "",
        radius: float = 4.5,
        shift: float = 0,
        opacity: float | None = None,
    ) -> None:
        """A series: a line through its points, their intervals, and the points.

        A hollow point is no part of the line. `shift` moves the series by some pixels, so that the
        intervals of several at the same x do not cover each other.
        """
        with self.group(css=css, transform=f"translate({shift:g} 0)", opacity=opacity):
            self.path("curve", [(p.x, p.y) for p in points if not p.hollow], dash)
            for x, y, title, low, high, hollow in points:
                if low is not None and high is not None and low < high:
                    self.segment("whisker", (x, x), (low, high))
                self.point("ring" if hollow else "dot", x, y, title, radius, outline)

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin arrow that stops short of both points; nothing where they lie on each other."""
        (x1, y1), (x2, y2) = self.at(*start), self.at(*end)
        length, turned = math.hypot(x2 - x1, y2 - y1), math.degrees(math.atan2(y2 - y1, x2 - x1))
        if length > 34:
            with self.group(transform=f"translate({x1:g} {y1:g}) rotate({turned:.2f})"):
                self.add("path", css="shaft", d=f"M11 0H{length - 21:.1f}")
                self.add("path", css="head", d=f"M{length - 12:.1f} 0l-9 -4.5v9Z")
            self._take((x1, y1), (x2, y2))

    @contextmanager
    def spot(
        self, x: float, y: float, lines: Sequence[str], link: str | None = None
    ) -> Iterator[None]:
        """The mark drawn inside says `lines` when it is pointed at or reached with the keyboard.

        With a link, the page's script shows them (frontier.js); without, no script is needed.
        """
        across, down = self.at(x, y)
        before, self.parts = self.parts, []
        self.add("circle", css="near", cx=across, cy=down, r=14)
        yield
        known: dict[str, object] = {"css": "spot", "aria_label": "; ".join(lines[:4])}
        if link is None:
            self._tip(across, down, lines)
            self.spots.append(element("g", *self.parts, **known, tabindex=0, role="img"))
        else:
            known |= {"href": link, "data_tip": "\n".join(lines)}
            self.spots.append(element("a", *self.parts, **known))
        self.parts = before

    def _tip(self, x: float, y: float, lines: Sequence[str]) -> None:
        """Lines above a point, or below it near the top, that stay inside the frame."""
        left, top, right, _ = self.frame
        half = LETTER * FONT * max(map(len, lines)) / 2
        middle = min(max(x, left + half), max(right - half, left + half))
        base = y - 18 * len(lines) if y - 18 * len(lines) > top - 30 else y + 32
        with self.group(css="tip", aria_hidden="true"):
            for number, line in enumerate(lines):
                self.text(round(middle, 1), base + 18 * number, line, "tip", "middle")

    def name(self, x: float, y: float, text: str, css: str = "") -> None:
        """A name near a point; where exactly is decided when everything is drawn."""
        self.names.append((beside_point(text, *self.at(x, y), FONT), f"name {css}"))

    def svg(self, description: str = "") -> Markup:
        """The picture; `description` is the same in words. Without one, screen readers pass it
        by, because its numbers stand beside it as text."""
        frame = self.frame._replace(right=self.width or 100.0)
        places = place([name for name, _ in self.names], self.taken, frame, FONT)
        for (name, css), at in zip(self.names, places, strict=True):
            self.text(round(at.x, 1), round(at.y, 1), name.text, css, at.anchor)
        size: dict[str, object] = {"width": "100%", "height": self.height or "100%"}
        if self.width is not None:
            size = {"viewBox": f"0 0 {self.width:g} {self.height:g}"}
        reading = {"role": "group" if self.spots else "img", "aria_label": description}
        said = reading if description else {"aria_hidden": "true"}
        return element("svg", *self.parts, *self.spots, css=self.css, **size, **said)


def _title(text: str) -> list[Markup]:
    return [element("title", text)] if text else []


class Bin(NamedTuple):
    """A bar of a histogram: its ends, how tall it is as a share of all, and what it says."""

    low: float
    high: float
    share: float
    title: str
    css: str = ""


def histogram(bins: Sequence[Bin], number: Callable[[float], str]) -> Markup:
    """Bars of shares in per cent, as wide as their place; `number` writes both ends and the middle
    below."""
    axis, most = Axis(bins[0].low, bins[-1].high), max(one.share for one in bins)
    frame = Box(2, 24, 98, 154)
    plot = Plot(axis, Axis(0, most), None, 178, css="histogram private", frame=frame)
    for low, high, share, title, css in bins:
        plot.bar(f"bin {css}", (low, high), (0, share), title)
        across, top = plot.at((low + high) / 2, share)
        words = times_in_100(share).replace("under ", "<").replace("over ", ">")
        plot.text(across, top - 6, words, "tick", "middle")
    plot.level("floor", y=0)
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        value = axis.low + part * (axis.high - axis.low)
        plot.text(plot.at(value, 0)[0], 171, number(value), "tick", anchor)
    return plot.svg("; ".join(one.title for one in bins))
