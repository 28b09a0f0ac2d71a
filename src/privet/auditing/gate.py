"""An audit or a certificate held against limits, for pipelines: a figure passes only if the unlucky
end of its interval does, and a certificate only if it speaks of all that leaves and nothing speaks
against it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.auditing.signatures import check_signature, read_document
from privet.core.errors import PrivetError, unknown
from privet.core.key_text import fingerprint
from privet.evidence.certificate.values import Certification
from privet.evidence.certified_sentences import seen, sure
from privet.evidence.covering import certificate_for, doubts_about, highest_bound
from privet.evidence.figures import Audit, Certified, Figure, Reading, Role
from privet.evidence.formatting import UNKNOWN, between, measured, percent
from privet.evidence.named_figures import named_figures
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


def verdict_line(checks: Sequence[Check]) -> str:
    """Whether all limits hold, before each of them.

    >>> verdict_line([Check("sex", True, "", ""), Check("age", False, "", "")])
    'NOT HELD  1 of 2 limits failed: age'
    """
    failed = list(dict.fromkeys(one.attribute for one in checks if not one.ok))
    count = sum(not one.ok for one in checks)
    if failed:
        return f"NOT HELD  {count} of {len(checks)} limits failed: {', '.join(failed)}"
    return f"HELD  {'the limit holds' if len(checks) == 1 else f'all {len(checks)} limits hold'}"


@dataclass(frozen=True)
class _Held:
    """What is held against limits.

    Parameters:
        audit: The audit; of a certificate alone one that has nothing else.
        certificates: Those of the audit, or of the certificate beside it.
        doubts: Why none of these certificates is to be relied on.
        new_people: Whether the user says that people of other data are new to the release.
    """

    audit: Audit
    certificates: tuple[Certified, ...]
    doubts: tuple[str, ...] = ()
    new_people: bool = False


def gate(
    found: Audit | Certification | str | Path,
    *,
    max_accuracy: Mapping[str, float] | None = None,
    min_utility: Mapping[str, float] | None = None,
    max_certified: Mapping[str, float] | None = None,
    certificate: Certification | str | Path | None = None,
    new_people: bool = False,
    signed: bool = False,
    max_figure: Mapping[str, float] | None = None,
    min_figure: Mapping[str, float] | None = None,
) -> list[Check]:
    """Hold an audit or a certificate against limits, each a share between 0 and 1.

    The score of an attribute is that of the strongest adversary on one release of a record, or of
    the best model of a task; averages of several releases are not held. Of classes it is the
    balanced accuracy, of a number the share of variance explained. Where columns leave beside the
    released numbers, what is read with them is held too. A certificate passes only if it speaks of
    all that leaves, and nothing speaks against it.

    Parameters:
        found: An audit or a certificate; or its file, or the folder that holds it.
        max_accuracy: Of private and undeclared attributes, the most that the upper end of the
            score's interval may be.
        min_utility: Of tasks, the least that the lower end of the score's interval must be.
        max_certified: Of private attributes, the most that the certified bound on every adversary
            may be.
        certificate: A certificate to hold instead of the audit's own; it must be of the same
            release and the same data.
        new_people: Rely on certificates from other data than the release was learned on: you know
            that these people are not in it.
        signed: Whether what is held must be signed, by whomever; `privet verify` says by whom.
        max_figure: Of other figures, such as "membership auc" or "word alice", the most that the
            upper end of the interval may be.
        min_figure: The least that the lower end must be, such as recall_at_10 of vectors.

    >>> import privet
    >>> from privet.adversaries.linear import Logistic
    >>> data = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    >>> battery = privet.Battery((Logistic(),), people=False)
    >>> audit = privet.audit(release, data, battery=battery, progress=False)
    >>> [check.ok for check in gate(audit, max_accuracy={"u": 0.9}, max_certified={"u": 0.5})]
    [True, False]
    """
    document = _document(found)
    audit = _as_audit(document)
    certificates, doubts = audit.certificates, list[str]()
    if certificate is not None:
        beside = _document(certificate)
        certificates, doubts = beside.certificates, _not_the_same(audit, beside)
    held = _Held(audit, certificates, tuple(doubts), new_people)
    checks = [_check_signed(one) for one in ([found, certificate] if signed else []) if one]
    limited = len(checks)
    checks += [_check(audit, "--max-accuracy", *limit) for limit in (max_accuracy or {}).items()]
    checks += [_check_certified(held, *limit) for limit in (max_certified or {}).items()]
    checks += [_check(audit, "--min-utility", *limit) for limit in (min_utility or {}).items()]
    checks += [_check_figure(audit, "--max-figure", *one) for one in (max_figure or {}).items()]
    checks += [_check_figure(audit, "--min-figure", *one) for one in (min_figure or {}).items()]
    if len(checks) == limited:
        raise PrivetError(
            "A gate without a limit holds nothing back: give --max-accuracy A=0.60, "
            "--max-certified A=0.60, --min-utility C=0.85 or --min-recall 0.75."
        )
    return checks


def _path(found: str | Path) -> Path:
    """The file of an audit or a certificate, or that in a folder."""
    path = Path(found)
    if path.is_dir():
        names = [n for n in ("audit.json", "certificate.json") if (path / n).exists()]
        path = path / (names or ["audit.json"])[0]
    return path


def _document(found: Audit | Certification | str | Path) -> Audit | Certification:
    """The audit or the certificate itself, or in a file."""
    if isinstance(found, Audit | Certification):
        return found
    path = _path(found)
    return Certification.load(path) if path.name == "certificate.json" else Audit.load(path)


def _as_audit(found: Audit | Certification) -> Audit:
    """A certificate is an audit that has certificates only."""
    if isinstance(found, Audit):
        return found
    return Audit(
        found.release, found.data, "none", (), (), found.seconds, certificates=found.certificates
    )


def _not_the_same(audit: Audit, certificate: Audit | Certification) -> list[str]:
    """Why a certificate is not about what an audit is about."""
    doubts = []
    graphs = [_graph(one.release) for one in (audit, certificate)]
    if graphs[0] != graphs[1] or graphs[0] is None:
        doubts.append("it is of another release than the audit")
    data = [one.data.get("fingerprint") for one in (audit, certificate)]
    if data[0] != data[1] or data[0] is None:
        doubts.append("it is on other data than the audit")
    return doubts


def _graph(release: Mapping[str, Any]) -> str | None:
    hashes = release.get("sha256")
    return hashes.get("graph") if isinstance(hashes, dict) else None


def _check_signed(found: Audit | Certification | str | Path) -> Check:
    rule = "it must be signed"
    document = (
        json.loads(found.to_json())
        if isinstance(found, Audit | Certification)
        else read_document(_path(found))
    )
    what = "certificate" if "battery" not in document else "audit"
    signature, right = check_signature(document)
    if signature is None:
        return Check(what, False, "not signed", rule)
    by = f"signed as {signature.auditor}, key {fingerprint(signature.key)}"
    if not right:
        return Check(what, False, f"{by}, but it was changed since", rule)
    return Check(what, True, by, rule)


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


def _check_certified(held: _Held, attribute: str, limit: float) -> Check:
    _check_limit("--max-certified", attribute, limit)
    audit = held.audit
    names = {c.attribute for c in held.certificates}
    names |= {r.attribute for r in (*audit.private, *audit.undeclared)}
    if attribute in {r.attribute for r in audit.utility}:
        raise PrivetError(
            f"'{attribute}' is a task, not a private attribute in this audit: --min-utility is the "
            "option for it."
        )
    if attribute not in names:
        raise unknown("private attribute", attribute, names)
    one, missing = certificate_for(held.certificates, attribute, audit.leaves)
    rule = f"it may be at most {limit * 100:g}"
    if one is None or one.bound is None:
        why = missing if one is None else one.reason
        rule = f"it must be, at {limit * 100:g} or below"
        return Check(attribute, False, f"not certified ({why})", rule)
    bound = highest_bound(one)
    found = say(
        "gate_certified",
        seen=seen(one),
        bound=percent(bound, "up"),
        sure=sure(one),
        people=f"{sum(one.people):,}",
    )
    doubts = [*held.doubts, *doubts_about(audit, one, held.new_people)]
    if doubts:
        found = f"{found}, but {'; '.join(doubts)}"
    return Check(attribute, bound <= limit and not doubts, found, rule)


def _check_figure(audit: Audit, option: str, name: str, limit: float) -> Check:
    """A figure that is about no attribute."""
    _check_limit(option, name, limit)
    figures = named_figures(audit)
    if name not in figures:
        raise unknown("figure in this audit:", name, figures)
    figure, least = figures[name], option == "--min-figure"
    ok, found = False, UNKNOWN
    if measured(figure):
        found = say(
            "gate_figure", value=percent(figure.value), between=between(figure), n=f"{figure.n:,}"
        )
        ends = min(figure.value, figure.low), max(figure.value, figure.high)
        ok = ends[0] >= limit if least else ends[1] <= limit
    end = "lower end must be at least" if least else "upper end may be at most"
    return Check(name, ok, f"{figure.measure} {found}", f"the {end} {limit * 100:g}")


def _with_columns(reading: Reading, columns: Sequence[str], alone: Figure | None) -> Figure | None:
    """The highest of what is read from released numbers, from these columns beside them, and from
    both; None where the columns were not judged with them."""
    seen = [
        finding.score
        for finding in reading.others
        if finding.source in ("released and kept", "kept columns")
        and {*finding.columns} == {*columns}
    ]
    together = any(
        finding.source == "released and kept" and {*finding.columns} == {*columns}
        for finding in reading.others
    )
    if not together or alone is None:
        return None
    return max([alone, *seen], key=lambda score: score.high)


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
    if not is_task and audit.leaves.columns:
        figure = _with_columns(reading, audit.leaves.columns, figure)
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
    if not is_task and audit.leaves.columns and figure is None:
        found = f"{UNKNOWN} with {' and '.join(audit.leaves.columns)} beside it"
    end = "lower end must be at least" if is_task else "upper end may be at most"
    measure = "share of variance explained" if reading.is_number else "balanced accuracy"
    return Check(attribute, ok, f"{measure} {found}", f"the {end} {limit * 100:g}")
