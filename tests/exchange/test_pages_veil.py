"""A veil in a real browser: a photo before and after, as a picture that leaves or as a code with the
picture it stands for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")
pytest.importorskip(
    "playwright.sync_api", reason="the pages are tested with  pip install playwright"
)

from browsing import CHROMIUM, QUIET, READY, WEB, Site, built, choose, site
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from privet.data.portraits.source import portraits
from privet.exchange.owner import campaigns
from privet.methods.veil import Veil
from privet.release.own_form import pixels
from privet.release.runtime import session
from privet.train.game import Run

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="there is no Chromium on this machine: on Debian, install the package chromium",
    ),
    pytest.mark.skipif(
        not (WEB / "node_modules").is_dir(), reason="the pages are not built: run  make web  first"
    ),
]

DATA = portraits(60, seed=0, progress=False)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("veil")
    with site(folder, built(folder / "pages")) as made:
        yield made


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_page()
        browser.close()


def campaign(running: Site, folder: Path, output: str) -> str:
    """A veil that has learned a little, in a campaign of its own; no decoder is named."""
    method = Veil(output=output, dims=8, width=0.05, lessons=1, epochs=2, batch=16, drawn_as="no")
    release = method.fit(DATA, "beard", run=Run(progress=False, device="cpu"))
    release.save(folder / "release")
    made = campaigns.create(
        running.url,
        folder / "release",
        folder / "mine",
        campaigns.Terms("Faces", "To learn.", "Lab X", ["hat!=yes,no"], 30, 100),
        running.operator,
        folder / "owner.key",
    )
    return made.link.text


def canvas(page: Page, name: str) -> np.ndarray:
    """RGB bytes (3, height, width) of what a canvas shows."""
    shown: dict[str, Any] = page.evaluate(
        """(name) => { const c = document.getElementById(name);
          const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
          return { width: c.width, height: c.height, data: Array.from(d) }; }""",
        name,
    )
    pixels = np.array(shown["data"], dtype=np.uint8).reshape(shown["height"], shown["width"], 4)
    return pixels[:, :, :3].transpose(2, 0, 1)


@pytest.mark.parametrize("output", ["record", "code"])
def test_a_photo_is_shown_before_and_after(running: Site, page: Page, tmp_path: Path, output: str):
    link = campaign(running, tmp_path, output)
    raw = np.asarray(DATA.records[0])
    photo = tmp_path / "anna.png"
    Image.fromarray(raw.transpose(1, 2, 0)).save(photo)
    page.goto(link)
    page.wait_for_selector(READY)
    choose(page, photo)
    np.testing.assert_array_equal(canvas(page, "before"), raw)
    if output == "record":
        assert page.is_hidden("#rebuilt-view")
        assert page.inner_text("#leaving").startswith("A picture (48 \u00d7 48)")
        after = canvas(page, "leaves")
    else:
        words = page.inner_text("#rebuilt-words")
        assert "release's own decoder" in words and "beard: no" in words
        assert page.inner_text("#leaving").startswith("8 numbers")
        after = canvas(page, "rebuilt")
        z = np.array(str(page.text_content("#numbers")).split(), np.float32)[None]
        decoder = (tmp_path / "release" / "decoder.onnx").read_bytes()
        drawn = session(decoder).run(None, {"z": z})[0]
        assert np.abs(after.astype(int) - pixels(drawn)[0]).max() <= 2  # shown to four digits
    # A picture came out, and not the one that went in.
    assert after.shape == raw.shape and after.std() > 1
    assert np.abs(after.astype(int) - raw).mean() > 5
    assert json.loads((tmp_path / "release" / "card.json").read_text())["form"] == output
    if folder := os.environ.get("PRIVET_SCREENSHOTS"):
        page.locator("#look").screenshot(path=Path(folder) / f"veil-{output}.png")
