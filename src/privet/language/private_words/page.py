"""Pages about private words: what an epsilon does to each word, and what attackers read at several
epsilons. Drawn like pictures.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from privet.evidence.figures import Figure
from privet.evidence.formatting import percent, times_in_100
from privet.language.private_words.attacks import Point
from privet.language.private_words.statistics import Statistics
from privet.reporting.label_placement import Box

SHOWN = 60
"""Words in the table of the page; the file beside it has all."""
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
_TEXT = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
_RULE = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format

Line = Sequence[tuple[float, float, str]]
"""Points across and up, with what to say about each."""


def statistics_page(found: Statistics, name: str) -> str:
    from privet.reporting.page import jinja

    low, high = (float(np.quantile(found.critical, q)) for q in (0.01, 0.99))
    epsilons = np.geomspace(max(low, 1e-3), max(high, found.epsilon, 2e-3), 40)
    curve = [
        (float(e), float(s), f"epsilon {e:.3g}: {percent(float(s))} % stay")
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
            plane=plane(
                {"words that stay": curve},
                "epsilon",
                "Share of words that stay, %",
                mark=found.epsilon,
            ),
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


def curve_page(points: Sequence[Point], raw: Mapping[str, Figure], name: str) -> str:
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
                    plane(_lines(both), "epsilon", "Balanced accuracy, %"),
                ),
                (
                    "Words that a decoder recovers",
                    plane(_lines(decoded), "epsilon", "Share of words recovered, %"),
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
            (
                e,
                f.value,
                f"{name}, epsilon {e:g}: {percent(f.value)} % ({percent(f.low)} to {percent(f.high)})",
            )
            for e, f in own.items()
        ]
        for name, own in figures.items()
    }


def bars(
    values: np.ndarray,
    weights: np.ndarray,
    top: float,
    said: Callable[[float], str],
    tall: int = 130,
) -> Markup:
    """Share of the texts' words by a statistic, in ten bins."""
    counts, edges = np.histogram(values, bins=10, range=(0.0, top), weights=weights)
    shares = counts / max(counts.sum(), 1e-12)
    floor, parts, told = tall + 24, [], []
    rect = Markup(
        '<rect class="bin" x="{}%" y="{}" width="{}%" height="{}"><title>{}</title></rect>'
    ).format
    text = Markup('<text class="tick" x="{}%" y="{}" text-anchor="{}">{}</text>').format
    for at, share in enumerate(shares.tolist()):
        up = round(tall * share / max(shares.max(), 1e-12), 1)
        told.append(f"{said(edges[at])} to {said(edges[at + 1])}: {percent(share)} % of words")
        parts.append(rect(round(2.4 + 9.6 * at, 2), round(floor - up, 1), 8.8, up, told[-1]))
        parts.append(
            text(round(6.8 + 9.6 * at, 2), round(floor - up - 6, 1), "middle", f"{share * 100:.0f}")
        )
    parts += [
        text(2 + 96 * at, floor + 17, anchor, said(top * at))
        for at, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    ]
    whole = Markup(
        '<svg class="histogram private" width="100%" height="{}" role="img" aria-label="{}">{}</svg>'
    )
    return whole.format(floor + 24, "; ".join(told), Markup("").join(parts))


def plane(
    lines: Mapping[str, Line],
    across: str,
    up: str,
    mark: float | None = None,
    width: int = 720,
    height: int = 360,
) -> Markup:
    """Lines through points, epsilon across on a logarithmic scale, a share from 0 to 1 up."""
    frame = Box(44, 36, width - 14, height - 64 - 18 * ((len(lines) + 1) // 2))
    ends = [x for line in lines.values() for x, *_ in line] + ([mark] if mark else [])
    low, high = math.log(min(ends)), math.log(max(ends))
    low, high = (low - 0.2, high + 0.2) if high - low < 0.1 else (low, high)

    def x_at(value: float) -> float:
        return round(
            frame.left
            + 8
            + (math.log(value) - low) / (high - low) * (frame.right - frame.left - 16),
            1,
        )

    def y_at(value: float) -> float:
        return round(frame.bottom - value * (frame.bottom - frame.top), 1)

    parts = [
        _TEXT("axis utility", 2, 14, "start", up),
        _TEXT("axis private", frame.right, frame.bottom + 36, "end", across),
    ]
    asked = sorted({x for line in lines.values() for x, *_ in line})
    for tick in (
        asked if len(asked) <= 8 else np.geomspace(math.exp(low), math.exp(high), 6).tolist()
    ):
        parts += [
            _RULE(x_at(tick), x_at(tick), frame.top, frame.bottom),
            _TEXT("tick", x_at(tick), frame.bottom + 18, "middle", f"{tick:.3g}"),
        ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts += [
            _RULE(frame.left, frame.right, y_at(tick), y_at(tick)),
            _TEXT("tick", frame.left - 9, y_at(tick) + 4, "end", f"{tick * 100:.0f}"),
        ]
    if mark is not None:
        parts.append(
            Markup('<line class="overall" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
                x_at(mark), frame.top, frame.bottom
            )
        )
        parts.append(
            _TEXT("name release", x_at(mark), frame.top - 6, "middle", f"epsilon {mark:.3g}")
        )
    curve = Markup('<path class="curve utility" d="{}" stroke-dasharray="{}"/>').format
    dot = Markup(
        '<circle class="point release" cx="{}" cy="{}" r="4"><title>{}</title></circle>'
    ).format
    for place, (name, line) in enumerate(lines.items()):
        dash = _DASH[place % len(_DASH)]
        parts.append(curve("M" + "L".join(f"{x_at(x)} {y_at(y)}" for x, y, _ in line), dash))
        parts += [dot(x_at(x), y_at(y), said) for x, y, said in line if len(line) <= 20]
        left, down = (
            frame.left + (place % 2) * (frame.right - frame.left) / 2,
            frame.bottom + 56 + 18 * (place // 2),
        )
        parts.append(
            Markup('<path class="curve utility" d="M{} {}h34" stroke-dasharray="{}"/>').format(
                left, down - 4, dash
            )
        )
        parts.append(_TEXT("tick", left + 42, down, "start", name))
    told = "; ".join(said for line in lines.values() for *_, said in line)
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(width, height, told, Markup("").join(parts))
