"""What came out, one row per cell: as values for the page, as a parquet file, and as a table in
words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from privet.core.errors import PrivetError
from privet.core.files import replacing
from privet.evidence.figures import Audit, Figure, Finding, Reading
from privet.evidence.formatting import is_number, measured
from privet.release.runtime import read_card
from privet.studies import cell_pictures as pictures
from privet.studies.cells import Cell, read_seconds
from privet.studies.scheduler import Job
from privet.studies.study import Refused

MEANS_NOTHING = 0.9995
"""A bound on balanced accuracy that everybody keeps."""
PAPERS_KIND = ("table-1", "recurrent", "network", "res-cl", "resnet", "mlp")
"""The papers attack with one network, trained afterwards: of ours the nearest, the first of these
that suited the release."""


@dataclass(frozen=True)
class Row:
    cell: Cell
    state: str
    """done, failed, or left: not reached in the time that there was."""
    error: str = ""
    audit: Audit | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    learn_seconds: float | None = None
    audit_seconds: float | None = None
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def answers(self, question: str) -> bool:
        """Whether it is done and belongs to this question."""
        return self.state == "done" and self.cell.question == question

    def measured(self, *attributes: str) -> bool:
        """Whether there is a figure of each of them."""
        scores = [self.score(name) for name in attributes]
        return all(score is not None and measured(score) for score in scores)

    def reading(self, attribute: str) -> Reading | None:
        found = () if self.audit is None else self.audit.readings
        return next((r for r in found if r.attribute == attribute and r.released), None)

    def score(self, attribute: str) -> Figure | None:
        """Of the strongest adversary, or of the best task model."""
        reading = self.reading(attribute)
        return None if reading is None else reading.worst.score

    def finding(self, attribute: str, adversary: str = "") -> Finding | None:
        """Of one adversary by its name; of the papers' kind of network where nobody is named."""
        reading = self.reading(attribute)
        found = (
            {} if reading is None else {finding.adversary: finding for finding in reading.released}
        )
        return next(
            (found[name] for name in ((adversary,) if adversary else PAPERS_KIND) if name in found),
            None,
        )

    def certified(self, attribute: str) -> float | None:
        """What no adversary can beat that sees one release, by the audit's certificate or by the
        card's epsilon; None: nothing is."""
        found = () if self.audit is None else self.audit.certificates
        bound = next((c.bound for c in found if c.attribute == attribute and c.releases == 1), None)
        own = self.card.get("certificate")
        private = (
            own.get("bounds", {}).get(attribute)
            if isinstance(own, Mapping) and own.get("kind") == "local-dp"
            else None
        )
        told = [b for b in (bound, private) if b is not None and b < MEANS_NOTHING]
        return min(told) if told else None

    def in_game(self, attribute: str) -> float | None:
        """What the method's own adversary said."""
        kept = (self.card.get("in_game") or {}).get(attribute)
        found = kept.get("balanced", kept.get("accuracy")) if isinstance(kept, Mapping) else None
        return float(found) if isinstance(found, int | float) and is_number(found) else None


def rows(cells: Sequence[Cell], jobs: Mapping[str, Job]) -> list[Row]:
    """A row per cell, with what its folder holds; cells come as they are to be worked on, rows with
    a method's budgets together."""
    first: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        first.setdefault((cell.question, cell.method, cell.label), len(first))
    order = sorted(
        cells, key=lambda cell: (first[cell.question, cell.method, cell.label], cell.budget or 0.0)
    )
    return [_row(cell, jobs[cell.key]) for cell in order]


def _row(cell: Cell, job: Job) -> Row:
    if job.state != "done":
        return Row(cell, "failed" if job.state == "failed" else "left", job.error)
    try:
        found = Audit.load(job.folder / "audit" / "audit.json")
        card = {} if cell.is_raw else read_card(job.folder / "release")
    except PrivetError as error:
        return Row(cell, "failed", f"{error} Remove {job.folder.name} from cells/ to do it again.")
    return Row(
        cell,
        "done",
        "",
        found,
        card,
        read_seconds(job.folder / "learned.json"),
        read_seconds(job.folder / "done.json"),
        pictures.read(job.folder / "pictures.json"),
    )


