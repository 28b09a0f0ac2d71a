"""The results of a comparison, one row per cell: as values for the page, and as a parquet file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from privet.core.errors import PrivetError
from privet.core.files import replacing
from privet.evidence.figures import Audit, Figure, Finding, Reading
from privet.evidence.formatting import measured
from privet.evidence.several import shared_bound, shared_figure
from privet.release.runtime import read_card
from privet.reporting.sentences import in_game_share
from privet.studies import example_images
from privet.studies.cells import Cell, read_seconds
from privet.studies.scheduler import Job
from privet.studies.study import Refused

# A bound on balanced accuracy that everybody keeps.
MEANS_NOTHING = 0.9995
# The papers attack with one network, trained afterwards: of ours the nearest, the first of these
# that suited the release.
PAPERS_KIND = ("table-1", "recurrent", "network", "res-cl", "resnet", "mlp")
_WORDS = {"question", "method", "label", "dial", "settings", "battery", "state", "error", "cell"}
_WORDS |= {"distortion", "adversaries"}


@dataclass(frozen=True)
class Row:
    """What is known of one cell.

    Parameters:
        cell, state, error: `state` is done, failed (`error` says why), or left: not reached in the
            time that there was.
        audit, card, learn_seconds, audit_seconds: Of a cell that is done.
        shown: Examples of its pictures, by kind (example_images.py).
        figures_at_once: How many figures of the comparison share the confidence of intervals: who
            picks the best of many cells picks luck, too.
        bounds_at_once: How many certified bounds of the comparison share their confidence.
    """

    cell: Cell
    state: str
    error: str = ""
    audit: Audit | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    learn_seconds: float | None = None
    audit_seconds: float | None = None
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    figures_at_once: int = 1
    bounds_at_once: int = 1

    def answers(self, question: str) -> bool:
        """Whether it is done and belongs to this question."""
        return self.state == "done" and self.cell.question == question

    def reading(self, attribute: str) -> Reading | None:
        """What was read of an attribute from the release."""
        readings = () if self.audit is None else self.audit.readings
        return next((r for r in readings if r.attribute == attribute and r.released), None)

    def score(self, attribute: str) -> Figure | None:
        """Of the strongest adversary, or of the best task model; None where it was not measured.

        The interval holds at once with those of all figures of the comparison.
        """
        reading = self.reading(attribute)
        if reading is None or not measured(reading.worst.score):
            return None
        return shared_figure(reading.worst.score, self.figures_at_once)

    def finding(self, attribute: str, adversary: str = "") -> Finding | None:
        """Of one adversary by its name; of the papers' kind of network where nobody is named."""
        reading = self.reading(attribute)
        direct = () if reading is None else reading.released
        findings = {f.adversary: f for f in direct if f.source == "released"}
        names = (adversary,) if adversary else PAPERS_KIND
        return next((findings[name] for name in names if name in findings), None)

    def certified(self, attribute: str) -> float | None:
        """What no adversary can beat that sees one release, by the audit's certificate, at once
        with all bounds of the comparison, or by the card's epsilon; None: nothing is."""
        certificates = () if self.audit is None else self.audit.certificates
        plain = [c for c in certificates if c.is_plain and c.releases == 1]
        guessed = [c for c in plain if c.attribute == attribute][:1]
        bounds = [shared_bound(certificate, self.bounds_at_once) for certificate in guessed]
        claim = self.card.get("certificate")
        if isinstance(claim, Mapping) and claim.get("kind") == "local-dp":
            bounds.append(claim.get("bounds", {}).get(attribute))
        return min((b for b in bounds if b is not None and b < MEANS_NOTHING), default=None)

    def in_game(self, attribute: str) -> float | None:
        """What the method's own adversary reached."""
        known = in_game_share(self.card, attribute)
        return None if known is None else known[1]


def rows(cells: Sequence[Cell], jobs: Mapping[str, Job]) -> list[Row]:
    """A row per cell, with what its folder holds; a method's budgets together."""
    first: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        first.setdefault((cell.question, cell.method, cell.label), len(first))

    def place(cell: Cell) -> tuple[int, float]:
        return first[cell.question, cell.method, cell.label], cell.budget or 0.0

    results = [_row(cell, jobs[cell.key]) for cell in sorted(cells, key=place)]
    return at_once(results)


