"""An audit or a certificate held against limits, for pipelines: a figure passes only if the unlucky
end of its interval does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.core.errors import PrivetError, unknown
from privet.evidence.certificate.values import Certification
from privet.evidence.certified_sentences import sure
from privet.evidence.figures import Audit, Role
from privet.evidence.formatting import UNKNOWN, between, measured, percent
from privet.evidence.sentences import say

# Which option sets the limit of an attribute in that role.
OPTIONS: dict[Role, str] = {
    "private": "--max-accuracy",
    "undeclared": "--max-accuracy",
    "utility": "--min-utility",
}


@dataclass(frozen=True)
class Check:
    """One attribute against one limit.

    Parameters:
        attribute: Its name.
        ok: Whether the limit holds. What was not measured or not certified never holds.
        found: What the audit or the certificate says of it.
        rule: What the limit asks for.
    """

    attribute: str
    ok: bool
    found: str
    rule: str

    @property
    def line(self) -> str:
        """The check in one line."""
        return f"{'ok' if self.ok else 'FAILED':6}  {self.attribute}: {self.found}; {self.rule}"


def gate(
    found: Audit | Certification | str | Path,
    *,
    max_accuracy: Mapping[str, float] | None = None,
    min_utility: Mapping[str, float] | None = None,
    max_certified: Mapping[str, float] | None = None,
) -> list[Check]:
    """Hold an audit or a certificate against limits, each a share between 0 and 1.

    The score of an attribute is that of the strongest adversary on one release of a record, or of
    the best model of a task; averages of several releases are not held. Of classes it is the
    balanced accuracy, of a number the share of variance explained.

    Parameters:
        found: An audit or a certificate; or its file, or the folder that holds it.
        max_accuracy: Of private and undeclared attributes, the most that the upper end of the
            score's interval may be.
        min_utility: Of tasks, the least that the lower end of the score's interval must be.
        max_certified: Of private attributes, the most that the certified bound on every adversary
            may be.

    >>> import privet
    >>> from privet.adversaries.linear import Logistic
    >>> data = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    >>> battery = privet.Battery((Logistic(),), people=False)
    >>> audit = privet.audit(release, data, battery=battery, progress=False)
    >>> [check.ok for check in gate(audit, max_accuracy={"u": 0.9}, max_certified={"u": 0.5})]
    [True, False]
    """
    audit = _as_audit(found)
    checks = [_check(audit, "--max-accuracy", *limit) for limit in (max_accuracy or {}).items()]
    checks += [_check_certified(audit, *limit) for limit in (max_certified or {}).items()]
    checks += [_check(audit, "--min-utility", *limit) for limit in (min_utility or {}).items()]
    if not checks:
        raise PrivetError(
            "A gate without a limit holds nothing back: give --max-accuracy A=0.60, "
            "--max-certified A=0.60 or --min-utility C=0.85."
        )
    return checks


def _as_audit(found: Audit | Certification | str | Path) -> Audit:
    """The audit itself or in a file; a certificate is an audit that has certificates only."""
    if isinstance(found, Audit):
        return found
    if not isinstance(found, Certification):
        path = Path(found)
        if path.is_dir():
            names = [n for n in ("audit.json", "certificate.json") if (path / n).exists()]
            path = path / (names or ["audit.json"])[0]
        if path.name != "certificate.json":
            return Audit.load(path)
        found = Certification.load(path)
    return Audit(
        found.release, found.data, "none", (), (), found.seconds, certificates=found.certificates
    )


def parse_limits(option: str, words: Sequence[str] | None) -> dict[str, float]:
    """ATTRIBUTE=LIMIT as a user writes it; the last '=' counts, because a column's name may hold
    one.

    >>> parse_limits("--max-accuracy", ["beard=0.60", "x=y=0.7"])
    {'beard': 0.6, 'x=y': 0.7}
    """
    limits: dict[str, float] = {}
    for word in words or ():
        name, _, number = word.rpartition("=")
        name = name.strip()
        if not name:
            raise PrivetError(
                f"{option} takes ATTRIBUTE=LIMIT, for example beard=0.60, and not '{word}'."
            )
        if name in limits:
            raise PrivetError(f"{option} names '{name}' twice: give one limit for it.")
        try:
            limits[name] = float(number)
        except ValueError:
            raise PrivetError(
                f"{option} {name} takes a number between 0 and 1, and not '{number}'."
            ) from None
    return limits


def _check_limit(option: str, attribute: str, limit: float) -> None:
    if not 0 <= limit <= 1:
        instead = f": write {limit / 100:g} for {limit:g} in 100" if 1 < limit <= 100 else ""
        raise PrivetError(
            f"{option} {attribute} takes a number between 0 and 1, and not {limit:g}{instead}."
        )


def _check_certified(audit: Audit, attribute: str, limit: float) -> Check:
    _check_limit("--max-certified", attribute, limit)
    certificates = {c.attribute: c for c in audit.certificates if c.releases == 1}
    names = {*certificates, *(r.attribute for r in (*audit.private, *audit.undeclared))}
    if attribute in {r.attribute for r in audit.utility}:
        raise PrivetError(
            f"'{attribute}' is a task, not a private attribute in this audit: --min-utility is the "
            "option for it."
        )
    if attribute not in names:
        raise unknown("private attribute", attribute, names)
    one = certificates.get(attribute)
    if one is None or one.bound is None:
        why = "the audit holds no certificate of it" if one is None else one.reason
        rule = f"it must be, at {limit * 100:g} or below"
        return Check(attribute, False, f"not certified ({why})", rule)
    found = say(
        "gate_certified",
        bound=percent(one.bound, "up"),
        sure=sure(one),
        people=f"{sum(one.people):,}",
    )
    return Check(attribute, one.bound <= limit, found, f"it may be at most {limit * 100:g}")


def _check(audit: Audit, option: str, attribute: str, limit: float) -> Check:
    _check_limit(option, attribute, limit)
    readings = {r.attribute: r for r in (*audit.undeclared, *audit.readings)}
    if attribute not in readings:
        what = "task" if option == OPTIONS["utility"] else "private attribute"
        names = [name for name, r in readings.items() if OPTIONS[r.role] == option]
        raise unknown(what, attribute, names)
    reading = readings[attribute]
    if OPTIONS[reading.role] != option:
        what = {
            "private": "private, not a task",
            "utility": "a task, not a private attribute",
            "undeclared": "not a task",
        }[reading.role]
        raise PrivetError(
            f"'{attribute}' is {what} in this audit: {OPTIONS[reading.role]} is the option for it."
        )
    figure = reading.worst.score if 0 <= reading.best < len(reading.released) else None
    ok, found, is_task = False, UNKNOWN, reading.role == "utility"
    if figure is not None and measured(figure):
        found = say(
            "gate_found",
            value=percent(figure.value),
            between=between(figure),
            n=f"{figure.n:,}",
        )
        # The value too: a file edited by hand may hold an end on the wrong side of it.
        least, most = min(figure.value, figure.low), max(figure.value, figure.high)
        ok = least >= limit if is_task else most <= limit
    end = "lower end must be at least" if is_task else "upper end may be at most"
    measure = "share of variance explained" if reading.is_number else "balanced accuracy"
    return Check(attribute, ok, f"{measure} {found}", f"the {end} {limit * 100:g}")
