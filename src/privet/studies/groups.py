"""Rows that differ in nothing but the seed, taken together: the points of the picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privet.evidence.figures import Figure
from privet.evidence.formatting import measured
from privet.studies.cells import Cell
from privet.studies.pareto import Point, front, hypervolume
from privet.studies.results_table import Row


@dataclass(frozen=True)
class Group:
    """A variant at one budget.

    Parameters:
        rows: One per seed.
        leak, use: Of the worst adversary and of the task model: means over seeds, between the means
            of the intervals' ends.
        certified: The highest bound among the seeds; None where one of them has none.
        private, utility: The attribute and the task.
    """

    rows: tuple[Row, ...]
    leak: Figure
    use: Figure
    certified: float | None
    private: str
    utility: str

    @property
    def cell(self) -> Cell:
        """Of the first seed."""
        return self.rows[0].cell

    @property
    def point(self) -> Point:
        return self.leak.value, self.use.value


def by_variant(rows: Iterable[Row]) -> list[tuple[Row, ...]]:
    """Rows that differ in nothing but the seed together, in their order."""
    alike: dict[tuple[str, str, float | None], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.cell.method, row.cell.label, row.cell.budget), []).append(row)
    return [tuple(seeds) for seeds in alike.values()]


def groups(rows: Sequence[Row], question: str, private: str, utility: str) -> list[Group]:
    """The points of one picture, in the order of the rows; cells without both figures have no place
    in it."""
    both = (row for row in rows if row.score(private) and row.score(utility))
    points = []
    for seeds in by_variant(row for row in both if row.answers(question)):
        leak, use = (mean_figure(row.score(name) for row in seeds) for name in (private, utility))
        if leak is not None and use is not None:
            points.append(Group(seeds, leak, use, certified(seeds, private), private, utility))
    return points


def certified(rows: Sequence[Row], attribute: str) -> float | None:
    """The highest bound among seeds; None where one of them has none."""
    bounds = [bound for row in rows if (bound := row.certified(attribute)) is not None]
    return max(bounds) if bounds and len(bounds) == len(rows) else None


def mean_figure(figures: Iterable[Figure | None]) -> Figure | None:
    """The mean of what was measured, between the means of the intervals' ends; None of nothing."""
    known = [figure for figure in figures if figure is not None and measured(figure)]
    if not known:
        return None
    ends = np.mean([[figure.value, figure.low, figure.high] for figure in known], axis=0)
    value, low, high = map(float, ends)
    return replace(known[0], value=value, low=low, high=high)


def pareto_front(among: Sequence[Group]) -> list[int]:
    """Indices of the groups on the Pareto front, the most private first. Raw data is where
    everybody starts and no release."""
    released = [i for i, group in enumerate(among) if not group.cell.is_raw]
    return [released[i] for i in front([among[i].point for i in released])]


def volume(among: Sequence[Group], proved: bool = False) -> float:
    """Share of the plane between the worst corner (adversary never wrong, task guessed) and the
    best one (adversary guesses, task never wrong) that some release reaches or beats; with
    `proved`, by what is certified instead of what was measured."""
    if not among:
        return 0.0
    leak, use = among[0].leak.chance, among[0].use.chance
    points = [(g.certified if proved else g.leak.value, g.use.value) for g in among]
    known = [(across, up) for across, up in points if across is not None]
    return hypervolume(known, worst=(1.0, use), best=(leak, 1.0))
