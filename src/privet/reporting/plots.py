"""Small plots of one attribute: the groups of people as dots on one scale, and how sure the
attacker is as a histogram.

Drawn like pictures.py: only percentages across, so that a plot is as wide as its place and its
letters keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.figures import Figure, Group, Risk
from privet.evidence.formatting import between, is_number, measured, percent, times_in_100


class Scale(NamedTuple):
    """From tenth to tenth, as narrow as the figures allow: dots, unlike bars, need no zero."""

    low: float
    high: float

    @staticmethod
    def of(figures: Sequence[Figure]) -> Scale:
        """
        >>> Scale.of([Figure(0.61, 0.58, 0.64, 900, 0.5)]), Scale.of([])
        (Scale(low=0.5, high=0.7), Scale(low=0.0, high=1.0))
        """
        ends = [
            v for f in figures if measured(f) for v in (f.low, f.high, f.chance) if is_number(v)
        ]
        if not ends:
            return Scale(0.0, 1.0)
        low, high = (
            math.floor(round(min(ends) * 10, 6)) / 10,
            math.ceil(round(max(ends) * 10, 6)) / 10,
        )
        low, high = max(low, -0.1), min(max(high, low + 0.2), 1.0)
        return Scale(round(min(low, high - 0.2), 1), round(high, 1))

    def at(self, value: float) -> float:
        """In percent of the width, with room for half a letter at both ends."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(3 + 94 * share, 2)

    @property
    def ticks(self) -> list[float]:
        """
        >>> Scale(0.5, 0.7).ticks, Scale(-0.1, 1.0).ticks
        ([0.5, 0.6, 0.7], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        """
        low, high = round(self.low * 10), round(self.high * 10)
        step = 1 if high - low <= 5 else 2
        return [t / 10 for t in range(low, high + 1) if t % step == 0]


_LINE = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format


def axis(scale: Scale) -> Markup:
    """The numbers above a column of rows."""
    text = Markup('<text class="tick" x="{}%" y="13" text-anchor="middle">{}</text>').format
    marks = Markup("").join(text(scale.at(t), f"{t * 100:.0f}") for t in scale.ticks)
    return Markup('<svg class="row" width="100%" height="18" aria-hidden="true">{}</svg>').format(
        marks
    )


def row(figure: Figure, scale: Scale, overall: Figure | None = None) -> Markup:
    """One group: its value as a dot, its interval as a whisker, the value over everyone as a line.
    The numbers stand beside it.

    As tall as its row, so that the lines of all rows meet.
    """
    parts = [_LINE("grid", scale.at(t), scale.at(t), 0, "100%") for t in scale.ticks]
    if is_number(figure.chance):
        parts.append(_LINE("chance", scale.at(figure.chance), scale.at(figure.chance), 0, "100%"))
    if overall is not None and measured(overall):
        parts.append(_LINE("overall", scale.at(overall.value), scale.at(overall.value), 0, "100%"))
    if measured(figure):
        low, high = scale.at(figure.low), scale.at(figure.high)
        dot = Markup(
            '<circle class="dot" cx="{}%" cy="0" r="4.5"><title>{}</title></circle>'
        ).format
        found = [
            _LINE("whisker", low, high, 0, 0),
            _LINE("whisker", low, low, -4, 4),
            _LINE("whisker", high, high, -4, 4),
        ]
        found.append(
            dot(
                scale.at(figure.value),
                f"{percent(figure.value)} ({between(figure)}), n = {figure.n:,}",
            )
        )
        parts.append(
            Markup('<svg y="50%" overflow="visible">{}</svg>').format(Markup("").join(found))
        )
    return Markup('<svg class="row" width="100%" height="100%" aria-hidden="true">{}</svg>').format(
        Markup("").join(parts)
    )


def known(groups: Sequence[Group]) -> list[Group]:
    """Groups with anything to show."""
    return [group for group in groups if measured(group.score)]


def widest(groups: Sequence[Group]) -> tuple[Group, Group] | None:
    """The groups read least and most, where their intervals do not meet: otherwise the difference
    may be chance."""
    if not (found := known(groups)):
        return None
    least, most = min(found, key=lambda g: g.score.value), max(found, key=lambda g: g.score.value)
    return (least, most) if least.score.high < most.score.low else None


def histogram(risk: Risk, tall: int = 130) -> Markup:
    """Share of records by how much of its probability the attacker puts on the true value."""
    total = sum(risk.counts)
    bins = list(zip(risk.edges[:-1], risk.edges[1:], risk.counts, strict=False))
    most = max((count for *_, count in bins), default=0)
    if total < 1 or most < 1:
        return Markup("")
    floor, parts, told = tall + 24, [], []
    rect = Markup(
        '<rect class="bin{}" x="{}%" y="{}" width="{}%" height="{}"><title>{}</title></rect>'
    ).format
    text = Markup('<text class="tick" x="{}%" y="{}" text-anchor="{}">{}</text>').format
    for low, high, count in bins:
        share, up = times_in_100(count / total), round(tall * count / most, 1)
        said = f"{low * 100:.0f} to {high * 100:.0f} % sure of the true value: {percent(count / total)} % of records ({count:,})"
        told.append(said)
        left, wide = round(2 + 96 * low, 2), round(96 * (high - low), 2)
        parts.append(
            rect(
                " sure" if low >= 0.9 - 1e-9 else "",
                round(left + 0.4, 2),
                round(floor - up, 1),
                round(wide - 0.8, 2),
                up,
                said,
            )
        )
        parts.append(
            text(
                round(left + wide / 2, 2),
                round(floor - up - 6, 1),
                "middle",
                share.replace("under ", "<").replace("over ", ">"),
            )
        )
    parts.append(
        Markup('<line class="floor" x1="2%" x2="98%" y1="{}" y2="{}"/>').format(floor, floor)
    )
    parts += [
        text(2 + 96 * at, floor + 17, anchor, f"{at * 100:.0f} %")
        for at, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    ]
    whole = Markup(
        '<svg class="histogram" width="100%" height="{}" role="img" aria-label="{}">{}</svg>'
    )
    return whole.format(floor + 24, "; ".join(told), Markup("").join(parts))
