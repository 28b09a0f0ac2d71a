"""The page of `privet compare`: what leaks against what is of use, one picture per private
attribute and task.

Like the other pages it needs nothing else. Its script only shows at the pointer what the tables
say; a point is a link to its sheet.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import between, listed, measured, percent
from privet.reporting.page import jinja
from privet.studies.extra_pages import pages
from privet.studies.frontier_curves import curves, draw
from privet.studies.frontier_plane import MOST_NAMES, Look, picture, swatch
from privet.studies.groups import Group, best, certified, groups, mean_figure, volume
from privet.studies.results_table import Row
from privet.studies.study import Published, Question, Study

NONE = "\u2013"
MOST_PANELS = 12
"""Pictures of one question; beyond these the tables serve better."""


class Panel(NamedTuple):
    private: str
    utility: str
    points: list[Group]
    volumes: list[tuple[Look, int, float, float | None]]
    """Per variant: how it looks, how many budgets, its share of the plane, and the share by what is
    certified."""
    whole: float
    raw: float | None


class Beside(NamedTuple):
    """A figure of the paper, and ours."""

    published: Published
    said: str
    ours: Figure | None
    """By the same measure, and read by the paper's kind of network."""
    worst: Figure | None
    """Of the strongest adversary, or the best model: balanced accuracy."""


