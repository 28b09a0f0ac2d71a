"""Lines of the documentation end at 100 columns; rows of tables and long addresses cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("examples/*.md"),
    *ROOT.glob("docs/**/*.md"),
]


def too_long(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("|"))
    return [line for line in lines if len(line) > 100 and "://" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_over_100_columns(page: Path) -> None:
    assert not too_long(page.read_text(encoding="utf-8"))


def test_only_tables_and_addresses_may_be_longer() -> None:
    row, address, prose = f"| {'a' * 120} |", f"<https://{'a' * 120}>", "a " * 60
    assert too_long("\n".join((row, address, prose, "short"))) == [prose]
