"""Rows that differ in nothing but the seed, taken together: the points of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privet.evidence.figures import Figure
from privet.evidence.formatting import measured
from privet.studies.pareto import Point, front, hypervolume
from privet.studies.results_table import Row


@dataclass(frozen=True)
class Group:
    """A variant at one budget."""

    rows: tuple[Row, ...]
    leak: Figure
    """Of the worst adversary: mean over seeds, between the means of the intervals' ends."""
    use: Figure
    certified: float | None
    """The highest bound among the seeds; None where one of them has none."""
    private: str
    utility: str

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def name(self) -> str:
        """'TIPRDC budget 0.9', 'LEACE'."""
        cell = self.first.cell
        return cell.label if cell.budget is None else f"{cell.label} {cell.dial} {cell.budget:g}"

    @property
    def point(self) -> Point:
        return self.leak.value, self.use.value


def groups(rows: Sequence[Row], question: str, private: str, utility: str) -> list[Group]:
    """The points of one picture, in the order of the rows; cells without both figures have no place
    in it."""
    kept: dict[tuple[str, str, float | None], list[Row]] = {}
    for row in rows:
        leak, use = row.score(private), row.score(utility)
        if (
            row.cell.question == question
            and leak is not None
            and use is not None
            and measured(leak)
            and measured(use)
        ):
            kept.setdefault((row.cell.method, row.cell.label, row.cell.budget), []).append(row)
    return [_group(tuple(own), private, utility) for own in kept.values()]


def _group(own: tuple[Row, ...], private: str, utility: str) -> Group:
    leak, use = (mean_figure([row.score(name) for row in own]) for name in (private, utility))
    return Group(own, leak, use, certified(own, private), private, utility)


def certified(own: Sequence[Row], attribute: str) -> float | None:
    """The highest bound among seeds; None where one of them has none."""
    found = [bound for row in own if (bound := row.certified(attribute)) is not None]
    return max(found) if found and len(found) == len(own) else None


def mean_figure(figures: Sequence[Figure | None]) -> Figure:
    found = [figure for figure in figures if figure is not None]
    value, low, high = (
        float(np.mean([getattr(figure, end) for figure in found]))
        for end in ("value", "low", "high")
    )
    return replace(found[0], value=value, low=low, high=high)


def best(found: Sequence[Group]) -> list[int]:
    """The Pareto front over releases, the most private first. Raw data is where everybody starts
    and no release."""
    there = [i for i, group in enumerate(found) if not group.first.cell.is_raw]
    return [there[i] for i in front([found[i].point for i in there])]


def volume(found: Sequence[Group], proved: bool = False) -> float:
    """Share of the plane between the worst corner (adversary never wrong, task guessed) and the
    best one (adversary guesses, task never wrong) that some release reaches or beats; with
    `proved`, by what is certified instead of what was measured."""
    own = [group for group in found if not proved or group.certified is not None]
    if not own:
        return 0.0
    leak, use = own[0].leak.chance, own[0].use.chance
    points = [
        (group.certified, group.use.value)
        if proved and group.certified is not None
        else group.point
        for group in own
    ]
    return hypervolume(points, worst=(1.0, use), best=(leak, 1.0))
