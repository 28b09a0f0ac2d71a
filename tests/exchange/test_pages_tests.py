"""What the participant's page finds out about a release by itself: a graph that may not run, noise
that is not used, and the record in another form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import CHROMIUM, QUIET, READY, WEB, Setting, in_page, settle

from hostile_graphs import HOSTILE

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(
        not (WEB / "node_modules").is_dir(), reason="the pages are not built: run  make web  first"
    ),
]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with settle(tmp_path_factory.mktemp("pages")) as running:
        yield running


@pytest.fixture(scope="module")
def page(setting: Setting) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="pages need playwright")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        opened = browser.new_context(service_workers="block").new_page()
        opened.goto(setting.campaign.link.text)
        opened.wait_for_selector(READY)
        yield opened
        browser.close()


def test_the_page_says_what_it_tested(page: Any) -> None:
    said = page.text_content("#tested")
    assert said.startswith("Tested on this device: least squares rebuilt ")


TRY = """
const { selfTest } = await load('self_test');
const shape = [3, 12, 12];
const input = { modality: 'image', channels: 3, height: 12, width: 12, shape };
const forms = {
  same: (x) => Float32Array.from(x),
  standardised: (x) => Float32Array.from(x, (v, k) => (v / 255 - 0.4 - k / 4000) / 0.22),
  backwards: (x) => Float32Array.from(x).reverse(),
  unused: (x) => Float32Array.from(x.slice(0, 2)),
  few: (x, e) => Float32Array.from([x[0] / 255 + e[0], x[1] / 255 + e[1]]),
};
const noise = { law: 'gaussian', shape: [2], scale: 0.4 };
const card = { input, output: { shape }, noise: ['unused', 'few'].includes(given[0]) ? noise : null };
const release = { card, run: async (x, e) => forms[given[0]](x, e) };
try {
  return await selfTest(release, given[1] ? { certificates: [{ bound: 0.64 }] } : null);
} catch (error) {
  return error.message;
}
"""


@pytest.mark.parametrize("form", ["same", "standardised", "backwards"])
def test_a_certificate_on_the_record_itself_stops_the_page(page: Any, form: str) -> None:
    said = in_page(page, TRY, form, True)
    assert said.startswith("Do not take part: what leaves is your record in another form")
    assert in_page(page, TRY, form, False).startswith("Tested on this device: what leaves is your")


def test_noise_is_looked_at(page: Any) -> None:
    assert "does not change with the noise" in in_page(page, TRY, "unused", False)
    assert in_page(page, TRY, "few", True).startswith("Tested on this device: least squares")


@pytest.mark.parametrize(
    "name", ["an endless loop", "tile to 2 ** 40", "a file that is only hinted at"]
)
def test_a_hostile_graph_does_not_run_in_the_page(page: Any, name: str) -> None:
    """The page opens no session for it."""
    said = in_page(
        page,
        """const { Release } = await load('runtime');
        try {
          await Release.open(Uint8Array.from(given[0]).buffer, {});
          return 'it ran';
        } catch (error) {
          return error.message;
        }""",
        list(HOSTILE[name][1]),
    )
    assert said.startswith("The graph is not run: ")
