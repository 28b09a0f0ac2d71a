"""An audit as a few lines of Markdown, for a pull request or a job's summary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from privet.evidence.figures import Audit, Finding, Reading
from privet.report import words

_MARKUP = re.compile(r"""[^\w .,;:%()'"?=+-]|_""")
"""Everything that could mean something in Markdown, HTML or a table's row."""

UNNAMED = "(no name)"


def summary(audit: Audit) -> str:
    """One table for what was hidden, one for what is still possible, and what the audit does not show."""
    noun = words.records(audit)
    parts = [
        f"## Privet audit: {text(words.method(audit))} on {text(str(audit.data.get('name') or 'unnamed data'))}",
        _table("Private attribute", "Worst adversary", audit.private) or "No private attribute was attacked.",
        _table("Task", "Best model", audit.utility) or "No task was tried.",
        f"Balanced accuracy in %, with {text(words.intervals(audit))} intervals, on the {noun} of people nobody learned from. "
        f"Chosen on select, counted on test; battery {text(audit.battery)}.",
        f"**Limits.** {text(' '.join(audit.limits)) or 'None were stated.'}",
    ]
    return "\n\n".join(parts) + "\n"


def text(words: str) -> str:
    """Words that stay words wherever they are set, in a line or a cell.

    Character references cannot open markup, unlike backslashes, which a renderer may read twice.

    >>> text("hair_color | <b>dark</b>")
    'hair&#95;color &#124; &#60;b&#62;dark&#60;&#47;b&#62;'
    """
    visible = "".join(" " if unicodedata.category(c).startswith("C") else c for c in words)
    plain = _MARKUP.sub(lambda found: f"&#{ord(found[0])};", " ".join(visible.split()))
    return plain.replace("&#64;", "&#64;&#8203;")  # GitHub looks for @names after rendering; a space of no width hides them


def _table(what: str, who: str, readings: Sequence[Reading]) -> str:
    if not readings:
        return ""
    head = f"| {what} | {who} | Released | Raw | Guessing | Test records |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(_row(reading))} |" for reading in readings)


def _row(reading: Reading) -> list[str]:
    name = text(reading.attribute) or UNNAMED
    if not reading.released:
        return [name, "none was run", words.UNKNOWN, words.UNKNOWN, words.UNKNOWN, "0"]
    worst = reading.worst
    released = _figure(worst, strong=True)
    if words.measured(worst.balanced) and worst.balanced.is_chance:
        released += ", not distinguishable from guessing"
    raw = _figure(reading.reference) if reading.raw else words.UNKNOWN
    return [name, text(worst.adversary) or UNNAMED, released, raw, words.percent(worst.balanced.chance), words.number(worst.balanced.n)]


def _figure(finding: Finding, strong: bool = False) -> str:
    if not words.measured(finding.balanced):
        return words.UNKNOWN
    value = words.percent(finding.balanced.value)
    return f"{f'**{value}**' if strong else value} ({words.between(finding.balanced)})"
