"""What every figure of a method does as its dial is turned, as SVG: adversaries, tasks, fairness
and re-identification over the budget.

One picture per figure, a line per variant, an interval at every budget, raw records as a level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import between, measured, percent, times_in_100
from privet.reporting.label_placement import Box
from privet.studies.frontier_plane import Look, Scale
from privet.studies.groups import mean_figure
from privet.studies.results_table import Row
from privet.studies.study import Question

MOST_METHODS = 3
"""Methods whose curves are drawn: beyond that the pictures say less than the tables."""
FAR = 10.0
"""Budgets further apart than this factor stand on a logarithmic axis."""
_GAPS = {
    "demographic_parity_difference": "demographic parity gap",
    "equalized_odds_difference": "equalised odds gap",
}

Take = Callable[[Row], Figure | None]


class Curve(NamedTuple):
    """One picture: what it shows, and over which dial."""

    title: str
    dial: str
    lines: Mapping[str, Sequence[tuple[float, Figure]]]
    """Per variant, budgets and means over seeds."""
    raw: Figure | None


def curves(question: Question, rows: Sequence[Row]) -> list[Curve]:
    """The pictures of a question; empty where no method has two budgets, or many have."""
    done = [row for row in rows if row.cell.question == question.name and row.state == "done"]
    turned = [row for row in done if row.cell.budget is not None]
    methods = [
        m
        for m in dict.fromkeys(row.cell.method for row in turned)
        if len({r.cell.budget for r in turned if r.cell.method == m}) > 1
    ]
    if len(methods) > MOST_METHODS:
        return []
    raw = next((row for row in done if row.cell.is_raw), None)
    found = []
    for name in methods:
        own = [row for row in turned if row.cell.method == name]
        for title, take in _figures(question, own):
            lines = {
                label: _line(label, own, take)
                for label in dict.fromkeys(row.cell.label for row in own)
            }
            kept = {label: line for label, line in lines.items() if line}
            if kept:
                found.append(
                    Curve(title, own[0].cell.dial, kept, None if raw is None else take(raw))
                )
    return found


def _figures(question: Question, rows: Sequence[Row]) -> list[tuple[str, Take]]:
    """What can be drawn, by its name."""
    found: list[tuple[str, Take]] = []
    for name in question.hidden or question.private:
        found.append((f"{name}: worst attacker", lambda row, name=name: row.score(name)))  # type: ignore[misc]
    for name in question.asked or question.utility:
        found.append((f"{name}: best model", lambda row, name=name: row.score(name)))  # type: ignore[misc]
    audits = [row.audit for row in rows if row.audit is not None]
    for task, by in dict.fromkeys((one.task, one.by) for audit in audits for one in audit.fairness):
        for key, called in _GAPS.items():
            found.append((f"{task}: {called} by {by}", _gap(task, by, key)))
    if any(one.attack == "re-identification" for audit in audits for one in audit.people):
        found.append(("People found again among the first 5", _found_again))
    return found


def _gap(task: str, by: str, key: str) -> Take:
    def take(row: Row) -> Figure | None:
        audit = row.audit
        return (
            None
            if audit is None
            else next(
                (f.released.get(key) for f in audit.fairness if (f.task, f.by) == (task, by)), None
            )
        )

    return take


def _found_again(row: Row) -> Figure | None:
    audit = row.audit
    return (
        None
        if audit is None
        else next(
            (p.figures.get("top_5") for p in audit.people if p.attack == "re-identification"), None
        )
    )


def _line(label: str, rows: Sequence[Row], take: Take) -> list[tuple[float, Figure]]:
    kept: dict[float, list[Figure]] = {}
    for row in rows:
        figure = take(row) if row.cell.label == label else None
        if figure is not None and measured(figure) and row.cell.budget is not None:
            kept.setdefault(row.cell.budget, []).append(figure)
    return [(budget, mean_figure(figures)) for budget, figures in sorted(kept.items())]


def draw(curve: Curve, looks: Mapping[str, Look], width: int = 400, height: int = 270) -> Markup:
    """The picture."""
    frame = Box(40, 16, width - 16, height - 44)
    figures = [figure for line in curve.lines.values() for _, figure in line]
    chance, ends = (
        figures[0].chance,
        [end for f in (*figures, *filter(None, [curve.raw])) for end in (f.low, f.high)],
    )
    up = Scale.of(chance, ends, frame.bottom, frame.top)
    up = up._replace(low=max(up.low, 0.0)) if "variance" not in figures[0].measure else up
    budgets = sorted({budget for line in curve.lines.values() for budget, _ in line})
    across = _across(budgets, frame)
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    parts, notes = [], list[Markup]()
    for tick in up.ticks:
        parts += [line("grid", frame.left, frame.right, up.at(tick), up.at(tick))]
        parts += [text("tick", frame.left - 8, up.at(tick) + 4, "end", times_in_100(tick))]
    if up.low <= chance <= up.high:
        parts.append(line("chance private", frame.left, frame.right, up.at(chance), up.at(chance)))
    if curve.raw is not None and measured(curve.raw):
        parts.append(
            line("level", frame.left, frame.right, up.at(curve.raw.value), up.at(curve.raw.value))
        )
        notes.append(
            text(
                "name tick",
                (frame.left + frame.right) / 2,
                up.at(curve.raw.value) - 5,
                "middle",
                "raw data",
            )
        )
    last = -math.inf
    for budget in budgets:
        if across(budget) - last > 30:
            last = across(budget)
            parts.append(text("tick", last, frame.bottom + 17, "middle", f"{budget:g}"))
    for place, (label, points) in enumerate(curve.lines.items()):
        parts += _drawn(
            label, points, looks[label], across, up, (place - (len(curve.lines) - 1) / 2) * 3
        )
    parts.append(text("axis", frame.right, height - 6, "end", f"{curve.dial} \u2192"))
    told = "; ".join(
        f"{label} at {budget:g}: {percent(f.value)}"
        for label, points in curve.lines.items()
        for budget, f in points
    )
    whole = Markup(
        '<svg class="plane over" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    )
    return whole.format(
        width,
        height,
        f"{curve.title}, in %, over {curve.dial}. {told}.",
        Markup("").join([*parts, *notes]),
    )


def _drawn(
    label: str,
    points: Sequence[tuple[float, Figure]],
    look: Look,
    across: Callable[[float], float],
    up: Scale,
    aside: float,
) -> list[Markup]:
    """The line of a variant, its intervals and its marks; `aside` keeps variants at the same budget
    apart."""
    bar = Markup('<line class="bars {}" x1="{x}" x2="{x}" y1="{}" y2="{}"/>').format
    mark = Markup(
        '<path class="mark {}" transform="translate({} {})" d="{}"><title>{}</title></path>'
    ).format
    spots = [(round(across(budget) + aside, 1), up.at(figure.value)) for budget, figure in points]
    path = "M" + "L".join(f"{x} {y}" for x, y in spots)
    parts = [Markup('<path class="turn {}" d="{}"/>').format(look.colour, path)]
    for (budget, figure), (x, y) in zip(points, spots, strict=True):
        said = f"{label} {budget:g}: {percent(figure.value)} ({between(figure)})"
        parts += [
            bar(look.colour, up.at(figure.high), up.at(figure.low), x=x),
            mark(look.colour, x, y, look.path(4.6), said),
        ]
    return parts


def _across(budgets: Sequence[float], frame: Box) -> Callable[[float], float]:
    """From budget to place, a little off the edges."""
    logarithmic = budgets[0] > 0 and budgets[-1] / budgets[0] > FAR
    low, high = (math.log(b) if logarithmic else b for b in (budgets[0], budgets[-1]))

    def at(budget: float) -> float:
        share = (
            ((math.log(budget) if logarithmic else budget) - low) / (high - low)
            if high > low
            else 0.5
        )
        return round(frame.left + 16 + share * (frame.right - frame.left - 32), 1)

    return at
