"""The audit of language models as one page: what each remembers against how well it predicts, and
the curves behind it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.language.model_audit.exposure import BY_CHANCE
from privet.language.model_audit.findings import ModelFindings
from privet.language.model_audit.verdict import LanguageAudit, memory_word, with_interval
from privet.reporting.page import jinja
from privet.reporting.plot import Axis, Plot, Point

# Of lines and points, by regulariser, in language.html.
COLOURS = {"none": 6, "adversarial": 1, "triplet": 2, "dp": 3, "reference": 0}


class Line(NamedTuple):
    """One line of a plot.

    Parameters:
        regularizer: Which gives the line its colour.
        points: What it goes through.
        opacity: Strengths of one regulariser have one colour, and differ in this.
        named: Whether the names of models are written beside the points.
    """

    regularizer: str
    points: list[Point]
    opacity: float = 1.0
    named: bool = False


def render(audit: LanguageAudit) -> str:
    """The page. It holds planted sentences and numbers, and nothing that an author wrote."""
    models = audit.models
    panels = {
        "Perplexity of unseen texts against mean exposure of planted sentences": _perplexity(
            models
        ),
        "Exposure by how often a sentence was planted": _repeats(models),
        "Tab attack: private words finished, by the number of tries": _tab(models),
    }
    groups = dict.fromkeys((group.by, group.value) for model in models for group in model.groups)
    used = (*dict.fromkeys(map(_regularizer, models)), "reference")
    return (
        jinja()
        .get_template("language.html")
        .render(
            audit=audit,
            panels=[(title, plot) for title, plot in panels.items() if plot],
            key=[(name, COLOURS[name]) for name in used],
            groups=list(groups),
            colour=lambda model: COLOURS[_regularizer(model)],
            with_interval=with_interval,
            memory_word=memory_word,
            by_chance=f"{BY_CHANCE:.2f}",
        )
    )


def _regularizer(model: ModelFindings) -> str:
    return re.split("[:,]", model.name)[0]


def _point(name: str, x: float, figure: Figure, factor: float = 1.0) -> Point:
    value, low, high = (factor * v for v in (figure.value, figure.low, figure.high))
    ends = f" ({low:.3g} to {high:.3g})" if figure.interval else ""
    return Point(x, figure.value, f"{name}, {x:.4g}: {value:.3g}{ends}", figure.low, figure.high)


def _lines(
    models: Sequence[ModelFindings], points: Callable[[ModelFindings], list[Point]]
) -> list[Line]:
    """A line for each model."""
    lines = []
    for model in models:
        regularizer = _regularizer(model)
        strengths = [one.name for one in models if _regularizer(one) == regularizer]
        opacity = round(1 - 0.6 * strengths.index(model.name) / len(strengths), 2)
        lines.append(Line(regularizer, points(model), opacity))
    return lines


def _perplexity(models: Sequence[ModelFindings]) -> Markup:
    """A line for each regulariser, a point for each of its strengths."""
    lines: dict[str, Line] = {}
    for model in sorted(models, key=lambda one: one.perplexity.value):
        if model.exposure is not None:
            line = lines.setdefault(_regularizer(model), Line(_regularizer(model), [], named=True))
            line.points.append(_point(model.name, model.perplexity.value, model.exposure))
    better = ("\u2190 predicts better", "\u2193 remembers less")
    named = list(lines.values())
    return chart(named, "perplexity", "exposure, bits", chance=BY_CHANCE, better=better)


def _repeats(models: Sequence[ModelFindings]) -> Markup:
    def points(model: ModelFindings) -> list[Point]:
        return [_point(model.name, repeats, one) for repeats, one in model.by_repeats.items()]

    title = "exposure, bits"
    better = ("", "\u2193 remembers less")
    lines = _lines(models, points)
    return chart(lines, "times planted", title, counts=True, chance=BY_CHANCE, better=better)


def _tab(models: Sequence[ModelFindings]) -> Markup:
    def points(model: ModelFindings) -> list[Point]:
        figures = zip(model.tries, model.tab, strict=False)
        return [_point(model.name, tries, figure, 100) for tries, figure in figures]

    chances = [(k, one.chance) for k, one in zip(models[0].tries, models[0].tab, strict=False)]
    reference = [Point(k, chance, f"reference, {k}: {100 * chance:.3g}") for k, chance in chances]
    lines = [*_lines(models, points), Line("reference", reference)]
    better = ("", "\u2193 gives less away")
    return chart(lines, "tries", "words finished, %", counts=True, factor=100, better=better)


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
    chance: float = 0.0,
    better: tuple[str, str] = ("", ""),
) -> Markup:
    """Lines with their intervals; `counts` across are drawn on a logarithmic axis; `better` says
    for both axes which way is."""
    lines = [line for line in lines if line.points]
    points = [point for line in lines for point in line.points]
    if not points:
        return Markup("")
    places = sorted({point.x for point in points})
    ticks, scale = (places, counts_scale) if counts else (None, float)
    x = Axis(places[0], places[-1], across, hint=better[0], scale=scale, ticks=ticks)
    most = max([chance, *(max(point.y, point.high or 0.0) for point in points)])
    y = Axis(0, most or 1.0, up, hint=better[1], factor=factor)
    plot = Plot(x, y, 440, 340)
    plot.axes(5)
    if chance:
        plot.level("chance", y=chance)
    for number, line in enumerate(lines):
        shift = 3 * (number - (len(lines) - 1) / 2) if counts else 0.0
        _draw(plot, line, shift)
    return plot.svg(f"{up} by {across}. {'; '.join(point.title for point in points)}")


def _draw(plot: Plot, line: Line, shift: float) -> None:
    css = f"way{COLOURS[line.regularizer]}"
    plot.line(line.points, css, radius=4, shift=shift, opacity=line.opacity)
    for point in line.points if line.named else ():
        plot.name(point.x, point.y, point.title.partition(",")[0], css)
