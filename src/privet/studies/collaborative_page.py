"""The page of collaborative sanitizers, drawn from the cards of several releases: one per alpha and
variant.

It shows the trade-off between the provider's own models, how sure the privacy model is per true
value, whether people are still identified, and the privacy model on unfiltered records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from privet.core.errors import PrivetError
from privet.evidence.formatting import percent
from privet.methods.services.evaluation import ServiceAnswers, ServiceEvaluation
from privet.reporting.label_placement import Box
from privet.reporting.page import jinja
from privet.reporting.plot import Axis, Plot, Point
from privet.studies.results_table import Row

# By variant, how its lines are drawn.
DASHES = {
    "plug-and-play, deterministic": "7 4",
    "plug-and-play, stochastic": "2 3",
    "adversarial, deterministic": "none",
    "adversarial, stochastic": "10 3 2 3",
}

# By variant, a point per alpha.
Lines = dict[str, list[Point]]


@dataclass(frozen=True)
class Sanitizer:
    """One release of a sweep over alpha, and what the provider's models answer on it."""

    alpha: float
    variant: str
    outcomes: ServiceEvaluation

    def of(self, attribute: str, role: str) -> ServiceAnswers | None:
        """The answers of the model with a role: utility, private, or given (as it came)."""
        answers = self.outcomes.answers
        return next((a for a in answers if (a.attribute, a.role) == (attribute, role)), None)

    def given(self, attribute: str) -> ServiceAnswers | None:
        """The privacy model as it came, or where it did not learn the only one there is."""
        return self.of(attribute, "given") or self.of(attribute, "private")


def sanitizers(cards: Sequence[Mapping[str, Any]]) -> list[Sanitizer]:
    """What the cards of collaborative releases say, by variant and alpha."""
    made = []
    for card in cards:
        if card.get("method") != "collaborative" or "outcomes" not in card:
            raise PrivetError("This page is drawn from the cards of collaborative releases only.")
        settings = card["settings"]
        learned = "adversarial" if settings["adversarial"] else "plug-and-play"
        variant = f"{learned}, {'stochastic' if settings['stochastic'] else 'deterministic'}"
        outcomes = ServiceEvaluation.from_json(card["outcomes"])
        made.append(Sanitizer(float(settings["alpha"]), variant, outcomes))
    if not made:
        raise PrivetError("There is no release to draw: give the cards of some.")
    return sorted(made, key=lambda one: (list(DASHES).index(one.variant), one.alpha))


def cards_by_page(rows: Sequence[Row]) -> dict[str, tuple[str, list[Mapping[str, Any]]]]:
    """By the file's name: the question, and the cards of its sanitizers; of several seeds the
    first, so that a line is one sweep."""
    cards: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        cell = row.cell
        first = cell.method == "collaborative" and row.state == "done" and cell.seed == 0
        if first and "outcomes" in row.card:
            cards.setdefault(cell.question, []).append(row.card)
    return {
        f"collaborative{'' if number == 1 else f'-{number}'}.html": entry
        for number, entry in enumerate(cards.items(), 1)
    }


def page(cards: Sequence[Mapping[str, Any]]) -> str:
    """One HTML page with the plots of all releases; `cards` are those of releases of the same data
    and attributes."""
    releases, first = sanitizers(cards), cards[0]
    about = {(*card["private"], "", *card["utility"], "", card["data"]["name"]) for card in cards}
    if len(about) > 1:
        raise PrivetError(
            "These releases hide or keep different attributes, or are of different data: draw a "
            "page for each."
        )
    private = list(first["private"])
    tasks = [task for task in first["utility"] if releases[0].of(task, "utility") is not None]
    return (
        jinja()
        .get_template("collaborative.html")
        .render(
            releases=releases,
            data_name=str(first["data"]["name"]),
            hidden=private,
            services={name: said for card in cards for name, said in card["services"].items()},
            part=releases[0].outcomes.part,
            tradeoffs=[(n, task, tradeoff(releases, n, task)) for n in private for task in tasks],
            sureness=[plot for n in private for plot in sureness(releases, n, "released")],
            identified=identification(releases),
            unfiltered=[plot for n in private for plot in sureness(releases, n, "raw")],
        )
    )


def tradeoff(releases: Sequence[Sanitizer], private: str, task: str) -> Markup:
    """The provider's privacy model across (left is more private), its service up; one line per
    variant, a point per alpha."""
    lines: Lines = {}
    raw: list[Point] = []
    measure = ""
    for one in releases:
        hidden, service, given = (
            one.of(private, "private"),
            one.of(task, "utility"),
            one.given(private),
        )
        if hidden is None or service is None or given is None:
            continue
        key = "top_5" if "top_5" in service.released else "balanced"
        measure = "right among its first five, %" if key == "top_5" else "balanced accuracy, %"
        before = given.raw["balanced"], service.raw[key]
        after = hidden.released["balanced"], service.released[key]
        for (leak, use), name, line in (
            (before, "raw records", raw),
            (after, f"{one.variant}, alpha {one.alpha:g}", lines.setdefault(one.variant, [])),
        ):
            said = f"{name}: {private} {percent(leak)} %, {task} {percent(use)} %"
            line.append(Point(leak, use, said))
    if not raw:
        return Markup("")
    points = [raw[-1], *(point for line in lines.values() for point in line)]
    title = f"Privacy model on {private}: balanced accuracy, %"
    x = _axis([p.x for p in points], title, "private", "\u2190 more private")
    plot = _lines(x, _axis([p.y for p in points], f"Service for {task}: {measure}"), lines)
    plot.point("point raw", raw[-1].x, raw[-1].y, raw[-1].title, 5)
    return plot.svg("; ".join(point.title for point in points))


