"""From a user's words to files: read the data, do the work, write the result whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privet.auditor import BATTERIES, audit
from privet.data import load
from privet.errors import PrivetError, unknown
from privet.evidence.figures import Audit
from privet.files import writable_folder, write_text
from privet.game import Run
from privet.methods import method
from privet.release import Release
from privet.report.markdown import summary


def learn_to(
    folder: Path, name: str, spec: str, private: Sequence[str], utility: Sequence[str] = (), *, budget: float | None = None,
    settings: Sequence[str] = (), without: Sequence[str] = (), schema: Path | None = None, seed: int = 0, device: str = "auto",
    resume: bool = False, checkpoint_rounds: int | None = None, command: str | None = None,
) -> Release:  # fmt: skip
    """Learn a release and write it to `folder`. Everything that can be wrong with the words is found before the work starts."""
    chosen = method(name).from_words(settings, budget=budget, seed=seed)
    data = load(spec, schema)
    run = Run(folder, resume, device, rounds_between=checkpoint_rounds)
    chosen.problem(data, private, utility, without, run)
    undo = writable_folder(folder)
    try:
        if not resume and (folder / "checkpoint.safetensors").exists():
            raise PrivetError(f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove it first.")
        release = chosen.fit(data, private, utility, without=without, run=run)
        release.card["command"] = command
        release.save(folder)
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    except BaseException:
        undo()
        raise
    return release


def audit_to(
    folder: Path, release: Path, spec: str, utility: Sequence[str] = (), *, battery: str = "quick", schema: Path | None = None,
    seed: int = 0, device: str = "auto", raw_from: Path | None = None,
) -> Audit:  # fmt: skip
    """Audit the release in a folder, and write audit.json, report.html and summary.md to another."""
    if battery not in BATTERIES:
        raise unknown("battery", battery, BATTERIES)
    loaded, earlier = Release.load(release), None if raw_from is None else Audit.load(raw_from)
    data = load(spec, schema)
    loaded.schema.check(data)
    undo = writable_folder(folder)
    try:
        result = audit(loaded, data, utility, battery, seed=seed, device=device, raw_from=earlier)
        result.save(folder / "audit.json")
        result.report(folder / "report.html")
        write_text(folder / "summary.md", summary(result))
    except BaseException:
        undo()
        raise
    return result
