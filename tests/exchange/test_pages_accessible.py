"""The participant's and the collector's page for people who do not see them, or use no mouse:
axe-core finds nothing (WCAG 2.2, AA), light and dark, and no message covers a button."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")
pytest.importorskip("playwright.sync_api", reason="pages are tested with  pip install playwright")

from browsing import CHROMIUM, QUIET, READY, Setting, choose, send, settle
from playwright.sync_api import Browser, Page, sync_playwright

from accessible import AXE, violations

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not here: run  make web  first"),
]

# Whether the message lies over something that can be pressed, wherever the page is scrolled to.
COVERED = """() => {
  const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const seen = [];
  for (let y = 0; y <= document.body.scrollHeight; y += 40) {
    window.scrollTo(0, y);
    const message = document.querySelector('#status').getBoundingClientRect();
    for (const one of document.querySelectorAll('button, .button, input, select, summary')) {
      const place = one.getBoundingClientRect();
      if (place.width && place.height && message.height && over(message, place)) seen.push(one.id || one.textContent);
    }
  }
  window.scrollTo(0, 0);
  return [...new Set(seen)];
}"""


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with settle(tmp_path_factory.mktemp("accessible")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        yield running
        running.close()


def opened(browser: Browser, address: str, scheme: str, width: int) -> Page:
    context = browser.new_context(
        service_workers="block",
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 740},
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(address)
    return page


@pytest.mark.parametrize(("scheme", "width"), [("light", 375), ("dark", 375), ("light", 1280)])
def test_the_participants_page_keeps_nobody_out(
    browser: Browser, setting: Setting, scheme: str, width: int
) -> None:
    page = opened(browser, setting.campaign.link.text, scheme, width)
    page.wait_for_selector(READY)
    assert violations(page) == []
    choose(page, setting.photo)
    assert violations(page) == [], "what leaves is shown"
    assert page.evaluate(COVERED) == []
    send(page)
    page.wait_for_selector("#send[hidden]", state="attached")
    page.wait_for_selector("#status:has-text('stored')")
    assert violations(page) == [], "a record was sent"
    assert page.evaluate(COVERED) == []
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_collectors_page_keeps_nobody_out(
    browser: Browser, setting: Setting, scheme: str
) -> None:
    page = opened(browser, f"{setting.site.url}/collector", scheme, 1280)
    page.wait_for_selector("#token")
    assert violations(page) == []
    page.fill("#token", "nonsense")
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.wrong")
    assert violations(page) == [], "a wrong token"
    page.fill("#token", setting.campaign.token)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    assert violations(page) == [], "a campaign is shown"
    page.context.close()