def render(study: Study, rows: Sequence[Row], command: str | None = None) -> str:
    """The page; rows that are not done are named in words."""
    script = (
        files("privet.reporting").joinpath("templates", "frontier.js").read_text(encoding="utf-8")
    )
    looks = _looks(rows)
    return (
        jinja()
        .get_template("frontier.html")
        .render(
            study=study,
            rows=rows,
            command=command,
            looks=looks,
            swatch=swatch,
            picture=picture,
            best=best,
            sections=[(question, _panels(question, rows, looks)) for question in study.questions],
            tables=[(question, table_rows(question, rows)) for question in study.questions],
            turned=[
                (question, found)
                for question in study.questions
                if (found := curves(question, rows))
            ],
            draw=draw,
            pages={question: name for name, (question, _) in pages(rows).items()},
            beside=beside(study, rows),
            done=[row for row in rows if row.state == "done"],
            failed=[row for row in rows if row.state == "failed"],
            left=[row for row in rows if row.state == "left"],
            waiting=waiting(rows),
            failures=failures(rows),
            most_names=MOST_NAMES,
            called=called,
            cell=_cell,
            in_game=in_game,
            certified=certified,
            data_names=listed(sorted({str(r.audit.data.get("name")) for r in rows if r.audit})),
            private=listed(
                list(dict.fromkeys(n for q in study.questions for n in q.hidden or q.private))
            ),
            utility=listed(
                list(dict.fromkeys(n for q in study.questions for n in q.asked or q.utility))
            ),
            extra=Markup(
                files("privet.reporting")
                .joinpath("templates", "frontier.css")
                .read_text(encoding="utf-8")
            ),
            script=Markup(script),
            allowed=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def called(row: Row) -> str:
    """'TIPRDC budget 0.9, seed 1'."""
    cell = row.cell
    dial = "" if cell.budget is None else f" {cell.dial} {cell.budget:g}"
    return f"{cell.label}{dial}" + ("" if cell.is_raw else f", seed {cell.seed}")


def waiting(rows: Sequence[Row]) -> list[str]:
    """Cells that were not reached, by variant: 'Hedge, 3 of 6'."""
    own = [row for row in rows if not row.cell.is_raw]
    left, every = (
        Counter(row.cell.label for row in some)
        for some in ([row for row in own if row.state == "left"], own)
    )
    raw = ["raw data"] if any(row.cell.is_raw and row.state == "left" for row in rows) else []
    return raw + [f"{label}, {count} of {every[label]}" for label, count in left.items()]


def failures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Who failed and why; cells of a variant that failed alike together."""
    kept: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.state == "failed":
            kept.setdefault((row.cell.label, row.error), []).append(row)
    return [
        (called(own[0]) if len(own) == 1 else f"{label}, {len(own)} cells", error)
        for (label, error), own in kept.items()
    ]


def _looks(rows: Sequence[Row]) -> dict[str, Look]:
    """A colour and a shape per variant, the same in every picture."""
    labels = dict.fromkeys(row.cell.label for row in rows if not row.cell.is_raw)
    return {label: Look(label, place) for place, label in enumerate(labels)}


def _panels(question: Question, rows: Sequence[Row], looks: dict[str, Look]) -> list[Panel]:
    found = []
    for private in question.hidden or question.private:
        for utility in question.asked or question.utility:
            points = groups(rows, question.name, private, utility)
            released = [group for group in points if not group.first.cell.is_raw]
            if not released:
                continue
            volumes = []
            for label, look in looks.items():
                own = [group for group in released if group.first.cell.label == label]
                if own:
                    proved = (
                        volume(own, proved=True)
                        if any(group.certified is not None for group in own)
                        else None
                    )
                    volumes.append((look, len(own), volume(own), proved))
            raw = [group for group in points if group.first.cell.is_raw]
            found.append(
                Panel(
                    private,
                    utility,
                    points,
                    volumes,
                    volume(released),
                    volume(raw) if raw else None,
                )
            )
    return found[:MOST_PANELS]


def table_rows(question: Question, rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Rows of one question, those that differ only in the seed together: the first, and all of
    them."""
    kept: dict[tuple[str, str, float | None], list[Row]] = {}
    for row in rows:
        if row.cell.question == question.name and row.state == "done":
            kept.setdefault((row.cell.method, row.cell.label, row.cell.budget), []).append(row)
    return [(own[0], own) for own in kept.values()]


def _cell(own: Sequence[Row], attribute: str) -> Figure | None:
    """Mean over seeds of one attribute's score, between the means of the ends."""
    return _mean(
        [figure for row in own if (figure := row.score(attribute)) is not None and measured(figure)]
    )


def in_game(own: Sequence[Row], attribute: str) -> float | None:
    """Mean over seeds of what the method's own adversary said."""
    found = [game for row in own if (game := row.in_game(attribute)) is not None]
    return sum(found) / len(found) if found else None


def _mean(figures: Sequence[Figure]) -> Figure | None:
    return mean_figure(figures) if figures else None


def beside(study: Study, rows: Sequence[Row]) -> list[Beside]:
    """Every figure of the paper with ours by the same measure, where there is one."""
    found = []
    for one in study.published:
        own = [
            row
            for row in rows
            if row.state == "done"
            and row.cell.question == one.question
            and (row.cell.is_raw if not one.label else row.cell.label == one.label)
            and (not one.label or row.cell.budget == one.budget)
        ]
        figures = [
            figure for row in own if (figure := _same(row, one)) is not None and measured(figure)
        ]
        dial = next(
            (f" {row.cell.dial} {row.cell.budget:g}" for row in own if row.cell.budget is not None),
            "",
        )
        said = f"{one.label or 'raw data'}{dial}: {one.attribute}, {one.measure}" + (
            f" of {one.adversary}" if one.adversary else ""
        )
        found.append(Beside(one, said, _mean(figures), _cell(own, one.attribute)))
    return found


def _same(row: Row, one: Published) -> Figure | None:
    """Our figure of one cell by the paper's measure."""
    if row.audit is None:
        return None
    if one.measure.endswith("difference"):
        key = one.measure.replace(" ", "_").replace("equalised", "equalized")
        return next(
            (
                f.released[key]
                for f in row.audit.fairness
                if f.task == one.attribute and key in f.released
            ),
            None,
        )
    if one.measure == "share of the bits that is gone":
        return row.audit.information.get("cloak_reduction")
    finding = row.finding(one.attribute, one.adversary)
    return (
        None
        if finding is None
        else finding.plain
        if one.measure == "plain accuracy"
        else finding.score
    )


def table(study: Study, rows: Sequence[Row]) -> str:
    """The same numbers as Markdown."""
    lines = [f"# {study.title or 'Frontier'}", ""]
    lines += [f"{text}\n" for text in (study.paper, study.about) if text]
    lines += [
        "Balanced accuracy in per cent with 95 % intervals, on people nobody learned from; mean over seeds.",
        "",
    ]
    for question in study.questions:
        private, utility = question.hidden or question.private, question.asked or question.utility
        if question.title or question.name:
            lines += [f"## {question.title or question.name}", ""]
        heads = ["release", "seeds"]
        for name in private:
            heads += [f"{name}: worst adversary", "in-game", "certified"]
        lines += [_line([*heads, *utility]), _line(["---"] * (len(heads) + len(utility)))]
        for first, own in table_rows(question, rows):
            cells = [called(first).partition(", seed")[0], str(len(own))]
            for name in private:
                game, bound = in_game(own, name), certified(own, name)
                who = "" if (reading := first.reading(name)) is None else f" {reading.worst.called}"
                cells += [
                    f"{_said(_cell(own, name))}{who}",
                    NONE if game is None else percent(game),
                ]
                cells.append(NONE if bound is None else percent(bound, "up"))
            lines.append(_line([*cells, *(_said(_cell(own, name)) for name in utility)]))
        lines.append("")
    fair = [(row, one) for row in rows for one in (row.audit.fairness if row.audit else ())]
    if fair:
        heads = [
            "release",
            "task, by",
            "demographic parity difference",
            "equalised odds difference",
        ]
        lines += ["## Fairness of the task models", "", _line(heads), _line(["---"] * 4)]
        for row, one in fair:
            head = f"{row.cell.question}: " if row.cell.question else ""
            found = [
                _said(one.released.get(key))
                for key in ("demographic_parity_difference", "equalized_odds_difference")
            ]
            lines.append(_line([head + called(row), f"{one.task}, {one.by}", *found]))
        lines.append("")
    if study.published:
        lines += [
            "## Beside the paper",
            "",
            _line(["figure", "what", "paper", "ours, one network", "ours, worst"]),
            _line(["---"] * 5),
        ]
        lines += [
            _line(
                [
                    b.published.source,
                    b.said,
                    percent(b.published.value),
                    _said(b.ours),
                    _said(b.worst),
                ]
            )
            for b in beside(study, rows)
        ]
        lines.append("")
    lines += [f"- {who}: {error}" for who, error in failures(rows)]
    left = waiting(rows)
    lines += (
        [f"- Not reached in time: {'; '.join(left)}. The same command goes on with them."]
        if left
        else []
    )
    lines += [f"- {note}" for note in study.notes]
    return "\n".join(lines).rstrip() + "\n"


def _said(figure: Figure | None) -> str:
    return (
        NONE
        if figure is None
        else f"{percent(figure.value)} ({between(figure).replace(' to ', NONE)})"
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
