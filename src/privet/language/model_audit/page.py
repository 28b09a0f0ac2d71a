"""The audit of language models as one page: what each remembers against how well it predicts, and
the curves behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.language.model_audit.exposure import BY_CHANCE
from privet.language.model_audit.findings import Reading
from privet.language.model_audit.verdict import LanguageAudit
from privet.reporting.label_placement import Box, place
from privet.reporting.page import jinja

COLOURS = {"none": 6, "adversarial": 1, "triplet": 2, "dp": 3, "reference": 0}
"""Of lines and points, by regulariser, in language.html."""
WIDTH, HEIGHT = 440, 340


class Spot(NamedTuple):
    x: float
    figure: Figure
    label: str = ""
    """Written beside it, in a picture of points."""


class Line(NamedTuple):
    name: str
    colour: int
    faint: float
    """Opacity: strengths of one regulariser have one colour."""
    spots: list[Spot]
    joined: bool = True


class Axis(NamedTuple):
    title: str
    log: bool = False
    scale: float = 1.0
    """What a value is multiplied with when it is written."""


def render(found: LanguageAudit) -> str:
    """The page. It holds planted sentences and numbers, and nothing that an author wrote."""
    panels = [
        (
            "Perplexity of unseen texts against mean exposure of planted sentences",
            _perplexity(found.models),
        ),
        ("Exposure by how often a sentence was planted", _repeats(found.models)),
        ("Tab attack: private words finished, by the number of tries", _tab(found.models)),
    ]
    families = list(dict.fromkeys(_family(one) for one in found.models))
    key = [(name, COLOURS[name]) for name in (*families, "reference")]
    groups = list(
        dict.fromkeys((group.by, group.value) for one in found.models for group in one.groups)
    )
    page = jinja().get_template("language.html")
    return page.render(
        found=found,
        panels=[p for p in panels if p[1]],
        key=key,
        groups=groups,
        colours=COLOURS,
        said=said,
        family=_family,
    )


def said(figure: Figure | None, kind: str = "plain") -> str:
    """A figure with its interval, as percent, or as a number.

    >>> said(Figure(0.25, 0.2, 0.312, 10, 0.1), "percent"), said(None)
    ('25.0 (20.0 to 31.2)', '-')
    """
    if figure is None or not math.isfinite(figure.value):
        return "-"
    value, low, high = (
        100 * v if kind == "percent" else v for v in (figure.value, figure.low, figure.high)
    )
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _family(reading: Reading) -> str:
    return reading.name.partition(":")[0]


def _lines(models: Sequence[Reading], spots: Callable[[Reading], list[Spot]]) -> list[Line]:
    made = []
    for one in models:
        own = [m.name for m in models if _family(m) == _family(one)]
        made.append(
            Line(
                one.name,
                COLOURS[_family(one)],
                round(1 - 0.6 * own.index(one.name) / len(own), 2),
                spots(one),
            )
        )
    return made


def _perplexity(models: Sequence[Reading]) -> Markup:
    known = [one for one in models if one.exposure is not None]
    lines = []
    for family in dict.fromkeys(_family(one) for one in known):
        own = sorted((m for m in known if _family(m) == family), key=lambda m: m.perplexity.value)
        spots = [
            Spot(m.perplexity.value, m.exposure, m.name) for m in own if m.exposure is not None
        ]
        lines.append(Line(family, COLOURS[family], 1.0, spots))
    return chart(lines, Axis("perplexity"), Axis("exposure, bits"), chance=BY_CHANCE)


def _repeats(models: Sequence[Reading]) -> Markup:
    lines = _lines(
        models, lambda one: [Spot(float(often), figure) for often, figure in one.by_repeats.items()]
    )
    return chart(lines, Axis("times planted", log=True), Axis("exposure, bits"), chance=BY_CHANCE)


def _tab(models: Sequence[Reading]) -> Markup:
    lines = _lines(
        models,
        lambda one: [Spot(float(k), figure) for k, figure in zip(one.tries, one.tab, strict=False)],
    )
    if models and models[0].tab:
        flat = [
            Spot(float(k), _as(figure.chance, figure))
            for k, figure in zip(models[0].tries, models[0].tab, strict=False)
        ]
        lines.append(Line("reference", COLOURS["reference"], 1.0, flat))
    return chart(lines, Axis("tries", log=True), Axis("words finished, %", scale=100))


def _as(value: float, like: Figure) -> Figure:
    return Figure(value, value, value, like.n, value, interval="", measure=like.measure)


def chart(lines: Sequence[Line], across: Axis, up: Axis, chance: float | None = None) -> Markup:
    """Lines with their intervals. Logarithmic axes begin at 0 where a value is 0, one step before
    1."""
    spots = [spot for line in lines for spot in line.spots]
    if not spots:
        return Markup("")
    frame = Box(48, 30, WIDTH - 16, HEIGHT - 48)

    def turn(value: float) -> float:
        return math.log2(value) + 1 if across.log and value >= 1 else value

    xs = [turn(spot.x) for spot in spots]
    left, right = min(xs), max(xs)
    margin = 0.06 * (right - left) or 1.0
    left, right = left - margin, right + margin
    low, high = 0.0, max([spot.figure.high for spot in spots] + [chance or 0.0]) or 1.0

    def at(x: float) -> float:
        return round(frame.left + (turn(x) - left) / (right - left) * (frame.right - frame.left), 1)

    def over(y: float) -> float:
        return round(
            frame.bottom
            - (min(max(y, low), high) - low) / (high - low) * (frame.bottom - frame.top),
            1,
        )

    rule = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    parts = []
    for tick in steps(low, high):
        parts += [rule("grid", frame.left, frame.right, over(tick), over(tick))]
        parts.append(text("tick", frame.left - 8, over(tick) + 4, "end", f"{tick * up.scale:g}"))
    marks = (
        sorted({spot.x for spot in spots})
        if across.log
        else [t for t in steps(left, right) if left <= t <= right]
    )
    parts += [
        text("tick", at(mark), frame.bottom + 18, "middle", f"{mark * across.scale:g}")
        for mark in marks
    ]
    if chance is not None:
        parts.append(rule("chance", frame.left, frame.right, over(chance), over(chance)))
    for number, line in enumerate(lines):
        # At the same few places, intervals would cover each other.
        aside = 3 * (number - (len(lines) - 1) / 2) if across.log else 0.0
        parts.append(_drawn(line, lambda x, aside=aside: round(at(x) + aside, 1), over, across, up))  # type: ignore[misc]
    named = [(at(s.x), over(s.figure.value), s.label) for s in spots if s.label]
    parts += [
        text("tick", one.x, one.y, one.anchor, one.text) for one in place(named, [], frame, 12, 7)
    ]
    parts.append(text("axis", 2, 14, "start", up.title))
    parts.append(text("axis", frame.right, HEIGHT - 8, "end", across.title))
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    told = "; ".join(
        f"{line.name}: "
        + ", ".join(f"{s.x:g} gives {s.figure.value * up.scale:.3g}" for s in line.spots)
        for line in lines
    )
    return whole.format(
        WIDTH, HEIGHT, f"{up.title} by {across.title}. {told}", Markup("").join(parts)
    )


def _drawn(
    line: Line, at: Callable[[float], float], over: Callable[[float], float], across: Axis, up: Axis
) -> Markup:
    parts = []
    if line.joined and len(line.spots) > 1:
        path = "M" + "L".join(f"{at(s.x)} {over(s.figure.value)}" for s in line.spots)
        parts.append(Markup('<path class="curve" d="{}"/>').format(path))
    for spot in line.spots:
        figure = spot.figure
        if figure.low < figure.high:
            whisker = Markup('<line class="whisker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format
            parts.append(whisker(at(spot.x), over(figure.low), over(figure.high)))
        words = f"{spot.label or line.name}, {across.title} {spot.x:.4g}: {up.title} {figure.value * up.scale:.3g}"
        words += (
            f" ({figure.low * up.scale:.3g} to {figure.high * up.scale:.3g})"
            if figure.interval
            else ""
        )
        dot = Markup(
            '<circle class="dot" cx="{}" cy="{}" r="3.5"><title>{}</title></circle>'
        ).format
        parts.append(dot(at(spot.x), over(figure.value), words))
    return Markup('<g class="way{}" opacity="{}">{}</g>').format(
        line.colour, line.faint, Markup("").join(parts)
    )


def steps(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between low and high.

    >>> steps(0, 13), steps(95, 131)
    ([0, 5, 10], [100, 110, 120, 130])
    """
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough - 1e-12)
    return [
        round(k * step, 10)
        for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]
