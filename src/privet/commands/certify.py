"""`privet certify`: bound what any adversary can read from a release, and write the certificate."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from privet.auditing.certify import RECORDS, refuse_known
from privet.auditing.certify import certify as certified
from privet.auditing.signatures import Signer
from privet.auditing.signatures import sign as signed
from privet.commands.logs import certificate_figures, open_log
from privet.commands.reading import read
from privet.core.errors import PrivetError
from privet.core.files import results_folder, write_text
from privet.core.run_log import logged
from privet.core.settings import names
from privet.data.checks import check_data, input_columns, serious
from privet.data.dataset import Dataset
from privet.data.looks import look_at_test
from privet.data.schema_file import Layout
from privet.data.sources import load
from privet.evidence.certificate.values import Certification
from privet.release.release import Release
from privet.release.strangers import is_trusted, trust
from privet.reporting.page import render_certificate


class Scope(NamedTuple):
    """Of whom the bounds of a certificate are, and what an adversary may know and see.

    Parameters:
        given: What is known beside the release: attributes, each by itself, several at once with +
            between them; the tasks where it is left out.
        records: How many records of a person are seen; a bound for each.
        new_people: All people of the data are new to the release, and all are certified on; a split
            column is not looked at.
    """

    given: str | Iterable[str] = ()
    records: tuple[int, ...] = RECORDS
    new_people: bool = False


def certify(  # noqa: PLR0913 - a verb has as many parameters as options
    release: str | Path | Release,
    data: str | Path | Dataset,
    utility: str | Iterable[str] = (),
    *,
    confidence: float = 0.99,
    target: float | None = None,
    out: str | Path | None = None,
    schema: str | Path | Layout | None = None,
    scope: Scope | None = None,
    sign: Signer | None = None,
    seed: int = 0,
    device: str = "auto",
    command: str | None = None,
    log: str | Path | None = None,
) -> Certification:
    """Bound the balanced accuracy of every adversary, whatever its design, from people the release
    has not seen.

    release: a Release, or the folder of one, that adds Gaussian noise to a code of few numbers or
        releases one of a few symbols.
    data: what `privet.load` takes, or a Dataset.
    utility: tasks to draw beside the bound, at other noise levels too; needs `out`.
    confidence: how sure all bounds shall be at once.
    target: choose the smallest noise for this bound; the release with that noise is written to
        `out`, the given one is left as it is.
    out: a folder for certificate.json and certificate.html.
    schema: a TOML file that says what the columns are.
    scope: of whom the bounds are, and what an adversary may know and see.
    sign: who signs the certificate: a file with a key, and a name.
    seed: on one machine's CPU the same seed gives the same figures.
    device: cpu, cuda or auto.
    command: what to write into the card as the command that made it.
    log: a file FILE.jsonl, or mlflow:URI: every bound, and the files.

    >>> import privet
    >>> data = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    >>> bound = certify(release, data).certificates[0].bound
    """
    scope = scope or Scope()
    source = None if isinstance(release, Release) else Path(release)
    folder = None if out is None else Path(out)
    tasks = names(utility)
    if tasks and folder is None:
        raise PrivetError("What noise does to tasks is drawn in a page: give --out as well.")
    if folder is not None and source is not None and folder.resolve() == source.resolve():
        raise PrivetError(f"{folder} holds the release itself: choose another --out.")
    if sign is not None:
        sign.check()
    loaded = release if isinstance(release, Release) else Release.load(release)
    if not isinstance(data, Dataset):
        data = _load_new(loaded, data, schema) if scope.new_people else read(data, schema)
    elif scope.new_people:
        raise PrivetError("A Dataset has its parts already: give a file, or put all into test.")
    notes = open_log(log)
    said = {
        "release": str(loaded.card.get("sha256", {}).get("graph", "")),
        "private": loaded.private,
        "utility": tasks,
        "confidence": confidence,
        "target": target,
        "data": data.name,
        "fingerprint": data.fingerprint,
        "seed": seed,
        "out": None if out is None else str(out),
    }
    room = results_folder(folder) if folder is not None else nullcontext()
    with logged(notes, "certify", said), room:
        made, certificate = certified(
            loaded,
            data,
            tasks,
            given=names(scope.given),
            records=scope.records,
            confidence=confidence,
            target=target,
            curve=folder is not None,
            device=device,
            seed=seed,
        )
        columns = input_columns(loaded.schema)
        certificate = replace(
            certificate,
            checks=serious(check_data(data, loaded.private, tasks, columns)),
            looks=look_at_test(data, "certify", loaded.card.get("sha256")),
        )
        if folder is not None:
            page = render_certificate(certificate)  # where it fails, nothing is written
            if target is not None:
                made.card["command"] = command
                made.save(folder, made.graph)
                if made.graph is not None and is_trusted(loaded.graph or b""):
                    trust(made.graph)  # one's own graph with other noise
                hashes = {**certificate.release, "sha256": made.card["sha256"]}
                certificate = replace(certificate, release=hashes)
        if sign is not None:
            certificate = signed(certificate, sign)
            page = render_certificate(certificate)
        if folder is not None:
            certificate.save(folder / "certificate.json")
            write_text(folder / "certificate.html", page)
        if notes is not None:
            written = ("certificate.json", "certificate.html") if folder is not None else ()
            notes.end(certificate_figures(certificate), [Path(str(out)) / n for n in written])
    return certificate


def _load_new(release: Release, spec: str | Path, schema: str | Path | Layout | None) -> Dataset:
    """People who are all new to the release, as far as that can be told."""
    usual = None
    with suppress(PrivetError):  # a split column may leave some part without people
        usual = load(spec, schema)
    if usual is not None:
        refuse_known(release, usual)
    return read(spec, schema, new_people=True)
