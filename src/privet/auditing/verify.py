"""Verify: whether a certificate is about this release and this data, who signed it, and whether its
bounds come out again.

Anybody who has the certificate and the release can check the graph, the noise that the graph adds
and the signature. Whoever also has the data can compute every bound again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privet.auditing.certified_codes import about_data, about_release, graph_of
from privet.auditing.certify import certificates
from privet.auditing.gate import Check
from privet.auditing.signatures import check_signature, read_document
from privet.core.json_values import as_json
from privet.core.key_text import fingerprint
from privet.data.dataset import Dataset
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified
from privet.release.graph_shape import UnknownShape, read_shape
from privet.release.release import Release

# How far a bound that is computed again may be from the one that is stated: machines round
# differently.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Verification:
    """What came of verifying a certificate or an audit.

    Parameters:
        what: certificate or audit.
        checks: What was checked, and whether it holds.
        recomputed: Whether the bounds were computed again from the data.
    """

    what: str
    checks: tuple[Check, ...]
    recomputed: bool = False

    @property
    def ok(self) -> bool:
        """Whether everything that was checked holds."""
        return all(check.ok for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        if not self.ok:
            wrong = [check.attribute for check in self.checks if not check.ok]
            return f"This {self.what} does NOT hold: {', '.join(wrong)}."
        if self.recomputed:
            return f"This {self.what} holds: it is about this release, and every bound came out."
        return (
            f"This {self.what} is about this release. Its figures were not computed again, which "
            "takes the data."
        )

    @property
    def lines(self) -> list[str]:
        """The verdict, then each check."""
        return [self.verdict, *(check.line for check in self.checks)]


def verify(
    document: Certification | Audit | str | Path,
    release: Release,
    data: Dataset | None = None,
    *,
    signed: bool = False,
    key: str = "",
) -> Verification:
    """Check a certificate, or a signed audit, against a release and the data it was made on.

    Parameters:
        document: A certificate or an audit, or its file.
        release: What it shall be about.
        data: The data it shall be about: every bound of a certificate is then computed again.
        signed: Whether it must be signed.
        key: Fingerprint of the key that it must be signed with, as the auditor makes it known.

    >>> import privet
    >>> people = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(people, private=["u"])
    >>> verify(privet.certify(release, people), release, people).verdict
    'This certificate holds: it is about this release, and every bound came out.'
    """
    read = (
        json.loads(document.to_json())
        if isinstance(document, Certification | Audit)
        else read_document(document)
    )
    release = replace(release, graph=graph_of(release))
    what = "audit" if "battery" in read else "certificate"
    checks = [_check_graph(read, release)]
    if signed or key or read.get("signature") is not None:
        checks.append(_check_signature(read, key))
    if what == "audit":
        if data is not None:
            checks.append(_check_fingerprint(read, data))
        return Verification(what, tuple(checks))
    certificate = (
        document if isinstance(document, Certification) else Certification.load(str(document))
    )
    checks += [_check_runs(certificate, release), *_check_statement(certificate, release)]
    if data is not None:
        checks += _check_data(certificate, release, data)
    return Verification(what, tuple(checks), data is not None)


def _check_graph(read: dict[str, Any], release: Release) -> Check:
    """Whether it is about the graph that people run."""
    about = read.get("release")
    hashes = about.get("sha256") if isinstance(about, dict) else None
    stated = hashes.get("graph") if isinstance(hashes, dict) else None
    rule = "it must be that of the release"
    if not isinstance(stated, str):
        return Check("graph", False, "no hash of a graph is stated", rule)
    own = about_release(release)["sha256"]["graph"]
    return Check("graph", stated == own, f"SHA-256 {stated[:16]}... is stated", rule)


def _check_signature(read: dict[str, Any], key: str) -> Check:
    signature, right = check_signature(read)
    rule = f"the key must be {key}" if key else "it must be that of the whole content"
    if signature is None:
        unreadable = read.get("signature") is not None
        return Check("signature", False, "unreadable" if unreadable else "none", rule)
    own = fingerprint(signature.key)
    found = f"by key {own}, in the name of {signature.auditor}, {signature.signed}"
    if not right:
        return Check("signature", False, f"{found}; the content was changed since", rule)
    wanted = "".join(key.split()).lower()
    return Check("signature", not wanted or wanted == "".join(own.split()), found, rule)


def _check_fingerprint(read: dict[str, Any], data: Dataset) -> Check:
    stated = read["data"].get("fingerprint") if isinstance(read.get("data"), dict) else None
    rule = "it must be that of the data"
    return Check("data", stated == data.fingerprint, f"fingerprint {str(stated)[:16]}...", rule)


def _check_runs(certificate: Certification, release: Release) -> Check:
    """Whether records are encoded and noise is drawn as when it was certified."""
    stated, rule = certificate.release.get("runs"), "they must be those of the release"
    if stated is None:
        return Check("encoding and noise", False, "not stated (an earlier layout)", rule)
    own = about_release(release)["runs"]
    return Check("encoding and noise", stated == own, f"SHA-256 {str(stated)[:16]}...", rule)


def _check_statement(certificate: Certification, release: Release) -> list[Check]:
    """Whether the statements agree with themselves, and with the noise that the graph adds."""
    rule = "each bound must be what is found in the sample, plus its slack"
    wrong = [c.attribute for c in certificate.certificates if not _agrees(c)]
    found = f"{len(certificate.certificates)} statements"
    if wrong:
        found = f"those about {', '.join(dict.fromkeys(wrong))} contradict themselves"
    checks = [Check("statements", not wrong and bool(certificate.certificates), found, rule)]
    stated = {c.flip if c.flip is not None else c.sigma for c in certificate.certificates}
    if stated == {None}:  # nothing is certified
        return checks
    try:
        scale = read_shape(graph_of(release)).scale
    except UnknownShape as error:
        return [*checks, Check("noise", False, str(error), "its graph must be of known shape")]
    same = len(stated) == 1 and math.isclose(stated.pop() or 0.0, scale, rel_tol=1e-6)
    return [*checks, Check("noise", same, f"the graph adds {scale:.4g}", "as is stated")]


def _agrees(one: Certified) -> bool:
    parts = [(one.bound, one.empirical, one.slack)]
    parts += [(group.bound, group.empirical, group.slack) for group in one.groups]
    return 0 < one.confidence < 1 and all(
        bound is None or math.isclose(bound, min(found + slack, 1.0), abs_tol=1e-9)
        for bound, found, slack in parts
    )


def _check_data(certificate: Certification, release: Release, data: Dataset) -> list[Check]:
    """Whether it is this data, and whether every bound comes out again."""
    about, stated = about_data(release, data), certificate.data
    named = [key for key in ("fingerprint", "test") if key in stated]
    same = bool(named) and all(stated[key] == about[key] for key in named)
    fingerprint_found = f"fingerprint {str(stated.get('fingerprint'))[:16]}... is stated"
    checks = [Check("data", same, fingerprint_found, "it must be that of the data")]
    options = certificate.options
    if not options:
        return [*checks, Check("bounds", False, "an earlier layout says not how", "compute again")]
    again = certificates(
        release,
        data,
        private=[str(name) for name in certificate.release.get("private") or ()],
        given=[str(word) for word in options.get("given", ())],
        releases=[int(k) for k in options.get("releases", (1,))],
        records=[int(m) for m in options.get("records", ())],
        seed=int(options.get("seed", 0)),
        confidence=certificate.certificates[0].confidence if certificate.certificates else 0.99,
    )
    return [*checks, _check_bounds(certificate.certificates, again)]


def _check_bounds(stated: Sequence[Certified], again: Sequence[Certified]) -> Check:
    """Whether every number of every statement came out again; words may differ between versions."""
    rule = f"every number must come out again, to {TOLERANCE:g}"
    before, after = (
        [(_named(c), json.loads(as_json(replace(c, note="", reason="")))) for c in some]
        for some in (stated, again)
    )
    if [name for name, _ in before] != [name for name, _ in after]:
        return Check("bounds", False, "other statements came out than those stated", rule)
    off = [
        name
        for (name, numbers), (_, computed) in zip(before, after, strict=True)
        if not _alike(numbers, computed)
    ]
    if off:
        both = zip(stated, again, strict=True)
        bounds = {
            _named(one): f"{_percent(one.bound)} is stated and {_percent(other.bound)} came out"
            for one, other in both
        }
        said = "; ".join(f"{name}: {bounds[name]}" for name in off[:3])
        return Check("bounds", False, said, rule)
    groups = sum(len(one.groups) for one in again)
    return Check("bounds", True, f"{len(again)} came out, and {groups} groups", rule)


def _named(one: Certified) -> str:
    given = f" given {' and '.join(one.given)}" if one.given else ""
    seen = f"{one.releases} releases of {one.records} records, per {one.per}, by {one.weighing}"
    return f"{one.attribute}{given} ({seen})"


def _alike(stated: Any, computed: Any) -> bool:
    """Whether two values from JSON are the same, numbers up to TOLERANCE; why a group is not
    certified is said in words."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        return stated.keys() == computed.keys() and all(
            _alike(stated[key], computed[key]) for key in stated if key != "reason"
        )
    if isinstance(stated, list) and isinstance(computed, list):
        return len(stated) == len(computed) and all(map(_alike, stated, computed))
    if isinstance(stated, float) and isinstance(computed, int | float):
        return abs(stated - computed) <= TOLERANCE
    return bool(stated == computed)


def _percent(bound: float | None) -> str:
    return "nothing" if bound is None else f"{100 * bound:.2f} %"
