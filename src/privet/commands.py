"""From a user's words to files: read the data, do the work, write the result whole or not at all.

What only attacking or certifying needs is imported there: who learns need not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from privet.core.errors import PrivetError, unknown
from privet.core.files import writable_folder, write_text
from privet.core.progress import console
from privet.data.dataset import Dataset
from privet.data.schema import TableSchema
from privet.data.schema_file import read_layout
from privet.data.sources import load
from privet.methods.method import Problem
from privet.methods.registry import METHODS, method
from privet.release.foreign import from_onnx, from_vectors
from privet.release.release import Release
from privet.reporting.page import report
from privet.train.game import Run

if TYPE_CHECKING:
    from privet.evidence.certificate.values import Certification
    from privet.evidence.figures import Audit


def learn_to(
    folder: Path,
    name: str,
    spec: str,
    private: Sequence[str],
    utility: Sequence[str] = (),
    *,
    budget: float | None = None,
    target: float | None = None,
    settings: Sequence[str] = (),
    without: Sequence[str] = (),
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    resume: bool = False,
    checkpoint_rounds: int | None = None,
    command: str | None = None,
) -> Release:
    """Learn a release and write it to `folder`. Everything that can be wrong with the words is
    found before the work starts."""
    chosen = method(name).from_words(settings, budget=_dialled(name, budget, target), seed=seed)
    data = load(spec, schema)
    run = Run(folder, resume, device, rounds_between=checkpoint_rounds)
    problem = chosen.problem(data, private, utility, without, run)
    unused = _unused(problem, [*private, *utility, *without])
    if unused:
        said = f"Left out of the input: {', '.join(unused)}. No two people share a value there, and the card would name theirs."
        console.print(said, markup=False, highlight=False, soft_wrap=True)
    undo = writable_folder(folder)
    try:
        if not resume and (folder / "checkpoint.safetensors").exists():
            raise PrivetError(
                f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove it first."
            )
        release = chosen.fit(data, private, utility, without=without, run=run)
        release.card["command"] = command
        release.save(folder)
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    except BaseException:
        undo()
        raise
    return release


def _unused(problem: Problem, without: Sequence[str]) -> list[str]:
    """Columns that were not left out by the user, and are not in the input."""
    if not isinstance(problem.schema, TableSchema):
        return []
    used = {column.name for column in problem.schema.columns}
    return [
        name for name in problem.data.records.columns if name not in used and name not in without
    ]


def audit_to(
    folder: Path,
    release: Path,
    spec: str | None = None,
    utility: Sequence[str] = (),
    *,
    private: Sequence[str] = (),
    card: Path | None = None,
    battery: str = "quick",
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    raw_from: Path | None = None,
    text: str | None = None,
) -> Audit:
    """Audit a release, and write audit.json, report.html and summary.md to `folder`.

    `release` is a folder that `privet learn` wrote, an ONNX file, or a parquet file of records that
    are already released. Where records are vectors with texts beside them, in the column `text`, it
    is asked too which words were in those.
    """
    from privet.auditing.audit import audit
    from privet.auditing.batteries import BATTERIES
    from privet.evidence.figures import Audit
    from privet.release.foreign_texts import texts_of_vectors
    from privet.reporting.markdown import summary

    if battery not in BATTERIES:
        raise unknown("battery", battery, BATTERIES)
    earlier = None if raw_from is None else Audit.load(raw_from)
    loaded, data = _release_and_data(release, spec, private, utility, card, schema, text)
    loaded.schema.check(data)
    bare = release.suffix == ".parquet"
    texts = None if data.modality == "text" else texts_of_vectors(spec or release, data, text)
    undo = writable_folder(folder)
    try:
        result = audit(
            loaded,
            data,
            utility,
            battery,
            private=private,
            seed=seed,
            device=device,
            raw_from=earlier,
            raw=not bare,
            rebuild=not bare,
            texts=texts,
        )
        result.save(folder / "audit.json")
        report(result, folder / "report.html")
        write_text(folder / "summary.md", summary(result))
    except BaseException:
        undo()
        raise
    return result


def certify_to(
    folder: Path | None,
    release: Path,
    spec: str,
    utility: Sequence[str] = (),
    *,
    confidence: float = 0.99,
    target: float | None = None,
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    command: str | None = None,
) -> Certification:
    """Certify a release, and write certificate.json and certificate.html to `folder`, if there is
    one.

    With a `target`, the release with the noise chosen for it is written there too; the given one is
    left as it is.
    """
    from privet.auditing.certify import certification
    from privet.reporting.page import render_certificate

    if utility and folder is None:
        raise PrivetError("What noise does to tasks is drawn in a page: give --out as well.")
    if folder is not None and folder.resolve() == release.resolve():
        raise PrivetError(f"{folder} holds the release itself: choose another --out.")
    loaded, data = Release.load(release), load(spec, schema)
    undo = writable_folder(folder) if folder is not None else lambda: None
    try:
        made, found = certification(
            loaded,
            data,
            utility,
            confidence=confidence,
            target=target,
            curve=folder is not None,
            device=device,
            seed=seed,
        )
        if folder is not None:
            page = render_certificate(found)
            if target is not None:
                made.card["command"] = command
                made.save(folder)
                found = replace(found, release={**found.release, "sha256": made.card["sha256"]})
            found.save(folder / "certificate.json")
            write_text(folder / "certificate.html", page)
    except BaseException:
        undo()
        raise
    return found


def _dialled(name: str, budget: float | None, target: float | None) -> float | None:
    """What to turn the method's dial to: --target is the plain name of --budget where the dial is a
    certified bound."""
    if target is None:
        return budget
    if method(name).dial != "target":
        aiming = " and ".join(other.name for other in METHODS.values() if other.dial == "target")
        raise PrivetError(
            f"The method {name} aims at no certified bound: --target is for {aiming}."
        )
    if budget is not None:
        raise PrivetError(
            f"--budget and --target are the same to the method {name}: give one of them."
        )
    return target


def _release_and_data(
    path: Path,
    spec: str | None,
    private: Sequence[str],
    utility: Sequence[str],
    card: Path | None,
    schema: Path | None,
    text: str | None,
) -> tuple[Release, Dataset]:
    if path.suffix == ".parquet":
        if spec is not None:
            raise PrivetError(
                f"{path.name} holds released records with their labels: leave out --data."
            )
        return from_vectors(path, private, utility, read_layout(schema), text)
    if spec is None:
        raise PrivetError("Say which data to attack the release with: --data SPEC.")
    if path.suffix == ".onnx":
        data = load(spec, schema)
        return from_onnx(path, data, private, card, utility), data
    if card is not None:
        raise PrivetError(
            "--card is for an ONNX file from elsewhere; a release folder has its own card."
        )
    loaded = Release.load(path)
    absent = set(private) - set(loaded.private)
    if absent:
        raise PrivetError(
            f"The release does not say that it hides '{min(absent)}': it hides {', '.join(loaded.private) or 'nothing'}."
        )
    return loaded, load(spec, schema)
