"""What axe-core finds wrong with a page for people who do not see it, or use no mouse: the rules of
WCAG 2.2 at level AA."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = Path(__file__).parents[1] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """One line for each thing that is wrong: the rule, and the first elements it is wrong of."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES
    )
    return [
        f"{one['id']}: {one['help']}: "
        + "; ".join(f"{node['target'][0]} {node['html'][:120]}" for node in one["nodes"][:4])
        for one in found["violations"]
    ]
