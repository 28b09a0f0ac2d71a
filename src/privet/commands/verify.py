"""`privet verify`: check a certificate or an audit against a release, and against data; and the
keys that auditors sign with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.auditing.signatures import Signer, make_key, read_document
from privet.auditing.signatures import sign as signed
from privet.auditing.verify import Verification
from privet.auditing.verify import verify as verified
from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.data.dataset import Dataset
from privet.data.schema_file import read_layout
from privet.data.sources import load
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit
from privet.release.release import Release
from privet.reporting.markdown import summary
from privet.reporting.page import render, render_certificate

__all__ = ["make_key", "sign", "verify"]


def verify(
    document: str | Path | Certification | Audit,
    release: str | Path | Release,
    data: str | Path | Dataset | None = None,
    *,
    schema: str | Path | None = None,
    signed: bool = False,
    key: str = "",
) -> Verification:
    """Check that a certificate or an audit is about a release, who signed it and, with the data,
    that every bound of a certificate comes out again.

    document: a certificate or an audit, its file, or the folder that holds it.
    release: a Release, or the folder of one.
    data: what `privet.load` takes, or a Dataset; read as new people where the certificate was made
        on such.
    schema: a TOML file that says what the columns are.
    signed: whether it must be signed.
    key: fingerprint of the key that it must be signed with.

    >>> import privet
    >>> people = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(people, private=["u"])
    >>> verify(privet.certify(release, people), release, signed=True).ok
    False
    """
    if isinstance(document, str | Path):
        document = _file(Path(document))
    loaded = release if isinstance(release, Release) else Release.load(release)
    if isinstance(data, str | Path):
        about = _about_data(document)
        layout = replace(read_layout(schema), people=_asked_people(about))
        data = load(data, layout, new_people=bool(about.get("new_people")))
    return verified(document, loaded, data, signed=signed, key=key)


def sign(document: str | Path, key: str | Path, auditor: str, *, to_publish: bool = False) -> Path:
    """Sign an audit or a certificate in its file, and write its page again; returns the file.

    document: the file, or the folder that holds it.
    key: the file of a secret key.
    auditor: the name to sign with.
    to_publish: take out the records of *test* people that an audit shows, as publishing it in a
        campaign does; a signature of more would not fit what is published.
    """
    path = _file(Path(document))
    signer = Signer(key, auditor)
    if "battery" in read_document(path):
        audit = Audit.load(path)
        if to_publish:
            shown = [replace(one, originals=(), rebuilt=()) for one in audit.rebuilt]
            audit = replace(audit, rebuilt=tuple(shown))
        audit = signed(audit, signer)
        audit.save(path)
        pages = {"report.html": render(audit), "summary.md": summary(audit)}
    else:
        certificate = signed(Certification.load(path), signer)
        certificate.save(path)
        pages = {"certificate.html": render_certificate(certificate)}
    for name, page in pages.items():
        if path.with_name(name).exists():
            write_text(path.with_name(name), page)
    return path


def _file(path: Path) -> Path:
    """The certificate of a folder, or its audit."""
    if not path.is_dir():
        return path
    names = [n for n in ("certificate.json", "audit.json") if (path / n).exists()]
    if not names:
        raise PrivetError(f"There is no certificate.json and no audit.json in {path}.")
    return path / names[0]


def _about_data(document: Path | Certification | Audit) -> dict[str, Any]:
    """What it says of its data."""
    about = read_document(document).get("data") if isinstance(document, Path) else document.data
    return about if isinstance(about, dict) else {}


def _asked_people(about: dict[str, Any]) -> int | None:
    """How many people were asked for, where the data was a sample."""
    sampled = about.get("sampled")
    asked = sampled.get("asked") if isinstance(sampled, dict) else None
    return asked if isinstance(asked, int) and asked > 0 else None
