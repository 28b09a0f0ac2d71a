"""An audit as one HTML file that needs nothing else: no network, no script, light and dark, screen and paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from privet.evidence.figures import Audit, Reading, Rebuilt
from privet.report import pictures, words

__all__ = ["render"]

MOST_PANELS = 8
"""Pictures of one private attribute against one task; beyond these the tables serve better."""

_PNG = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/]+={0,2}")
"""The first bytes of a PNG file, in base64: anything else that was rebuilt is shown as text."""

_PURPOSE = {
    "fit": "learns the release",
    "attack": "trains attackers and task models",
    "select": "chooses the strongest of them",
    "test": "gives the figures on this page",
}


class Panel(NamedTuple):
    """One private attribute against one task."""

    reading: Reading
    task: Reading
    points: list[pictures.Point]


class Pair(NamedTuple):
    original: str
    rebuilt: str
    is_picture: bool


def render(audit: Audit, compare: Sequence[Audit] = ()) -> str:
    """The report on `audit`; audits in `compare` (other methods or budgets on the same data) join its picture."""
    panels = _panels(audit, compare)
    rows = [] if panels or audit.utility else _rows(audit, compare)
    return _template().render(
        audit=audit,
        method=words.method(audit),
        data_name=str(audit.data.get("name") or "unnamed data"),
        noun=words.records(audit),
        hidden=_hidden(audit),
        panels=panels[:MOST_PANELS],
        more_panels=max(0, len(panels) - MOST_PANELS),
        rows=rows,
        compare=compare,
        pairs=_pairs(audit.rebuilt),
        parts=_parts(audit),
        games=words.in_game(audit),
        words=words,
        pictures=pictures,
    )


@cache
def _template() -> Template:
    room = Environment(
        loader=PackageLoader("privet.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    room.globals["css"] = Markup(files("privet.report").joinpath("report.css").read_text(encoding="utf-8"))
    return room.get_template("report.html")


def _hidden(audit: Audit) -> list[str]:
    """What the release is meant to hide: as the card says, or else what was attacked."""
    declared = audit.release.get("private")
    names = [declared] if isinstance(declared, str) else [str(name) for name in declared or ()]
    return names or [r.attribute for r in audit.private]


def _panels(audit: Audit, compare: Sequence[Audit]) -> list[Panel]:
    found = []
    for reading in audit.private:
        for task in audit.utility:
            points = pictures.points(audit, compare, reading.attribute, task.attribute)
            if any(p.kind == "release" for p in points):
                found.append(Panel(reading, task, points))
    return found


def _rows(audit: Audit, compare: Sequence[Audit]) -> list[tuple[str, list[pictures.Point]]]:
    """Without a task: one row per private attribute, or per attribute and audit where audits are compared."""
    rows = []
    for reading in audit.private:
        points = pictures.points(audit, compare, reading.attribute, None)
        raw = [p for p in points if p.kind == "raw"]
        for point in points:
            if point.kind != "raw":
                name = f"{reading.attribute}, {point.label}" if compare else reading.attribute
                rows.append((name, [*raw, point]))
    return rows


def _pairs(rebuilt: Rebuilt | None) -> list[Pair]:
    if rebuilt is None:
        return []
    return [
        Pair(original, copy, all(_PNG.fullmatch(side) for side in (original, copy)))
        for original, copy in zip(rebuilt.originals, rebuilt.rebuilt, strict=False)
    ]


def _parts(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Part, what it is for, records, people."""
    parts = audit.data.get("parts")
    if not isinstance(parts, dict):
        return []
    rows = []
    for name, counts in parts.items():
        counted = counts if isinstance(counts, dict) else {"records": counts}
        records, people = (words.number(counted.get(key)) for key in ("records", "people"))
        rows.append((str(name), _PURPOSE.get(name, ""), records, people))
    return rows
