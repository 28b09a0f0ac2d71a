"""An audit as one HTML file that needs nothing else: no network, no script, light and dark, screen
and paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from privet.core.files import write_text
from privet.evidence import formatting
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Figure, Reading, Rebuilt
from privet.reporting import (
    audit_plots,
    certificate,
    certificate_plots,
    certificate_screen,
    first_screen,
    measures,
    sections,
    sentences,
)
from privet.reporting.audit_plots import Alternative, alternatives
from privet.reporting.figure_axis import figure_axis
from privet.reporting.signers import said_by

# Pictures of one private attribute against one task; beyond these the tables serve better.
MOST_PANELS = 8

# The first bytes of a PNG file, in base64: anything else that was rebuilt is shown as text.
_PNG = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/]+={0,2}")


# PNG files by what they show: before, after, ...
Pictures = Mapping[str, Sequence[bytes]]


def report(
    audit: Audit,
    path: str | Path,
    compare: Sequence[Audit] = (),
    pages: Sequence[str] = (),
    pictures: Pictures | None = None,
) -> None:
    """Write the report on `audit` to `path`: one HTML file that needs nothing else.

    Audits in `compare` join its picture; `pages` are the reports on those, in the same order.
    `pictures` shows records before and after, where what leaves is a picture.
    """
    write_text(Path(path), render(audit, compare, pages, pictures))


def render(
    audit: Audit,
    compare: Sequence[Audit] = (),
    pages: Sequence[str] = (),
    pictures: Pictures | None = None,
) -> str:
    """The report on `audit`; audits in `compare` (other methods or budgets on the same data) join
    its picture, and where they have `pages` of their own, in the same order, these are linked.
    `pictures` are PNG files by what they show, as many of each."""
    declared = audit.release.get("private") or [r.attribute for r in audit.private]
    panels = _panels(audit, compare)
    page = jinja().get_template("report.html")
    return page.render(
        audit=audit,
        method=sentences.method(audit),
        data_name=str(audit.data.get("name") or "unnamed data"),
        noun=sentences.records(audit),
        hidden=[declared] if isinstance(declared, str) else [str(name) for name in declared],
        panels=panels[:MOST_PANELS],
        more_panels=max(0, len(panels) - MOST_PANELS),
        rows=[] if audit.utility else _rows(audit, compare),
        compare=compare,
        pages={str(number): page for number, page in enumerate(pages, 1)},
        examples=_examples(audit.rebuilt),
        drawn=_drawn(pictures or {}),
        judged=first_screen.attributes(audit),
        games=sentences.in_game(audit),
        undeclared=sections.ranked(audit),
        certificates=audit.certificates,
        readings={r.attribute: r for r in audit.private},
        by=said_by(audit, "whoever ran this audit"),
    )


def render_certificate(certification: Certification) -> str:
    """The page of `privet certify`."""
    card = certification.release
    hidden = [str(name) for name in card.get("private") or ()]
    steps = certification.curve
    drawn = [n for n in hidden if any(step.bounds.get(n) is not None for step in steps)]
    page = jinja().get_template("certificate.html")
    by = said_by(certification, "whoever ran this certification")
    return page.render(
        certification=certification,
        certificates=certification.certificates,
        readings={},
        method=str(card.get("title") or card.get("method") or "an unnamed method"),
        data_name=str(certification.data.get("name") or "unnamed data"),
        hidden=hidden,
        target=certificate.target_sentence(certification),
        panels=drawn[:MOST_PANELS],
        by=by,
        judged=certificate_screen.judged(certification, by),
    )


@cache
def jinja() -> Environment:
    """The templates of all pages, with what they call."""
    pages = Environment(
        loader=PackageLoader("privet.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A number keeps its sign when lines break.
    pages.filters["held"] = lambda text: str(text).replace(" %", "\u00a0%")
    pages.globals.update(
        sentences=sentences,
        numbers=formatting,
        measures=measures,
        sections=sections,
        plots=audit_plots,
        certificate=certificate,
        certificate_plots=certificate_plots,
        first=first_screen,
        figure_axis=figure_axis,
    )
    return pages


def _panels(
    audit: Audit, compare: Sequence[Audit]
) -> list[tuple[Reading, Reading, list[Alternative]]]:
    """Every private attribute against every task, where the release was measured."""
    panels = []
    for reading in audit.private:
        for task in audit.utility:
            shown = alternatives(audit, compare, reading.attribute, task.attribute)
            if any(one.kind == "release" for one in shown):
                panels.append((reading, task, shown))
    return panels


def _rows(audit: Audit, compare: Sequence[Audit]) -> list[tuple[str, Alternative, Figure | None]]:
    """Where audits without a task are compared: per private attribute, every release and the raw
    figure."""
    rows = []
    for reading in audit.private if compare else ():
        shown = alternatives(audit, compare, reading.attribute, None)
        raw = next((one.private for one in shown if one.kind == "raw"), None)
        rows += [(reading.attribute, one, raw) for one in shown if one.kind != "raw"]
    return rows


def _drawn(pictures: Pictures) -> list[list[tuple[str, str]]]:
    """For every record, its pictures in base64 with what they show."""
    rows = [
        [(words, base64.b64encode(file).decode()) for file in files]
        for words, files in pictures.items()
    ]
    return [list(one) for one in zip(*rows, strict=True)]


def _examples(rebuilt: Sequence[Rebuilt]) -> list[tuple[str, list[tuple[str, str]], bool]]:
    """Originals, the copies of all decoders that were given the same ones by the decoders' names,
    and whether all are pictures."""
    copies: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for one in rebuilt:
        for at, (original, copy) in enumerate(zip(one.originals, one.rebuilt, strict=False)):
            copies.setdefault((at, original), []).append((one.decoder, copy))
    examples = []
    for (_, original), made in copies.items():
        pictures = all(_PNG.fullmatch(side) for side in (original, *(copy for _, copy in made)))
        examples.append((original, made, pictures))
    return examples
