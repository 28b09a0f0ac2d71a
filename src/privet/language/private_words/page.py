"""Pages about private words: what an epsilon does to each word, and what attackers read at several
epsilons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import percent, times_in_100
from privet.language.private_words.attacks import EpsilonFigures
from privet.language.private_words.statistics import WordStatistics
from privet.reporting.plot import Axis, Bin, Plot, histogram
from privet.reporting.plot import Point as Mark

# Words in the table of the page; the file beside it has all.
SHOWN = 60
MEANS = (
    "Given what is released for a word, the odds between any two words it may have been change by at most a factor of e to the power "
    "of epsilon times the distance of their vectors. Near words become hard to tell apart, far ones stay easy to tell apart.",
    "The bounds of a text's words multiply: for two texts with as many words, the factor is e to the power of epsilon times the sum of "
    "the distances, word by word. A long text is protected far less than one word, and so is a person with many texts.",
    "An unknown word counts as a word at the mean of all vectors, so the same holds for it. Marks without a vector and capitals are "
    "never released.",
)
MEANS_NOT = (
    "It is no promise about an attribute: who wrote a text may still be read from many slightly changed words. Look at the attack, "
    "not at epsilon.",
    "How many words a text has is not hidden.",
    "A word that stays itself is released as it is; nobody marks which words stayed, and a language model guesses it from the context.",
    "The same text released twice, with fresh noise, tells more: the bounds multiply again.",
    "Distances are those of these vectors. With other vectors the same epsilon means something else.",
)
_DASH = ("none", "7 4", "2 3", "10 3 2 3")
# Points of a plot, epsilon across.
Line = Sequence[Mark]


def statistics_page(found: WordStatistics, name: str) -> str:
    from privet.reporting.page import jinja

    low, high = (float(np.quantile(found.critical, q)) for q in (0.01, 0.99))
    epsilons = np.geomspace(max(low, 1e-3), max(high, found.epsilon, 2e-3), 40)
    curve = [
        Mark(float(e), float(s), f"epsilon {e:.3g}: {percent(float(s))} % stay")
        for e, s in zip(epsilons, found.stay_at(epsilons), strict=True)
    ]
    rows = sorted(
        zip(found.words, found.count, found.stays, found.distinct, found.examples, strict=True),
        key=lambda row: -row[1],
    )[:SHOWN]
    return (
        jinja()
        .get_template("private_words.html")
        .render(
            name=name,
            epsilon=found.epsilon,
            draws=found.draws,
            stay=times_in_100(found.stay),
            support=f"{found.support:.0f}",
            counted=len(found.words),
            bars=[
                (
                    "How often a word stays itself (N)",
                    bars(found.stays, found.count, 1.0, lambda v: f"{v * 100:.0f} %"),
                ),
                (
                    "How many words it becomes (S)",
                    bars(found.distinct, found.count, float(found.draws), lambda v: f"{v:.0f}"),
                ),
            ],
            plane=plane({"words that stay": curve}, "Share of words that stay, %", found.epsilon),
            rows=[
                (w, f"{int(n):,}", percent(float(s)), int(d), ", ".join(e))
                for w, n, s, d, e in rows
            ],
            means=MEANS,
            means_not=MEANS_NOT,
            points=[],
            raw={},
            planes=[],
        )
    )


def curve_page(points: Sequence[EpsilonFigures], raw: Mapping[str, Figure], name: str) -> str:
    """What is read, kept and recovered against epsilon."""
    from privet.reporting.page import jinja

    both = {
        **{f"{a} (private)": {p.epsilon: p.private[a] for p in points} for a in points[0].private},
        **{f"{a} (task)": {p.epsilon: p.utility[a] for p in points} for a in points[0].utility},
    }
    decoded = {
        d: {p.epsilon: p.recovered[d] for p in points if d in p.recovered}
        for d in points[0].recovered
    }
    return (
        jinja()
        .get_template("private_words.html")
        .render(
            name=name,
            epsilon=None,
            planes=[
                (
                    "Balanced accuracy of the strongest model on private texts",
                    plane(_lines(both), "Balanced accuracy, %"),
                ),
                (
                    "Words that a decoder recovers",
                    plane(_lines(decoded), "Share of words recovered, %"),
                ),
            ],
            points=[
                (what, [(f"{e:g}", f) for e, f in figures.items()])
                for what, figures in {**both, **decoded}.items()
            ],
            raw={
                what: raw[what.rsplit(" ", 1)[0]] for what in both if what.rsplit(" ", 1)[0] in raw
            },
            means=MEANS,
            means_not=MEANS_NOT,
        )
    )


def _lines(figures: Mapping[str, Mapping[float, Figure]]) -> dict[str, Line]:
    return {
        name: [
            Mark(
                epsilon,
                f.value,
                f"{name}, epsilon {epsilon:g}: {percent(f.value)} % "
                f"({percent(f.low)} to {percent(f.high)})",
                f.low,
                f.high,
            )
            for epsilon, f in by_epsilon.items()
        ]
        for name, by_epsilon in figures.items()
    }


def bars(
    values: np.ndarray, weights: np.ndarray, top: float, write: Callable[[float], str]
) -> Markup:
    """Share of the texts' words by a statistic, in ten bins."""
    counts, edges = np.histogram(values, bins=10, range=(0.0, top), weights=weights)
    shares = (counts / max(counts.sum(), 1e-12)).tolist()
    bins = [
        Bin(low, high, share, f"{write(low)} to {write(high)}: {percent(share)} % of words")
        for low, high, share in zip(edges[:-1].tolist(), edges[1:].tolist(), shares, strict=True)
    ]
    return histogram(bins, write)


def plane(lines: Mapping[str, Line], title: str, epsilon: float | None = None) -> Markup:
    """Lines over epsilon, on a logarithmic axis, a share from 0 to 1 up."""
    places = sorted({mark.x for line in lines.values() for mark in line})
    ends = [*places, *([] if epsilon is None else [epsilon])]
    ticks = places if len(places) <= 8 else np.geomspace(min(ends), max(ends), 6).tolist()
    x = Axis(min(ends), max(ends), "epsilon", scale=math.log, ticks=ticks)
    y = Axis(0, 1, title, "utility", factor=100)
    styles = [(name, f"s{i}", _DASH[i % len(_DASH)]) for i, name in enumerate(lines)]
    plot = Plot(x, y, 720, 360, legend=styles if len(lines) > 1 else ())
    plot.axes(5)
    if epsilon is not None:
        plot.level("overall", x=epsilon, name=f"epsilon {epsilon:.3g}")
    for (_, colour, dash), line in zip(styles, lines.values(), strict=True):
        plot.line(line, colour, dash=dash, radius=4 if len(line) <= 20 else 0)
    return plot.svg("; ".join(mark.title for line in lines.values() for mark in line))
