"""The audit of language models as one page: what each remembers against how well it predicts, and
the curves behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.language.model_audit.exposure import BY_CHANCE
from privet.language.model_audit.findings import ModelFindings
from privet.language.model_audit.verdict import LanguageAudit, with_interval
from privet.reporting.page import jinja
from privet.reporting.plot import Axis, Plot, Point

# Of lines and points, by regulariser, in language.html.
COLOURS = {"none": 6, "adversarial": 1, "triplet": 2, "dp": 3, "reference": 0}


class Line(NamedTuple):
    """One line of a plot."""

    name: str
    colour: int
    points: list[Point]
    opacity: float = 1.0
    """Strengths of one regulariser have one colour."""
    names: Sequence[str] = ()
    """Written beside the points, where there are any."""


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
        said=with_interval,
        family=_family,
    )


def _family(reading: ModelFindings) -> str:
    return reading.name.partition(":")[0]


def _point(name: str, x: float, figure: Figure, factor: float = 1.0) -> Point:
    value, low, high = (factor * v for v in (figure.value, figure.low, figure.high))
    ends = f" ({low:.3g} to {high:.3g})" if figure.interval else ""
    return Point(x, figure.value, f"{name}, {x:.4g}: {value:.3g}{ends}", figure.low, figure.high)


def _lines(
    models: Sequence[ModelFindings], points: Callable[[ModelFindings], list[Point]]
) -> list[Line]:
    lines = []
    for one in models:
        strengths = [m.name for m in models if _family(m) == _family(one)]
        opacity = round(1 - 0.6 * strengths.index(one.name) / len(strengths), 2)
        lines.append(Line(one.name, COLOURS[_family(one)], points(one), opacity))
    return lines


def _perplexity(models: Sequence[ModelFindings]) -> Markup:
    lines = []
    for family in dict.fromkeys(_family(one) for one in models):
        shown = sorted(
            ((m.perplexity.value, m.name, m.exposure) for m in models if _family(m) == family),
            key=lambda one: one[0],
        )
        known = [(x, name, exposure) for x, name, exposure in shown if exposure is not None]
        points = [_point(name, x, exposure) for x, name, exposure in known]
        lines.append(Line(family, COLOURS[family], points, names=[name for _, name, _ in known]))
    return chart(lines, "perplexity", "exposure, bits", chance=BY_CHANCE)


def _repeats(models: Sequence[ModelFindings]) -> Markup:
    def points(one: ModelFindings) -> list[Point]:
        return [_point(one.name, often, figure) for often, figure in one.by_repeats.items()]

    title = "exposure, bits"
    return chart(_lines(models, points), "times planted", title, counts=True, chance=BY_CHANCE)


def _tab(models: Sequence[ModelFindings]) -> Markup:
    def points(one: ModelFindings) -> list[Point]:
        figures = zip(one.tries, one.tab, strict=False)
        return [_point(one.name, tries, figure, 100) for tries, figure in figures]

    lines = _lines(models, points)
    if models and models[0].tab:
        chances = zip(models[0].tries, models[0].tab, strict=False)
        flat = [Point(k, f.chance, f"reference, {k}: {100 * f.chance:.3g}") for k, f in chances]
        lines.append(Line("reference", COLOURS["reference"], flat))
    return chart(lines, "tries", "words finished, %", counts=True, factor=100)


def counts_scale(value: float) -> float:
    """Logarithmic for counts: 0 is one step before 1, as 1 is before 2."""
    return math.log2(value) + 1 if value >= 1 else value


def chart(
    lines: Sequence[Line],
    across: str,
    up: str,
    *,
    counts: bool = False,
    factor: float = 1.0,
    chance: float | None = None,
) -> Markup:
    """Lines with their intervals; `counts` across are drawn on a logarithmic axis."""
    points = [point for line in lines for point in line.points]
    if not points:
        return Markup("")
    places = sorted({point.x for point in points})
    ticks, scale = (places, counts_scale) if counts else (None, float)
    x = Axis(places[0], places[-1], across, scale=scale, ticks=ticks)
    most = max([*(p.y if p.high is None else p.high for p in points), chance or 0.0])
    plot = Plot(x, Axis(0, most or 1.0, up, factor=factor), 440, 340)
    plot.axes(5)
    if chance is not None:
        plot.level("chance", y=chance)
    for number, line in enumerate(lines):
        shift = 3 * (number - (len(lines) - 1) / 2) if counts else 0.0
        css = f"way{line.colour}"
        plot.line(line.points, css, radius=4, shift=shift, opacity=line.opacity)
        for name, point in zip(line.names, line.points, strict=False):
            plot.name(point.x, point.y, name, css)
    return plot.svg(f"{up} by {across}. {'; '.join(point.title for point in points)}")
