"""The plots of a comparison: privacy against utility with a mark per variant and budget, and what
every figure does over the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import measured, percent
from privet.reporting.audit_plots import exactly, privacy_plane, score_axis
from privet.reporting.label_placement import shorten
from privet.reporting.plot import COLOURS, Axis, Plot, Point, element, shape
from privet.studies.groups import Group, by_variant, mean_figure
from privet.studies.results_table import Row
from privet.studies.study import Question

# Points that can carry their budget in the picture; of more, those on the front carry their name.
MOST_NAMES = 12
# Of the front of more points, so many carry their name.
MOST_OF_FRONT = 5
# Methods whose curves are drawn: beyond that the pictures say less than the tables.
MOST_METHODS = 3
# Budgets further apart than this factor stand on a logarithmic axis.
LOGARITHMIC = 10.0
_GAPS = {
    "demographic_parity_difference": "demographic parity gap",
    "equalized_odds_difference": "equalised odds gap",
}


class Style(NamedTuple):
    """How a variant is drawn: its label, and its number among all variants."""

    label: str
    number: int

    @property
    def colour(self) -> str:
        return f"s{self.number % COLOURS}"


# By the variant's label.
Styles = Mapping[str, Style]


def swatch(style: Style) -> Markup:
    """The mark of a variant beside its name."""
    size = {"width": 16, "height": 16, "viewBox": "-8 -8 16 16", "aria_hidden": "true"}
    mark = element("path", css="mark", d=shape(style.number, 5.5))
    return element("svg", mark, css=f"swatch {style.colour}", **size)


def plane(
    groups: Sequence[Group],
    front: Sequence[int],
    styles: Styles,
    width: int = 760,
    height: int = 470,
) -> Markup:
    """The worst adversary across, the task up. `front` are the indices of the groups that no other
    release beats, the most private first."""
    names = groups[0].private, groups[0].utility
    figures = [(group.leak, group.use) for group in groups]
    is_number = "variance" in groups[0].leak.measure, "variance" in groups[0].use.measure
    bounds = [group.certified for group in groups if group.certified is not None]
    plot = privacy_plane(names, figures, is_number, (width, height), bounds)
    _staircase(plot, [groups[i].point for i in front], groups[0].use.chance)
    few = len(groups) <= MOST_NAMES
    step = max(1, math.ceil(len(front) / MOST_OF_FRONT))
    named = {*front[::step], *(i for i, group in enumerate(groups) if group.cell.is_raw)}
    for number, group in enumerate(groups):
        cell, at = group.cell, group.point
        style = styles.get(cell.label)
        colour = "raw" if style is None else style.colour
        with plot.group(css=colour):
            _intervals(plot, group)
        if few or number in named:
            budget = "" if cell.budget is None else f"{cell.budget:g}"
            name = budget if few and budget else f"{shorten(cell.label, 18)} {budget}".strip()
            plot.name(*at, name, colour)
        with plot.spot(*at, _tip(group), f"#c-{cell.key[:16]}"):
            outline = shape(0, 5.5) if style is None else shape(style.number, 6.2)
            plot.point(f"mark {colour}", *at, outline=outline)
    said = [f"{g.cell.variant}: {exactly(g.leak)} and {exactly(g.use)}" for g in groups]
    return plot.svg(f"Privacy and utility: {' against '.join(names)}. {'; '.join(said)}.")


def _staircase(plot: Plot, front: Sequence[tuple[float, float]], chance: float) -> None:
    """The Pareto front and what lies behind it."""
    corners, last = [], chance
    for leak, use in front:
        corners += [(leak, last), (leak, use)]
        last = use
    corners.append((plot.x.high, last))
    if front:
        plot.path("behind", [*corners, (plot.x.high, chance)])
        plot.path("front", corners)


def _intervals(plot: Plot, group: Group) -> None:
    """Intervals, seeds as dots, and the certified level as an open diamond on the same height."""
    leak, use = group.point
    plot.segment("whisker", (group.leak.low, group.leak.high), (use, use))
    plot.segment("whisker", (leak, leak), (group.use.low, group.use.high))
    for row in group.rows if len(group.rows) > 1 else ():
        one, other = row.score(group.private), row.score(group.utility)
        if one is not None and other is not None:
            plot.point("seed", one.value, other.value, radius=2.2)
    if group.certified is not None:
        plot.segment("proof", (group.certified, leak), (use, use))
        plot.point("bound", group.certified, use, outline=shape(3, 5.2))


def _tip(group: Group) -> list[str]:
    seeds = f" ({len(group.rows)} seeds)" if len(group.rows) > 1 else ""
    bound = group.certified
    return [
        group.cell.variant + seeds,
        f"{group.private}: {exactly(group.leak)}",
        f"{group.utility}: {exactly(group.use)}",
        *([] if bound is None else [f"certified at most {percent(bound, 'up')} for one record"]),
        *(f"{key} {value}" for key, value in group.cell.settings.items()),
    ]


class Curve(NamedTuple):
    """One figure over the budget: per variant, budgets and means over seeds; and of raw records."""

    title: str
    dial: str
    lines: Mapping[str, Sequence[tuple[float, Figure]]]
    raw: Figure | None


def curves(question: Question, rows: Sequence[Row]) -> list[Curve]:
    """The figures of a question; empty where no method has two budgets, or many have."""
    variants = by_variant(row for row in rows if row.answers(question.name))
    raw = next((seeds for seeds in variants if seeds[0].cell.is_raw), ())
    several = _with_several_budgets(variants)
    made = []
    for tried in several if len(several) <= MOST_METHODS else ():
        cells = [row for seeds in tried for row in seeds]
        for title in dict.fromkeys(title for row in cells for title in figures(question, row)):
            made.append(_curve(question, title, tried, raw))
    return made


def _with_several_budgets(variants: Sequence[tuple[Row, ...]]) -> list[list[tuple[Row, ...]]]:
    """The variants of each method that has several."""
    methods: dict[str, list[tuple[Row, ...]]] = {}
    for seeds in variants:
        if seeds[0].cell.budget is not None:
            methods.setdefault(seeds[0].cell.method, []).append(seeds)
    return [
        tried for tried in methods.values() if len({seeds[0].cell.budget for seeds in tried}) > 1
    ]


def _curve(
    question: Question, title: str, variants: Sequence[tuple[Row, ...]], raw: tuple[Row, ...]
) -> Curve:
    def mean(seeds: tuple[Row, ...]) -> Figure | None:
        return mean_figure(figures(question, row).get(title) for row in seeds)

    lines: dict[str, list[tuple[float, Figure]]] = {}
    for seeds in sorted(variants, key=lambda seeds: seeds[0].cell.budget or 0.0):
        if (figure := mean(seeds)) is not None:
            cell = seeds[0].cell
            lines.setdefault(cell.label, []).append((cell.budget or 0.0, figure))
    return Curve(title, variants[0][0].cell.dial, lines, mean(raw))


def figures(question: Question, row: Row) -> dict[str, Figure]:
    """What was measured of a cell, by what it is called: adversaries, tasks, fairness and
    re-identification."""
    scores = {f"{n}: worst attacker": row.score(n) for n in question.audited_private}
    scores |= {f"{n}: best model": row.score(n) for n in question.audited_utility}
    if row.audit is not None:
        for one in row.audit.fairness:
            for key, gap in _GAPS.items():
                scores[f"{one.task}: {gap} by {one.by}"] = one.released.get(key)
        for people in row.audit.people:
            if people.attack == "re-identification":
                scores["People found again among the first 5"] = people.figures.get("top_5")
    return {title: f for title, f in scores.items() if f is not None and measured(f)}


def curve_plot(curve: Curve, styles: Styles, width: int = 400, height: int = 270) -> Markup:
    """A line per variant, an interval at every budget, raw records as a level."""
    shown = [figure for line in curve.lines.values() for _, figure in line]
    budgets = sorted({budget for line in curve.lines.values() for budget, _ in line})
    wide = budgets[0] > 0 and budgets[-1] / budgets[0] > LOGARITHMIC
    scale = math.log if wide else float
    x = Axis(budgets[0], budgets[-1], f"{curve.dial} \u2192", scale=scale, ticks=budgets)
    y = score_axis([*shown, *([] if curve.raw is None else [curve.raw])])
    if "variance" not in shown[0].measure:
        y = replace(y, low=max(y.low, 0.0))
    plot = Plot(x, y, width, height)
    plot.axes(6)
    plot.level("chance private", y=shown[0].chance)
    if curve.raw is not None:
        plot.level("level raw", y=curve.raw.value, name="raw data")
    said = []
    for number, (label, line) in enumerate(curve.lines.items()):
        points = [
            Point(budget, f.value, f"{label} {budget:g}: {exactly(f)}", f.low, f.high)
            for budget, f in line
        ]
        said += [f"{label} at {budget:g}: {percent(f.value)}" for budget, f in line]
        shift = 3 * (number - (len(curve.lines) - 1) / 2)
        style = styles[label]
        plot.line(points, style.colour, outline=shape(style.number, 4.6), shift=shift)
    return plot.svg(f"{curve.title}, in %, over {curve.dial}. {'; '.join(said)}.")