def at_once(results: Sequence[Row]) -> list[Row]:
    """The same rows, whose figures share one confidence, and whose bounds share another; cells that
    are not done yet count as well, since the best is picked among all."""
    cells = {row.cell.key: row.cell for row in results}.values()
    figures = sum(len(cell.hidden) + len(cell.utility) for cell in cells)
    bounds = sum(len(cell.hidden) for cell in cells if not cell.is_raw)
    return [replace(row, figures_at_once=figures, bounds_at_once=bounds) for row in results]


def _row(cell: Cell, job: Job) -> Row:
    if job.state != "done":
        return Row(cell, "failed" if job.state == "failed" else "left", job.error)
    folder = job.folder
    try:
        audit = Audit.load(folder / "audit" / "audit.json")
        card = {} if cell.is_raw else read_card(folder / "release")
    except PrivetError as error:
        return Row(cell, "failed", f"{error} Remove {folder.name} from cells/ to do it again.")
    learned, attacked = (read_seconds(folder / name) for name in ("learned.json", "done.json"))
    shown = example_images.read(folder / "pictures.json")
    return Row(cell, "done", "", audit, card, learned, attacked, shown)


def flat(row: Row) -> dict[str, Any]:
    """The row as columns; `private.A.score` is the worst adversary's on A, `utility.C.score` the
    best model's for C, `adversaries` every one's."""
    cell, distortion = row.cell, row.card.get("distortion")
    columns: dict[str, Any] = {
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
        "figures_at_once": row.figures_at_once,
        "bounds_at_once": row.bounds_at_once,
        "distortion": None if distortion is None else json.dumps(distortion),
    }
    everybody = {}
    for role, names in (("private", cell.hidden), ("utility", cell.utility)):
        for name in names:
            if (reading := row.reading(name)) is not None:
                columns |= _headline(row, reading, f"{role}.{name}", role == "private")
                everybody[name] = [_every_figure(finding) for finding in reading.released]
    if row.audit is None:
        return columns
    for one in row.audit.fairness:
        columns |= _figures(f"fairness.{one.task}.{one.by}", one.released)
    for attack in row.audit.people:
        columns |= _figures(f"people.{attack.attack}", attack.figures)
    columns |= _figures("information", row.audit.information)
    return columns | {"adversaries": json.dumps(everybody)}


def _headline(row: Row, reading: Reading, head: str, private: bool) -> dict[str, Any]:
    alone = reading.worst.score
    score = row.score(reading.attribute) or alone
    columns = {
        "adversary": reading.worst.called,
        "score": score.value,
        "low": score.low,
        "high": score.high,
        "low_alone": alone.low,
        "high_alone": alone.high,
        "chance": score.chance,
        "n": score.n,
        "plain": reading.worst.plain.value,
    }
    if private:
        columns["certified"] = row.certified(reading.attribute)
        columns["certified_alone"] = replace(row, bounds_at_once=1).certified(reading.attribute)
        columns["in_game"] = row.in_game(reading.attribute)
    return {f"{head}.{key}": value for key, value in columns.items()}


def _figures(head: str, figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        f"{head}.{key}{end}": value
        for key, f in figures.items()
        for end, value in (("", f.value), (".low", f.low), (".high", f.high))
    }


def _every_figure(one: Finding) -> dict[str, Any]:
    score, plain = one.score, one.plain
    return {
        "adversary": one.adversary,
        "title": one.called,
        "score": [score.value, score.low, score.high],
        "plain": [plain.value, plain.low, plain.high],
        "measure": score.measure,
        "n": score.n,
    }


def write_parquet(path: Path, results: Sequence[Row], refused: Sequence[Refused] = ()) -> None:
    """A row per cell, and one per method that does not take the data: its state is `refused`, its
    error says why."""
    others = [
        {
            "question": one.question,
            "method": one.method,
            "label": one.label,
            "seed": 0,
            "state": "refused",
            "error": one.reason,
        }
        for one in refused
    ]
    frame = pd.DataFrame([*map(flat, results), *others])
    for name in frame.columns:  # a column of nothing has a type, too
        words = name in _WORDS or name.endswith(".adversary")
        frame[name] = frame[name].astype(
            "string" if words else "int64" if name == "seed" else "float64"
        )
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)
