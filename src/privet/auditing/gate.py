"""An audit held against limits, for pipelines: a figure passes only if the unlucky end of its
interval does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.core.errors import PrivetError, unknown
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified, Figure, Reading, Role
from privet.evidence.formatting import UNKNOWN, between, measured, percent

OPTIONS: dict[Role, str] = {
    "private": "--max-accuracy",
    "undeclared": "--max-accuracy",
    "utility": "--min-utility",
}
"""Which option sets the limit of an attribute in that role."""


@dataclass(frozen=True)
class Check:
    """One attribute against one limit."""

    attribute: str
    role: Role
    figure: Figure | None
    """Score of the worst adversary or of the best task model; None where nothing was measured."""
    limit: float
    measure: str = "balanced accuracy"
    """What the score counts: for a number, the share of variance explained."""

    @property
    def ok(self) -> bool:
        """Whether the limit holds at the far end of the interval. What was not measured never
        holds."""
        if self.figure is None:
            return False
        if (
            self.role == "utility"
        ):  # the figure itself too: a file edited by hand may hold an end on the wrong side of it
            return self.figure.value >= self.limit and self.figure.low >= self.limit
        return self.figure.value <= self.limit and self.figure.high <= self.limit

    @property
    def line(self) -> str:
        """
        >>> Check(
        ...     "beard",
        ...     "private",
        ...     Figure(value=0.611, low=0.589, high=0.633, n=2000, chance=0.5),
        ...     0.6,
        ... ).line
        'FAILED  beard: balanced accuracy 61.1 in 100 (58.9 to 63.3, n = 2,000); the upper end may be at most 60'
        """
        end = "lower end must be at least" if self.role == "utility" else "upper end may be at most"
        found = UNKNOWN
        if self.figure is not None:
            found = f"{percent(self.figure.value)} in 100 ({between(self.figure)}, n = {self.figure.n:,})"
        return f"{'ok' if self.ok else 'FAILED':6}  {self.attribute}: {self.measure} {found}; the {end} {self.limit * 100:g}"


@dataclass(frozen=True)
class CertifiedCheck:
    """The certificate of one attribute against one limit."""

    attribute: str
    certified: Certified | None
    """For one release of a record; None where the audit has no certificate of it."""
    limit: float

    @property
    def ok(self) -> bool:
        """Whether no adversary can be above the limit. What is not certified never holds."""
        bound = None if self.certified is None else self.certified.bound
        return bound is not None and bound <= self.limit

    @property
    def line(self) -> str:
        """
        >>> found = Certified(
        ...     "sex",
        ...     ("f", "m"),
        ...     0.577,
        ...     0.6,
        ...     (0.5, 0.5),
        ...     0.15,
        ...     0.55,
        ...     0.027,
        ...     0.99,
        ...     (900, 900),
        ...     2,
        ...     0.4,
        ...     1,
        ...     "smoothed",
        ... )
        >>> CertifiedCheck("sex", found, 0.6).line
        'ok      sex: certified, no adversary above 57.7 in 100 (99 % confidence, 1,800 people); it may be at most 60'
        """
        one, state = self.certified, "ok" if self.ok else "FAILED"
        if one is None or one.bound is None:
            why = "the audit holds no certificate of it" if one is None else one.reason
            return f"{state:6}  {self.attribute}: not certified ({why}); it must be, at {self.limit * 100:g} or below"
        from_whom = f"{100 * one.confidence:.10g} % confidence, {sum(one.people):,} people"
        found = f"certified, no adversary above {percent(one.bound, 'up')} in 100 ({from_whom})"
        return f"{state:6}  {self.attribute}: {found}; it may be at most {self.limit * 100:g}"


def check(
    audit: Audit,
    max_accuracy: Mapping[str, float],
    min_utility: Mapping[str, float],
    max_certified: Mapping[str, float] | None = None,
) -> list[Check | CertifiedCheck]:
    """Hold private and undeclared attributes against the most, and tasks against the least, that
    their score may be.

    The score is that of the strongest adversary on one release of a record; averages of several
    releases are not held. `max_certified` holds what no adversary can beat, certified, against the
    most that it may be.
    """
    if not max_accuracy and not min_utility and not max_certified:
        raise PrivetError(
            "A gate without a limit holds nothing back: give --max-accuracy A=0.60, --max-certified A=0.60 or --min-utility C=0.85."
        )
    proved = [_check_certified(audit, name, limit) for name, limit in (max_certified or {}).items()]
    hidden = [_check(audit, "--max-accuracy", name, limit) for name, limit in max_accuracy.items()]
    return [
        *hidden,
        *proved,
        *(_check(audit, "--min-utility", name, limit) for name, limit in min_utility.items()),
    ]


def load(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a folder; a certificate.json is an audit that
    has certificates only."""
    if path.is_dir():
        path = path / (
            "certificate.json"
            if (path / "certificate.json").exists() and not (path / "audit.json").exists()
            else "audit.json"
        )
    if path.name != "certificate.json":
        return Audit.load(path)
    found = Certification.load(path)
    return Audit(
        found.release, found.data, "none", (), (), found.seconds, certificates=found.certificates
    )


