"""An audit in a notebook: a table at a glance, and all findings as a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import pandas as pd

from privet.evidence.figures import Audit, Finding, Reading
from privet.evidence.verdict import overall, verdicts
from privet.reporting.certificate import headline
from privet.reporting.sentences import records, sentence

__all__ = ["Audit", "audit_frame", "audit_html"]


def audit_frame(audit: Audit) -> pd.DataFrame:
    """One row for every adversary and every attribute that it read: what it saw, its score with
    interval and n, and whether it is the one that the report believes."""
    rows = [
        _row(reading, finding)
        for reading in (*audit.readings, *audit.undeclared)
        for finding in (*reading.released, *reading.others, *reading.raw)
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COLUMNS = (
    "attribute", "role", "source", "adversary", "score", "low", "high", "n", "chance", "measure",
    "plain", "auc", "releases", "records", "columns", "strongest",
)  # fmt: skip


def _row(reading: Reading, finding: Finding) -> dict[str, Any]:
    score = finding.score
    return {
        "attribute": reading.attribute,
        "role": reading.role,
        "source": finding.source,
        "adversary": finding.called,
        **{key: getattr(score, key) for key in ("low", "high", "n", "chance", "measure")},
        "score": score.value,
        "plain": finding.plain.value,
        "auc": finding.auc.value if finding.auc is not None else float("nan"),
        "releases": finding.releases,
        "records": finding.records,
        "columns": ", ".join(finding.columns),
        "strongest": finding is reading.worst if reading.released else False,
    }


def audit_html(audit: Audit) -> str:
    """The audit at a glance: the verdict, the checks of the data, a sentence for each attribute."""
    noun = records(audit)
    checks = "".join(f"<li>{escape(check)}</li>" for check in audit.checks)
    rows = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"
        for cells in _cells(audit, noun)
    )
    method = escape(str(audit.release.get("title") or audit.release.get("method") or "a release"))
    name = escape(str(audit.data.get("name") or "unnamed data"))
    head = f"<b>{method} on {name}</b>, attacked by the battery {escape(audit.battery)}"
    said = "".join(f"<li>{escape(one.sentence)}</li>" for one in verdicts(audit))
    head += f"<p><b>{overall(verdicts(audit)).capitalize()}</b></p><ul>{said}</ul>" if said else ""
    look_first = f"<p><b>Look at the data first:</b></p><ul>{checks}</ul>" if checks else ""
    return f"<div>{head}{look_first}<table>{rows}</table></div>"


def _cells(audit: Audit, noun: str) -> Iterator[tuple[str, str, str, str]]:
    roles = {"private": "hidden", "utility": "task", "undeclared": "not named"}
    for reading in audit.readings:
        certified = headline(audit, reading) if reading.role == "private" else ""
        yield (
            f"<b>{escape(reading.attribute)}</b>",
            roles[reading.role],
            escape(sentence(reading, noun)),
            escape(certified),
        )


# Here and not in evidence, which knows numbers only.
Audit.to_frame = audit_frame
Audit.verdicts = property(verdicts)  # type: ignore[assignment]
Audit._repr_html_ = audit_html
