"""The page of `privet compare`, and the same numbers as Markdown: privacy against utility, one
picture per private attribute and task.

Like the other pages it loads nothing. Its script only shows at the pointer what the tables say; a
mark is a link to the details of its cell.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import between, listed, percent
from privet.evidence.sentences import say
from privet.evidence.verdict import Goal, Word, default_goal, judge
from privet.reporting.figure_axis import Scale
from privet.reporting.page import jinja
from privet.studies import frontier_plots
from privet.studies.collaborative_page import cards_by_page
from privet.studies.frontier_plots import Style, Styles, curves
from privet.studies.groups import (
    Group,
    by_variant,
    certified,
    groups,
    mean_figure,
    pareto_front,
    volume,
)
from privet.studies.results_table import Row
from privet.studies.study import Published, Question, Study

# Pictures of one question; beyond these the tables serve better.
MOST_PANELS = 12


class Answer(NamedTuple):
    """What a comparison says first: the best word of its releases, a sentence, the goal's origin
    in a sentence, and the axis of the release that is named."""

    word: Word
    said: str
    goal: str
    scale: Scale


class Panel(NamedTuple):
    """One picture: a private attribute against a task.

    Per variant, `volumes` has how it looks, how many budgets, its share of the plane, and the share
    by what is certified; `whole` and `raw` are the shares of all releases and of raw data; `answer`
    is which release to take.
    """

    private: str
    utility: str
    groups: list[Group]
    volumes: list[tuple[Style, int, float, float | None]]
    whole: float
    raw: float | None
    answer: Answer


class PaperFigure(NamedTuple):
    """A figure of the paper (`said` in words) and ours: by the same measure, read by the paper's
    kind of network; and the balanced accuracy of the strongest adversary, or the best model."""

    published: Published
    said: str
    ours: Figure | None
    worst: Figure | None


def render(study: Study, rows: Sequence[Row], command: str | None = None) -> str:
    """The page; rows that are not done are named in words."""
    templates = files("privet.reporting").joinpath("templates")
    script = templates.joinpath("frontier.js").read_text(encoding="utf-8")
    labels = dict.fromkeys(row.cell.label for row in rows if not row.cell.is_raw)
    styles = {label: Style(label, number) for number, label in enumerate(labels)}
    drawn = ((question, curves(question, rows)) for question in study.questions)
    page = jinja().get_template("frontier.html")
    return page.render(
        **_numbers(study, rows),
        command=command,
        plots=frontier_plots,
        styles=styles,
        panels={q: _panels(q, rows, styles, study.goals) for q in study.questions},
        curves=[(question, shown) for question, shown in drawn if shown],
        pages={question: name for name, (question, _) in cards_by_page(rows).items()},
        front=pareto_front,
        data_names=listed(sorted({str(r.audit.data.get("name")) for r in rows if r.audit})),
        private=_every(question.audited_private for question in study.questions),
        utility=_every(question.audited_utility for question in study.questions),
        script=Markup(script),
        allowed=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def table(study: Study, rows: Sequence[Row]) -> str:
    """The same numbers as Markdown."""
    page = jinja().get_template("frontier.md")
    return page.render(**_numbers(study, rows)).rstrip() + "\n"


def _numbers(study: Study, rows: Sequence[Row]) -> dict[str, Any]:
    """What both the page and the table show."""
    return {
        "study": study,
        "rows": rows,
        "tables": [
            (question, by_variant(r for r in rows if r.answers(question.name)))
            for question in study.questions
        ],
        "papers": paper_figures(study, rows),
        "failures": failures(rows),
        "unreached": unreached(rows),
        "mean_score": mean_score,
        "mean_in_game": mean_in_game,
        "certified": certified,
        "checks": list(dict.fromkeys(c for row in rows if row.audit for c in row.audit.checks)),
        "figures_at_once": max((row.figures_at_once for row in rows), default=1),
        "bounds_at_once": max((row.bounds_at_once for row in rows), default=1),
    }


def _every(names: Iterable[Sequence[str]]) -> str:
    return listed(list(dict.fromkeys(name for attributes in names for name in attributes)))


def unreached(rows: Sequence[Row]) -> list[str]:
    """Cells that were not reached, by variant: 'Hedge, 3 of 6'."""
    released = [row for row in rows if not row.cell.is_raw]
    every = Counter(row.cell.label for row in released)
    left = Counter(row.cell.label for row in released if row.state == "left")
    raw = ["raw data"] if any(row.cell.is_raw and row.state == "left" for row in rows) else []
    return raw + [f"{label}, {count} of {every[label]}" for label, count in left.items()]


def failures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Who failed and why; cells of a variant that failed alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.state == "failed":
            alike.setdefault((row.cell.label, row.error), []).append(row.cell.name)
    return [
        (names[0] if len(names) == 1 else f"{label}, {len(names)} cells", error)
        for (label, error), names in alike.items()
    ]


def _panels(
    question: Question, rows: Sequence[Row], styles: Styles, goals: Mapping[str, float]
) -> list[Panel]:
    panels = []
    for private, utility in product(question.audited_private, question.audited_utility):
        shown = groups(rows, question.name, private, utility)
        raw = [group for group in shown if group.cell.is_raw]
        released = [group for group in shown if not group.cell.is_raw]
        volumes = []
        for label, style in styles.items():
            of_method = [group for group in released if group.cell.label == label]
            proved = any(group.certified is not None for group in of_method)
            if of_method:
                share = volume(of_method, proved=True) if proved else None
                volumes.append((style, len(of_method), volume(of_method), share))
        if released:
            of_raw = volume(raw) if raw else None
            said = answer(released, raw[0].leak if raw else None, goals.get(private))
            panels.append(Panel(private, utility, shown, volumes, volume(released), of_raw, said))
    return panels[:MOST_PANELS]


def answer(released: Sequence[Group], raw: Figure | None, stated: float | None = None) -> Answer:
    """Which release to take: the most useful of those that hold the attribute against the stated
    goal, or the default one; else the one that comes nearest."""
    chance = released[0].leak.chance
    goal = default_goal(chance, raw) if stated is None else Goal(stated, "stated")
    words = {id(g): judge(g.leak, goal.share, g.certified) for g in released}
    held = [group for group in released if words[id(group)] == "held"]
    best = (
        max(held, key=lambda g: g.use.value) if held else min(released, key=lambda g: g.leak.high)
    )
    is_number = "variance" in best.leak.measure
    fields = {
        "private": best.private,
        "all": f"{len(released):,}",
        "goal": f"{100 * goal.share:.3g}",
        "measure": "of variance explained" if is_number else "balanced accuracy",
        "name": best.cell.variant,
        "leak": percent(best.leak.value),
        "leak_between": between(best.leak),
    }
    if held:
        fields |= {"held": f"{len(held):,}", "utility": best.utility}
        fields |= {"use": percent(best.use.value), "use_between": between(best.use)}
    said = say("frontier_best" if held else "frontier_none", **fields)
    scale = Scale(best.leak, chance, raw, goal.share, best.certified, "private", fields["measure"])
    return Answer(words[id(best)], f"{said}.", f"{goal.sentence}.", scale)


def mean_score(rows: Iterable[Row], attribute: str) -> Figure | None:
    """Mean over seeds of one attribute's score, between the means of the ends."""
    return mean_figure(row.score(attribute) for row in rows)


