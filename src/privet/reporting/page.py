"""An audit as one HTML file that needs nothing else: no network, no script, light and dark, screen
and paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from privet.core.files import write_text
from privet.evidence import formatting as numbers
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Figure, Reading, Rebuilt
from privet.reporting import audit_plots, certificate, measures, sections
from privet.reporting import sentences as words

__all__ = ["render", "render_certificate"]

MOST_PANELS = 8
"""Pictures of one private attribute against one task; beyond these the tables serve better."""

MOST_UNDECLARED = 12
"""Undeclared attributes shown at once; the rest unfolds."""

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
    points: list[audit_plots.Alternative]


class Example(NamedTuple):
    """One original, and what each decoder made of it."""

    original: str
    rebuilt: list[tuple[str, str]]
    """Decoder, and its copy."""
    is_picture: bool


def render(audit: Audit, compare: Sequence[Audit] = (), pages: Sequence[str] = ()) -> str:
    """The report on `audit`; audits in `compare` (other methods or budgets on the same data) join
    its picture, and where they have `pages` of their own, in the same order, these are linked."""
    panels = _panels(audit, compare)
    rows = [] if panels or audit.utility else _rows(audit, compare)
    return (
        jinja()
        .get_template("report.html")
        .render(
            audit=audit,
            method=words.method(audit),
            data_name=str(audit.data.get("name") or "unnamed data"),
            noun=words.records(audit),
            hidden=_hidden(audit),
            panels=panels[:MOST_PANELS],
            more_panels=max(0, len(panels) - MOST_PANELS),
            rows=rows,
            compare=compare,
            pages={str(number): page for number, page in enumerate(pages, 1)},
            examples=_examples(audit.rebuilt),
            parts=_parts(audit),
            games=words.in_game(audit),
            undeclared=sections.ranked(audit),
            most_undeclared=MOST_UNDECLARED,
            certificates=audit.certificates,
            readings={r.attribute: r for r in audit.private},
        )
    )


def report(
    audit: Audit, path: str | Path, compare: Sequence[Audit] = (), pages: Sequence[str] = ()
) -> None:
    """Write the report on `audit` to `path`: one HTML file that needs nothing else.

    Audits in `compare` join its picture; `pages` are the reports on those, in the same order.
    """
    write_text(Path(path), render(audit, compare, pages))


def render_certificate(found: Certification) -> str:
    """The page of `privet certify`."""
    hidden = [str(name) for name in found.release.get("private") or ()]
    return (
        jinja()
        .get_template("certificate.html")
        .render(
            found=found,
            certificates=found.certificates,
            readings={},
            method=str(
                found.release.get("title") or found.release.get("method") or "an unnamed method"
            ),
            data_name=str(found.data.get("name") or "unnamed data"),
            hidden=hidden,
            target=certificate.target_sentence(found),
            panels=[
                name
                for name in hidden
                if found.curve and any(step.bounds.get(name) is not None for step in found.curve)
            ][:MOST_PANELS],
        )
    )


@cache
def jinja() -> Environment:
    pages = Environment(
        loader=PackageLoader("privet.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals["css"] = Markup(
        files("privet.reporting").joinpath("templates", "report.css").read_text(encoding="utf-8")
    )
    pages.filters["held"] = lambda text: str(text).replace(
        " %", "\u00a0%"
    )  # a number keeps its sign when lines break
    pages.globals.update(
        words=words,
        numbers=numbers,
        measures=measures,
        sections=sections,
        plots=audit_plots,
    )
    pages.globals["certificate"] = certificate
    return pages


def _hidden(audit: Audit) -> list[str]:
    """What the release is meant to hide: as the card says, or else what was attacked."""
    declared = audit.release.get("private")
    names = [declared] if isinstance(declared, str) else [str(name) for name in declared or ()]
    return names or [r.attribute for r in audit.private]


def _panels(audit: Audit, compare: Sequence[Audit]) -> list[Panel]:
    found = []
    for reading in audit.private:
        for task in audit.utility:
            points = audit_plots.alternatives(audit, compare, reading.attribute, task.attribute)
            if any(p.kind == "release" for p in points):
                found.append(Panel(reading, task, points))
    return found


def _rows(
    audit: Audit, compare: Sequence[Audit]
) -> list[tuple[str, audit_plots.Alternative, Figure | None]]:
    """Where audits without a task are compared: per private attribute, every release and the raw
    figure."""
    rows = []
    for reading in audit.private if compare else ():
        shown = audit_plots.alternatives(audit, compare, reading.attribute, None)
        raw = next((one.private for one in shown if one.kind == "raw"), None)
        rows += [(reading.attribute, one, raw) for one in shown if one.kind != "raw"]
    return rows


def _examples(rebuilt: Sequence[Rebuilt]) -> list[Example]:
    """Originals with the copies of all decoders that were given the same ones."""
    copies: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for one in rebuilt:
        for at, (original, copy) in enumerate(zip(one.originals, one.rebuilt, strict=False)):
            copies.setdefault((at, original), []).append((one.decoder, copy))
    return [
        Example(
            original,
            found,
            all(_PNG.fullmatch(side) for side in (original, *(copy for _, copy in found))),
        )
        for (_, original), found in copies.items()
    ]


def _parts(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Part, what it is for, records, people."""
    parts = audit.data.get("parts")
    if not isinstance(parts, dict):
        return []
    rows = []
    for name, counts in parts.items():
        counted = counts if isinstance(counts, dict) else {"records": counts}
        records, people = (numbers.number(counted.get(key)) for key in ("records", "people"))
        rows.append((str(name), _PURPOSE.get(name, ""), records, people))
    return rows
