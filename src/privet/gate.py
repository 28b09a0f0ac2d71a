"""An audit held against limits, for pipelines: a figure passes only if the unlucky end of its interval does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from privet.errors import PrivetError, unknown
from privet.evidence.figures import Audit, Figure, Reading
from privet.report import words

OPTIONS = {"private": "--max-accuracy", "utility": "--min-utility"}
"""Which option sets the limit of an attribute in that role."""


@dataclass(frozen=True)
class Check:
    """One attribute against one limit."""

    attribute: str
    role: Literal["private", "utility"]
    figure: Figure | None
    """Balanced accuracy of the worst adversary or of the best task model; None where nothing was measured."""
    limit: float

    @property
    def ok(self) -> bool:
        """Whether the limit holds at the far end of the interval. What was not measured never holds."""
        if self.figure is None:
            return False
        if self.role == "private":  # the figure itself too: a file edited by hand may hold an end on the wrong side of it
            return self.figure.value <= self.limit and self.figure.high <= self.limit
        return self.figure.value >= self.limit and self.figure.low >= self.limit

    @property
    def line(self) -> str:
        """
        >>> Check("beard", "private", Figure(value=0.611, low=0.589, high=0.633, n=2000, chance=0.5), 0.6).line
        'FAILED  beard: balanced accuracy 61.1 in 100 (58.9 to 63.3, n = 2,000); the upper end may be at most 60'
        """
        end = "upper end may be at most" if self.role == "private" else "lower end must be at least"
        found = words.UNKNOWN
        if self.figure is not None:
            found = f"{words.percent(self.figure.value)} in 100 ({words.between(self.figure)}, n = {self.figure.n:,})"
        return f"{'ok' if self.ok else 'FAILED':6}  {self.attribute}: balanced accuracy {found}; the {end} {self.limit * 100:g}"


def check(audit: Audit, max_accuracy: Mapping[str, float], min_utility: Mapping[str, float]) -> list[Check]:
    """Hold private attributes against the most, and tasks against the least, that balanced accuracy may be."""
    if not max_accuracy and not min_utility:
        raise PrivetError("A gate without a limit holds nothing back: give --max-accuracy A=0.60 or --min-utility C=0.85.")
    private = [_check(audit, "private", name, limit) for name, limit in max_accuracy.items()]
    return private + [_check(audit, "utility", name, limit) for name, limit in min_utility.items()]


def load(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a folder."""
    return Audit.load(path / "audit.json" if path.is_dir() else path)


def limits(option: str, given: Sequence[str]) -> dict[str, float]:
    """ATTRIBUTE=LIMIT as a user writes it; the last '=' counts, because a column's name may hold one.

    >>> limits("--max-accuracy", ["beard=0.60", "x=y=0.7"])
    {'beard': 0.6, 'x=y': 0.7}
    """
    found: dict[str, float] = {}
    for word in given:
        name, _, number = word.rpartition("=")
        name = name.strip()
        if not name:
            raise PrivetError(f"{option} takes ATTRIBUTE=LIMIT, for example beard=0.60, and not '{word}'.")
        if name in found:
            raise PrivetError(f"{option} names '{name}' twice: give one limit for it.")
        try:
            found[name] = float(number)
        except ValueError:
            raise PrivetError(f"{option} {name} takes a number between 0 and 1, and not '{number}'.") from None
    return found


def _check(audit: Audit, role: Literal["private", "utility"], attribute: str, limit: float) -> Check:
    option = OPTIONS[role]
    if not 0 <= limit <= 1:
        instead = f": write {limit / 100:g} for {limit:g} in 100" if 1 < limit <= 100 else ""
        raise PrivetError(f"{option} {attribute} takes a number between 0 and 1, and not {limit:g}{instead}.")
    known = {r.attribute: r for r in audit.readings}
    reading = known.get(attribute)
    if reading is None:
        raise unknown("private attribute" if role == "private" else "task", attribute, [n for n, r in known.items() if r.role == role])
    if reading.role != role:
        what = "a task, not a private attribute" if role == "private" else "private, not a task"
        raise PrivetError(f"'{attribute}' is {what} in this audit: {OPTIONS[reading.role]} is the option for it.")
    return Check(attribute, role, _headline(reading), limit)


def _headline(reading: Reading) -> Figure | None:
    """The figure to believe, where there is one."""
    if not 0 <= reading.best < len(reading.released):
        return None
    figure = reading.worst.balanced
    return figure if words.measured(figure) else None