def flat(row: Row) -> dict[str, Any]:
    """The row as columns; `private.A.score` is the worst adversary's on A, `utility.C.score` the
    best model's for C."""
    cell = row.cell
    found: dict[str, Any] = {
        "question": cell.question,
        "method": cell.method,
        "label": cell.label,
        "dial": cell.dial,
        "budget": cell.budget,
        "seed": cell.seed,
        "settings": json.dumps(cell.settings),
        "battery": cell.battery,
        "state": row.state,
        "error": row.error,
        "cell": cell.key,
        "learn_seconds": row.learn_seconds,
        "audit_seconds": row.audit_seconds,
        "distortion": _plain(row.card.get("distortion")),
    }
    for role, names in (("private", cell.hidden), ("utility", cell.utility)):
        for name in names:
            reading = row.reading(name)
            if reading is None:
                continue
            score, head = reading.worst.score, f"{role}.{name}"
            found |= {
                f"{head}.adversary": reading.worst.called,
                f"{head}.score": score.value,
                f"{head}.low": score.low,
                f"{head}.high": score.high,
                f"{head}.chance": score.chance,
                f"{head}.n": score.n,
                f"{head}.plain": reading.worst.plain.value,
            }
            if role == "private":
                found |= {
                    f"{head}.certified": row.certified(name),
                    f"{head}.in_game": row.in_game(name),
                }
    if row.audit is None:
        return found
    for one in row.audit.fairness:
        found |= _figures(f"fairness.{one.task}.{one.by}", one.released)
    for attack in row.audit.people:
        found |= _figures(f"people.{attack.attack}", attack.figures)
    return (
        found
        | _figures("information", row.audit.information)
        | {"adversaries": json.dumps(_everybody(row))}
    )


def _figures(head: str, figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        f"{head}.{key}{end}": value
        for key, f in figures.items()
        for end, value in (("", f.value), (".low", f.low), (".high", f.high))
    }


def _everybody(row: Row) -> dict[str, list[dict[str, Any]]]:
    """What every adversary read of every attribute, and every task model: the headline's columns
    have the strongest only."""
    return {
        name: [_found(f) for f in reading.released]
        for name in (*row.cell.hidden, *row.cell.utility)
        if (reading := row.reading(name))
    }


def _found(one: Finding) -> dict[str, Any]:
    ends = {
        key: [figure.value, figure.low, figure.high]
        for key, figure in (("score", one.score), ("plain", one.plain))
    }
    return {
        "adversary": one.adversary,
        "title": one.called,
        **ends,
        "measure": one.score.measure,
        "n": one.score.n,
    }


def _plain(value: Any) -> str | None:
    """How far records were moved, as the card says it, in JSON."""
    return None if value is None else json.dumps(value)


def write_parquet(path: Path, found: Sequence[Row], refused: Sequence[Refused] = ()) -> None:
    """A row per cell, and one per method that does not take the data: its state is `refused`, its
    error says why."""
    others = [
        {
            "question": r.question,
            "method": r.method,
            "label": r.label,
            "seed": 0,
            "state": "refused",
            "error": r.reason,
        }
        for r in refused
    ]
    frame = pd.DataFrame([*(flat(row) for row in found), *others])
    words = {
        "question",
        "method",
        "label",
        "dial",
        "settings",
        "battery",
        "state",
        "error",
        "cell",
        "distortion",
        "adversaries",
    }
    for name in frame.columns:  # a column of nothing has a type, too
        text = name in words or name.endswith(".adversary")
        frame[name] = frame[name].astype(
            "string" if text else "int64" if name == "seed" else "float64"
        )
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)
