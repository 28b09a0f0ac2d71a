"""Every kind of page, light and dark, wide and narrow: axe-core finds nothing that keeps people out
(WCAG 2.2, AA), the keyboard reaches what can be pressed, and nothing is wider than the screen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="pages are tested with  pip install playwright")

import itertools

from example_pages import PAGES
from playwright.sync_api import Browser, sync_playwright

from accessible import AXE, violations

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not here: run  make web  first"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.mark.parametrize("name", PAGES)
def test_nothing_keeps_people_out(browser: Browser, tmp_path: Path, name: str) -> None:
    made = tmp_path / "page.html"
    made.write_text(PAGES[name](), encoding="utf-8")
    for scheme in ("light", "dark"):
        for width in (1280, 375):
            context = browser.new_context(
                color_scheme=scheme,  # type: ignore[arg-type]
                viewport={"width": width, "height": 900},
                bypass_csp=True,
            )
            page = context.new_page()
            page.goto(made.as_uri())
            assert violations(page) == [], (scheme, width)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels at {width}"
            context.close()


@pytest.mark.parametrize("name", PAGES)
def test_headings_go_down_one_step_at_a_time(name: str) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", PAGES[name]())]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
