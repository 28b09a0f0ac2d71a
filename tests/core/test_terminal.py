"""What strangers wrote cannot move a terminal's cursor, begin a line, or turn what is read."""

from __future__ import annotations

import io
import unicodedata

import pytest
from rich.table import Table

from privet.core.terminal import PlainConsole, escaped, escaped_lines

FORGED = "yes\x1b[3A\r  key        0000 0000 (seen before)\x1b[K\n\n\n"
BIDI = "\u202eevil\u2066\u200f\u061c\u2028\u0085\x9b1A\x7f\x00\ud800\u200b\ufeff"


@pytest.mark.parametrize("text", [FORGED, BIDI, "\x08\x08\x08", "\x1b]8;;http://x\x07link"])
def test_nothing_unseen_is_printed(text: str) -> None:
    for c in escaped(text):
        assert unicodedata.category(c)[0] != "C" and c.isprintable()
    assert escaped("Straße 我們 é 🙂") == "Straße 我們 é 🙂"


@pytest.mark.parametrize("text", [FORGED, BIDI])
def test_a_console_prints_no_control_code_in_tables_either(text: str) -> None:
    table = Table("a")
    table.add_row(text)
    out = io.StringIO()
    console = PlainConsole(file=out, soft_wrap=True, highlight=False)
    console.print(text, markup=False)
    console.print(table)
    assert all(c == "\n" or c.isprintable() for c in out.getvalue())
    assert escaped_lines("a\nb") == "a\nb"