def limits(option: str, given: Sequence[str]) -> dict[str, float]:
    """ATTRIBUTE=LIMIT as a user writes it; the last '=' counts, because a column's name may hold
    one.

    >>> limits("--max-accuracy", ["beard=0.60", "x=y=0.7"])
    {'beard': 0.6, 'x=y': 0.7}
    """
    found: dict[str, float] = {}
    for word in given:
        name, _, number = word.rpartition("=")
        name = name.strip()
        if not name:
            raise PrivetError(
                f"{option} takes ATTRIBUTE=LIMIT, for example beard=0.60, and not '{word}'."
            )
        if name in found:
            raise PrivetError(f"{option} names '{name}' twice: give one limit for it.")
        try:
            found[name] = float(number)
        except ValueError:
            raise PrivetError(
                f"{option} {name} takes a number between 0 and 1, and not '{number}'."
            ) from None
    return found


def _check_limit(option: str, attribute: str, limit: float) -> None:
    if not 0 <= limit <= 1:
        instead = f": write {limit / 100:g} for {limit:g} in 100" if 1 < limit <= 100 else ""
        raise PrivetError(
            f"{option} {attribute} takes a number between 0 and 1, and not {limit:g}{instead}."
        )


def _check_certified(audit: Audit, attribute: str, limit: float) -> CertifiedCheck:
    _check_limit("--max-certified", attribute, limit)
    found = {c.attribute: c for c in audit.certificates if c.releases == 1}
    names = {*found, *(r.attribute for r in (*audit.private, *audit.undeclared))}
    if attribute in {r.attribute for r in audit.utility}:
        raise PrivetError(
            f"'{attribute}' is a task, not a private attribute in this audit: --min-utility is the option for it."
        )
    if attribute not in names:
        raise unknown("private attribute", attribute, names)
    return CertifiedCheck(attribute, found.get(attribute), limit)


def _check(audit: Audit, option: str, attribute: str, limit: float) -> Check:
    _check_limit(option, attribute, limit)
    known = {r.attribute: r for r in (*audit.undeclared, *audit.readings)}
    reading = known.get(attribute)
    if reading is None:
        what = "task" if option == OPTIONS["utility"] else "private attribute"
        raise unknown(what, attribute, [n for n, r in known.items() if OPTIONS[r.role] == option])
    if OPTIONS[reading.role] != option:
        what = {
            "private": "private, not a task",
            "utility": "a task, not a private attribute",
            "undeclared": "not a task",
        }[reading.role]
        raise PrivetError(
            f"'{attribute}' is {what} in this audit: {OPTIONS[reading.role]} is the option for it."
        )
    measure = "share of variance explained" if reading.is_number else "balanced accuracy"
    return Check(attribute, reading.role, _headline(reading), limit, measure)


def _headline(reading: Reading) -> Figure | None:
    """The figure to believe, where there is one."""
    if not 0 <= reading.best < len(reading.released):
        return None
    figure = reading.worst.score
    return figure if measured(figure) else None
