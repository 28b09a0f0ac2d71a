"""An audit as a few lines of Markdown, for a pull request or a job's summary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from privet.evidence.figures import Audit, Finding, Reading
from privet.evidence.formatting import UNKNOWN, between, measured, number, percent
from privet.reporting import certificate, sections
from privet.reporting import sentences as words

_MARKUP = re.compile(r"""[^\w .,;:%()'"?=+-]|_""")
"""Everything that could mean something in Markdown, HTML or a table's row."""

UNNAMED = "(no name)"

MOST_UNDECLARED = 5
"""Undeclared attributes named in the summary."""


def summary(audit: Audit) -> str:
    """One table for what was hidden, one for what is still possible, what else was found, and what
    the audit does not show."""
    noun = words.records(audit)
    variance = (
        ", of numbers the share of variance explained,"
        if any(r.is_number for r in audit.readings)
        else ""
    )
    parts = [
        f"## Privet audit: {text(words.method(audit))} on {text(str(audit.data.get('name') or 'unnamed data'))}",
        _table("Private attribute", "Worst adversary", audit.private)
        or "No private attribute was attacked.",
        _table("Task", "Best model", audit.utility) or "No task was tried.",
        f"Balanced accuracy{variance} in %, with {text(words.intervals(audit))} intervals, on the {noun} of people nobody learned from. "
        f"Chosen on select, counted on test; battery {text(audit.battery)}.",
        *(
            f"**{text(c.attribute) or UNNAMED}.** {text(certificate.short(c))}"
            for c in audit.certificates
            if c.releases == 1
        ),
        _undeclared(audit),
        *(
            f"**{one.attack.capitalize()}.** {text(sections.people_sentence(one, noun))}"
            for one in audit.people
        ),
        f"**Limits.** {text(' '.join(audit.limits)) or 'None were stated.'}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _undeclared(audit: Audit) -> str:
    """What else can be read, in one line."""
    if not audit.undeclared:
        return ""
    found = sections.readable(audit)
    if not found:
        return f"**Nobody named these.** {text(sections.undeclared_sentence(audit))}"
    named = [_beside(r) for r in found[:MOST_UNDECLARED]]
    more = f" and {len(found) - MOST_UNDECLARED} more" if len(found) > MOST_UNDECLARED else ""
    return f"**Also readable, and named by nobody.** {', '.join(named)}{more}."


def _beside(reading: Reading) -> str:
    chance = reading.worst.score.chance
    return f"{text(reading.attribute) or UNNAMED} {_figure(reading.worst)}" + (
        f", guessing {percent(chance)}" if not reading.is_number else ""
    )


def text(words: str) -> str:
    """Words that stay words wherever they are set, in a line or a cell.

    Character references cannot open markup, unlike backslashes, which a renderer may read twice.

    >>> text("hair_color | <b>dark</b>")
    'hair&#95;color &#124; &#60;b&#62;dark&#60;&#47;b&#62;'
    """
    visible = "".join(" " if unicodedata.category(c).startswith("C") else c for c in words)
    plain = _MARKUP.sub(lambda found: f"&#{ord(found[0])};", " ".join(visible.split()))
    return plain.replace(
        "&#64;", "&#64;&#8203;"
    )  # GitHub looks for @names after rendering; a space of no width hides them


def _table(what: str, who: str, readings: Sequence[Reading]) -> str:
    if not readings:
        return ""
    head = f"| {what} | {who} | Released | Raw | Guessing | Test records |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(_row(reading))} |" for reading in readings)


def _row(reading: Reading) -> list[str]:
    name = text(reading.attribute) or UNNAMED
    if not reading.released:
        return [name, "none was run", UNKNOWN, UNKNOWN, UNKNOWN, "0"]
    worst = reading.worst
    released = _figure(worst, strong=True)
    if measured(worst.score) and worst.score.is_chance:
        released += ", not distinguishable from guessing"
    raw = _figure(reading.reference) if reading.raw else UNKNOWN
    return [
        name,
        text(worst.called) or UNNAMED,
        released,
        raw,
        percent(worst.score.chance),
        number(worst.score.n),
    ]


def _figure(finding: Finding, strong: bool = False) -> str:
    if not measured(finding.score):
        return UNKNOWN
    value = percent(finding.score.value)
    return f"{f'**{value}**' if strong else value} ({between(finding.score)})"