def identification(releases: Sequence[Sanitizer]) -> list[tuple[str, Markup]]:
    """Titles and plots of top-5 over alpha: people of *fit* by name, in sample, and unknown people
    by a gallery of raw records."""
    first = releases[0].outcomes
    plots = []
    for known in first.answers:
        if known.role == "utility" and "top_5" in known.raw:
            named = [(one, one.of(known.attribute, "utility")) for one in releases]
            rows = [(one, a.raw["top_5"], a.released["top_5"]) for one, a in named if a is not None]
            title = f"{known.attribute}, by name, {known.part} part"
            words = f"Right {known.attribute} among the first 5, %"
            plots.append((title, _over_alpha(rows, words)))
    for gallery in first.identified:
        rows = [
            (one, other.raw["top_5"], other.released["top_5"])
            for one in releases
            for other in one.outcomes.identified
            if other.attribute == gallery.attribute
        ]
        title = (
            f"{gallery.attribute}, {gallery.probes:,} records against a gallery of "
            f"{gallery.people:,} people, {gallery.part} part"
        )
        plots.append((title, _over_alpha(rows, "Right person among the first 5, %")))
    return plots


def sureness(releases: Sequence[Sanitizer], private: str, source: str) -> list[tuple[str, Markup]]:
    """Per variant and true value, a title and a plot: the probability the privacy model gives, from
    0 to 1 across, a row per alpha.

    `source` is released or raw. On raw records a model that did not learn is the same in every row,
    and is drawn once.
    """
    plots = []
    for variant in dict.fromkeys(one.variant for one in releases):
        sweep = [one for one in releases if one.variant == variant]
        answers = [(one, a) for one in sweep if (a := one.of(private, "private")) is not None]
        given = sweep[0].given(private)
        if given is None or not answers or (source == "raw" and variant.startswith("plug")):
            continue
        first = "raw" if source == "released" else "as given"
        for number, value in enumerate(answers[0][1].sureness):
            rows = [(first, given.sureness[number].raw)]
            for one, answer in answers:
                rows.append((f"\u03b1 {one.alpha:g}", getattr(answer.sureness[number], source)))
            title = f"{variant}: {private} is {value.value}"
            plots.append((title, _shades(rows, answers[0][1].asked)))
    return plots


def _over_alpha(rows: Sequence[tuple[Sanitizer, float, float]], title: str) -> Markup:
    lines: Lines = {}
    for one, _, value in rows:
        said = f"{one.variant}, alpha {one.alpha:g}: {percent(value)} %"
        lines.setdefault(one.variant, []).append(Point(one.alpha, value, said))
    raw = max(before for _, before, _ in rows)
    plot = _lines(Axis(0, 1, "alpha"), _axis([raw, *(value for *_, value in rows)], title), lines)
    plot.level("overall", y=raw, name="raw records")
    points = [point.title for line in lines.values() for point in line]
    return plot.svg("; ".join([*points, f"raw records: {percent(raw)} %"]))


def _axis(values: Sequence[float], title: str, css: str = "utility", hint: str = "") -> Axis:
    """In per cent around the values, at least a tenth wide."""
    low, high = min(values) - 0.02, max(values) + 0.02
    room = max(0.1 - (high - low), 0) / 2
    return Axis(low - room, high + room, title, css, hint, factor=100)


def _lines(x: Axis, y: Axis, lines: Lines) -> Plot:
    colours = {variant: f"s{number}" for number, variant in enumerate(DASHES)}
    plot = Plot(x, y, legend=[(name, colours[name], DASHES[name]) for name in lines])
    plot.axes()
    for variant, points in lines.items():
        plot.line(points, colours[variant], dash=DASHES[variant])
    return plot


def _shades(rows: Sequence[tuple[str, Sequence[int]]], asked: str) -> Markup:
    """A row of cells per histogram: the darker, the more records."""
    tall, said = 31 * len(rows), []
    y = Axis(0, len(rows), reverse=True)
    frame = Box(16, 0, 98, tall)
    plot = Plot(Axis(0, 1), y, None, tall + 40, css="histogram private", frame=frame)
    for number, (name, counts) in enumerate(rows):
        total, bins = max(sum(counts), 1), len(counts)
        plot.text(14, 31 * number + 18, name, "tick", "end")
        for at, count in enumerate(counts):
            share, ends = count / total, (at / bins, (at + 1) / bins)
            title = (
                f"{percent(share)} % of records get {ends[0] * 100:.0f} to {ends[1] * 100:.0f} %"
            )
            row = (number, number + 0.85)
            plot.bar("shade", ends, row, f"{name}: {title}", fill_opacity=round(share**0.5, 3))
        mean = sum(count * (at + 0.5) for at, count in enumerate(counts)) / total / bins
        said.append(f"{name}: on average {percent(mean)} %")
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        plot.text(plot.at(part, 0)[0], tall + 12, f"{part * 100:.0f} %", "tick", anchor)
    plot.text(16, tall + 30, f"probability given to: {asked}", "tick")
    return plot.svg("; ".join(said))
