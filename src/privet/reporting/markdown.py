"""An audit as a few lines of Markdown (templates/report.md), for a pull request or a job."""

from __future__ import annotations

import re
import unicodedata

from privet.evidence.figures import Audit
from privet.evidence.verdict import verdicts
from privet.reporting.page import jinja
from privet.reporting.sentences import records
from privet.reporting.signers import said_by

# Everything that could mean something in Markdown, HTML or a table's row.
_MARKUP = re.compile(r"""[^\w .,;:%()'"?=+-]|_""")


def summary(audit: Audit) -> str:
    """One table for what was hidden, one for what is still possible, what else was found, and what
    the audit does not show."""
    page = jinja().get_template("report.md")
    by = said_by(audit, "whoever ran this audit")
    made = page.render(audit=audit, noun=records(audit), text=text, by=by, judged=verdicts(audit))
    return re.sub(r"\n{3,}", "\n\n", made).strip() + "\n"


def text(words: str) -> str:
    """Words that stay words wherever they are set, in a line or a cell.

    Character references cannot open markup, unlike backslashes, which a renderer may read twice.

    >>> text("hair_color | <b>dark</b>")
    'hair&#95;color &#124; &#60;b&#62;dark&#60;&#47;b&#62;'
    """
    visible = "".join(" " if unicodedata.category(c).startswith("C") else c for c in words)
    plain = _MARKUP.sub(lambda match: f"&#{ord(match[0])};", " ".join(visible.split()))
    # GitHub looks for @names after rendering; a space of no width hides them.
    return plain.replace("&#64;", "&#64;&#8203;")
