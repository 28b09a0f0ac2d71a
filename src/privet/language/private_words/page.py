"""Pages about private words: what an epsilon does to each word, and what attackers read at several
epsilons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from privet.data.dataset import Array
from privet.evidence.figures import Figure
from privet.evidence.formatting import percent, times_in_100
from privet.evidence.sentences import say
from privet.evidence.verdict import Word, default_goal, judge
from privet.language.private_words.attacks import EpsilonFigures
from privet.language.private_words.statistics import WordStatistics
from privet.reporting.page import jinja
from privet.reporting.plot import Axis, Bin, Plot, Point, histogram

# Words in the table of the page; the file beside it has all.
SHOWN = 60
MEANS = (
    "Given what is released for a word, the odds between any two words it may have been change by "
    "at most a factor of e to the power of epsilon times the distance of their vectors. Near words "
    "become hard to tell apart, far ones stay easy to tell apart.",
    "The bounds of a text's words multiply: for two texts with as many words, the factor is e to "
    "the power of epsilon times the sum of the distances, word by word. A long text is protected "
    "far less than one word, and so is a person with many texts.",
    "An unknown word counts as a word at the mean of all vectors, so the same holds for it. Marks "
    "without a vector and capitals are never released.",
)
MEANS_NOT = (
    "It is no promise about an attribute: who wrote a text may still be read from many slightly "
    "changed words. Look at the attack, not at epsilon.",
    "How many words a text has is not hidden.",
    "A word that stays itself is released as it is; nobody marks which words stayed, and a "
    "language model guesses it from the context.",
    "The same text released twice, with fresh noise, tells more: the bounds multiply again.",
    "Distances are those of these vectors. With other vectors the same epsilon means something "
    "else.",
)
_DASHES = ("none", "7 4", "2 3", "10 3 2 3")


def statistics_page(found: WordStatistics, name: str) -> str:
    """What happens to the words of the texts `name` at one epsilon, and would at others."""
    low, high = (float(np.quantile(found.critical, q)) for q in (0.01, 0.99))
    epsilons = np.geomspace(max(low, 1e-3), max(high, found.epsilon, 2e-3), 40)
    stay = found.stay_at(epsilons)
    curve = [
        Point(epsilon, share, f"epsilon {epsilon:.3g}: {percent(share)} % stay")
        for epsilon, share in zip(epsilons.tolist(), stay.tolist(), strict=True)
    ]
    columns = (found.words, found.count, found.stays, found.distinct, found.examples)
    rows = sorted(zip(*columns, strict=True), key=lambda row: -row[1])[:SHOWN]
    stays = _bars(found.stays, found.count, 1.0, lambda value: f"{value * 100:.0f} %")
    becomes = _bars(found.distinct, found.count, float(found.draws), lambda value: f"{value:.0f}")
    return _page(
        name=name,
        epsilon=found.epsilon,
        draws=found.draws,
        stay=times_in_100(found.stay),
        support=f"{found.support:.0f}",
        counted=len(found.words),
        bars=[
            ("How often a word stays itself (N)", stays),
            ("How many words it becomes (S)", becomes),
        ],
        plane=_plane({"words that stay": curve}, "Share of words that stay, %", found.epsilon),
        rows=[
            (word, f"{int(count):,}", percent(float(share)), int(distinct), ", ".join(examples))
            for word, count, share, distinct, examples in rows
        ],
    )


def curve_page(points: Sequence[EpsilonFigures], raw: Mapping[str, Figure], name: str) -> str:
    """What attackers read and recover from the texts `name`, against epsilon."""
    read = {
        **{f"{one} (private)": _at(points, "private", one) for one in points[0].private},
        **{f"{one} (task)": _at(points, "utility", one) for one in points[0].utility},
    }
    recovered = {one: _at(points, "recovered", one) for one in points[0].recovered}
    planes = {
        "What is read from private texts, by epsilon": _plane(
            _lines(read), "Balanced accuracy, %: private low, tasks high"
        ),
        "Words that a decoder recovers": _plane(_lines(recovered), "Share of words recovered, %"),
    }
    return _page(
        name=name,
        verdicts=[
            epsilon_verdict(point, one, raw) for one in points[0].private for point in points
        ],
        tasks=[(f"{point.epsilon:g}", point.utility.items()) for point in points],
        goals=list(
            dict.fromkeys(
                default_goal(figure.chance, raw.get(name)).sentence
                for name, figure in points[0].private.items()
            )
        ),
        planes=list(planes.items()),
        points=[
            (what, [(f"{epsilon:g}", figure) for epsilon, figure in figures.items()])
            for what, figures in {**read, **recovered}.items()
        ],
        raw={what: raw[what.rsplit(" ", 1)[0]] for what in read if what.rsplit(" ", 1)[0] in raw},
    )


def epsilon_verdict(
    point: EpsilonFigures, attribute: str, raw: Mapping[str, Figure]
) -> tuple[Word, str]:
    """What one epsilon does for one private attribute, in a word and a sentence."""
    figure = point.private[attribute]
    goal = default_goal(figure.chance, raw.get(attribute))
    word = judge(figure, goal.share)
    if word == "not measured":
        return word, f"At epsilon {point.epsilon:g}, {attribute} was not measured."
    said = say(
        "words_verdict",
        epsilon=f"{point.epsilon:g}",
        attribute=attribute,
        word=word,
        low=percent(figure.low, "down"),
        high=percent(figure.high, "up"),
        goal=f"{100 * goal.share:.3g}",
    )
    return word, f"{said}."


def _page(**values: Any) -> str:
    empty = ("planes", "points", "verdicts", "tasks", "goals")
    values = {"epsilon": None, **dict.fromkeys(empty, ()), **values}
    page = jinja().get_template("private_words.html")
    return page.render(means=MEANS, means_not=MEANS_NOT, **values)


def _at(points: Sequence[EpsilonFigures], kind: str, name: str) -> dict[float, Figure]:
    """One figure at every epsilon."""
    figures = {point.epsilon: getattr(point, kind).get(name) for point in points}
    return {epsilon: figure for epsilon, figure in figures.items() if figure is not None}


def _lines(figures: Mapping[str, Mapping[float, Figure]]) -> dict[str, Sequence[Point]]:
    return {
        name: [
            Point(
                epsilon,
                one.value,
                f"{name}, epsilon {epsilon:g}: {percent(one.value)} % ({percent(one.low)} to "
                f"{percent(one.high)})",
                one.low,
                one.high,
            )
            for epsilon, one in by_epsilon.items()
        ]
        for name, by_epsilon in figures.items()
    }


def _bars(values: Array, weights: Array, top: float, write: Callable[[float], str]) -> Markup:
    """Share of the texts' words by a statistic, in ten bins."""
    counts, edges = np.histogram(values, bins=10, range=(0.0, top), weights=weights)
    shares = counts / max(counts.sum(), 1e-12)
    bins = [
        Bin(low, high, share, f"{write(low)} to {write(high)}: {percent(share)} % of words")
        for low, high, share in np.c_[edges[:-1], edges[1:], shares].tolist()
    ]
    return histogram(bins, write)