def mean_in_game(rows: Sequence[Row], attribute: str) -> float | None:
    """Mean over seeds of what the method's own adversary said."""
    said = [share for row in rows if (share := row.in_game(attribute)) is not None]
    return sum(said) / len(said) if said else None


def paper_figures(study: Study, rows: Sequence[Row]) -> list[PaperFigure]:
    """Every figure of the paper with ours by the same measure, where there is one."""
    made = []
    for one in study.published:
        cells = [row for row in rows if row.answers(one.question) and _is_of(row, one)]
        name = cells[0].cell.variant if cells else one.label or "raw data"
        who = f" of {one.adversary}" if one.adversary else ""
        said = f"{name}: {one.attribute}, {one.measure}{who}"
        ours = mean_figure(_by_measure(row, one) for row in cells)
        made.append(PaperFigure(one, said, ours, mean_score(cells, one.attribute)))
    return made


def _is_of(row: Row, one: Published) -> bool:
    if not one.label:
        return row.cell.is_raw
    return (row.cell.label, row.cell.budget) == (one.label, one.budget)


def _by_measure(row: Row, one: Published) -> Figure | None:
    """Our figure of one cell by the paper's measure."""
    if row.audit is None:
        return None
    if one.measure.endswith("difference"):
        key = one.measure.replace(" ", "_").replace("equalised", "equalized")
        gaps = (f.released.get(key) for f in row.audit.fairness if f.task == one.attribute)
        return next(filter(None, gaps), None)
    if one.measure == "share of the bits that is gone":
        return row.audit.information.get("cloak_reduction")
    finding = row.finding(one.attribute, one.adversary)
    if finding is None:
        return None
    return finding.plain if one.measure == "plain accuracy" else finding.score
