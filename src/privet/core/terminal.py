"""Text of strangers in a terminal: control codes, marks that turn the direction of writing and
line breaks are shown as escapes, so that nobody can write over or beside what Privet says."""

from __future__ import annotations

import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

# Control codes, invisible marks, half characters, private and unassigned ones, and line breaks.
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def escaped(text: object) -> str:
    """One line of text from elsewhere, everything that is not seen as itself written as an escape.

    >>> print(escaped("yes\\x1b[1A\\r(seen before)\\u202e\\n"))
    yes\\x1b[1A\\x0d(seen before)\\u202e\\x0a
    """
    return "".join(_character(c) for c in str(text))


def escaped_lines(text: str) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(map(escaped, text.split("\n")))


def _character(c: str) -> str:
    if unicodedata.category(c) not in UNSEEN:
        return c
    code = ord(c)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


class PlainConsole(Console):
    """A console that prints no control code out of any text it is given, in tables too."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped_lines(text.replace("\t", "    ")), **options)


def plain_console() -> PlainConsole:
    """Where results are printed."""
    return PlainConsole(soft_wrap=True, highlight=False)