def _plane(
    lines: Mapping[str, Sequence[Point]], title: str, epsilon: float | None = None
) -> tuple[Markup, Markup]:
    """The same for wide and for narrow screens."""
    return _drawn(lines, title, epsilon, 720), _drawn(lines, title, epsilon, 360)


def _drawn(
    lines: Mapping[str, Sequence[Point]], title: str, epsilon: float | None, width: int
) -> Markup:
    """Lines over epsilon, on a logarithmic axis, a share from 0 to 1 up."""
    points = [point for line in lines.values() for point in line]
    places = sorted({point.x for point in points})
    ends = places if epsilon is None else [*places, epsilon]
    ticks = places if len(places) <= 8 else np.geomspace(min(ends), max(ends), 6).tolist()
    x = Axis(min(ends), max(ends), "epsilon", scale=math.log, ticks=ticks)
    y = Axis(0, 1, title, "utility", factor=100)
    styles = [(name, f"s{i}", _DASHES[i % len(_DASHES)]) for i, name in enumerate(lines)]
    plot = Plot(x, y, width, 360, legend=styles if len(lines) > 1 else ())
    plot.axes(5)
    if epsilon is not None:
        plot.level("overall", x=epsilon, name=f"epsilon {epsilon:.3g}")
    for (_, colour, dash), line in zip(styles, lines.values(), strict=True):
        plot.line(line, colour, dash=dash, radius=4 if len(line) <= 20 else 0)
    return plot.svg("; ".join(point.title for point in points))
