"""The pages in a real browser: what is checked before anything is run, what is run here, what
leaves, and what does not."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")
pytest.importorskip(
    "playwright.sync_api", reason="the pages are tested with  pip install playwright"
)

from browsing import (
    CAMERA,
    CHROMIUM,
    DIMS,
    QUIET,
    READY,
    WEB,
    Setting,
    choose,
    forms,
    in_page,
    nameless,
    send,
    settle,
    traces,
)
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from privet.data.images import read_picture
from privet.exchange.owner import campaigns, export
from privet.exchange.participant import outbox
from privet.exchange.participant.randomised import told_labels
from privet.exchange.protocol.client import Client
from privet.exchange.protocol.envelope import unpack
from privet.exchange.protocol.manifest import Label
from privet.exchange.protocol.seal import unseal
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise import UNIT, Noise
from privet.release.runtime import session

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


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with settle(tmp_path_factory.mktemp("pages")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *CAMERA])
        yield running
        running.close()


@pytest.fixture(scope="module")
def page(browser: Browser, setting: Setting) -> Iterator[Page]:
    """The participant's page, ready; without a worker, so that every request is seen."""
    context = browser.new_context(service_workers="block", viewport={"width": 360, "height": 740})
    opened = context.new_page()
    opened.goto(setting.campaign.link.text)
    opened.wait_for_selector(READY)
    yield opened
    context.close()


@pytest.mark.parametrize("law", sorted(UNIT))
def test_the_same_random_bytes_give_the_same_noise_as_in_python(page: Page, law: str) -> None:
    draw = (
        "return Array.from((await load('noise')).fromBytes(given[0], Uint8Array.from(given[1])));"
    )
    given = in_page(page, draw, law, list(np.random.default_rng(5).bytes(8 * 2000)))
    np.testing.assert_allclose(
        given, Noise(law, (1,), 1.0).draw(2000, seed=5).ravel(), rtol=3e-7, atol=1e-9
    )
    ends = in_page(page, draw, law, [0] * 8 + [255] * 8)
    np.testing.assert_allclose(
        ends, UNIT[law](np.array([2.0**-53, 1 - 2.0**-53])).astype(np.float32), rtol=3e-7
    )


VECTORS = json.loads((Path(__file__).parents[1] / "release" / "keyed_noise.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['dtype']} {v['id']!r}")
def test_a_key_gives_the_same_words_as_in_python(page: Page, vector: dict[str, Any]) -> None:
    given = in_page(
        page,
        """const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
        const { words } = await load('noise');
        const [v] = given;
        const record = { ...v, x: bytes(v.content) };
        return Array.from(words({ ...v, key: bytes(v.key) }, record, v.count));""",
        vector,
    )
    assert bytes(given).hex() == vector["words"]


def test_an_answer_is_changed_at_random_as_in_python(page: Page) -> None:
    asked = [
        {"name": "smiling", "values": ["yes", "no"], "epsilon": 0.5},
        {"name": "größe", "values": ["klein", "mittel", "groß"], "epsilon": 1.2},
        {"name": "age", "values": [], "epsilon": None},
    ]
    answers = {"smiling": "no", "größe": "mittel", "age": 31}
    given = in_page(
        page,
        """const { toldLabels } = await load('randomised');
        return Array.from({ length: 60 }, (_, k) =>
            toldLabels(given[0], given[1], new Uint8Array(32).fill(k), 'c'));""",
        answers,
        asked,
    )
    labels = [Label(**label) for label in asked]
    assert given == [told_labels(answers, labels, bytes([k] * 32), "c") for k in range(60)]
    assert {one["smiling"] for one in given} == {"yes", "no"}


def test_a_record_gets_the_noise_that_its_key_gives_in_python(page: Page) -> None:
    """A row of a release that adds noise, drawn as the page draws it."""
    x = np.array([0.5, -1.25, 3.0], np.float32)
    given = in_page(
        page,
        """const { keyed } = await load('noise');
        const x = Float32Array.from(given[1]);
        const secret = { key: new Uint8Array(32).fill(7), graph: given[0], campaign: 'c' };
        return Array.from(keyed('gaussian', 20, secret, { dtype: 'float32', shape: [3], x }));""",
        "ab" * 32,
        x.tolist(),
    )
    drawn = KeyedNoise(bytes([7] * 32), "ab" * 32, "c")
    wanted, _ = drawn.draw(Noise("gaussian", (20,), 1.0), x[None], ids=[""])
    assert wanted is not None
    np.testing.assert_allclose(given, wanted[0], rtol=3e-7, atol=1e-9)


def test_the_same_photo_gives_the_same_numbers(page: Page, setting: Setting) -> None:
    seen = []
    for _ in range(2):
        choose(page, setting.photo)
        seen.append(page.text_content("#numbers"))
        page.click("#again")
    assert seen[0] == seen[1] and seen[0]
    key = f"privet/noise/{setting.campaign.link.campaign}"
    assert len(page.evaluate("(key) => localStorage.getItem(key)", key)) == 64
    page.evaluate("(key) => localStorage.removeItem(key)", key)
    page.reload()
    page.wait_for_selector(READY)
    choose(page, setting.photo)
    assert page.text_content("#numbers") != seen[0], "another key gives other noise"
    page.click("#again")


def test_noise_is_fresh(page: Page) -> None:
    first, second = (
        in_page(page, "return Array.from((await load('noise')).fresh('gaussian', 20000));")
        for _ in range(2)
    )
    assert len(set(first) & set(second)) < 100
    assert abs(np.mean(first)) < 6 / np.sqrt(20000) and abs(np.std(first) - 1) < 6 / np.sqrt(40000)


@pytest.mark.parametrize(
    ("size", "channels"),
    [((48, 48), 3), ((131, 70), 3), ((70, 131), 1), ((20, 31), 3), ((48, 96), 3)],
)
def test_pictures_are_cut_just_as_python_cuts_them(
    page: Page, tmp_path: Path, size: tuple[int, int], channels: int
) -> None:
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)).save(
        path
    )
    given = in_page(
        page,
        """const { decode, encode } = await load('picture');
           const pixels = await decode(new Blob([Uint8Array.from(given[0])]));
           return Array.from(encode(pixels, { channels: given[1], height: 48, width: 48 }));""",
        list(path.read_bytes()),
        channels,
    )
    wanted = read_picture(path, (48, 48), channels)
    # Some releases of Pillow take the columns of tall pictures first, and round the other way then.
    np.testing.assert_allclose(
        np.reshape(given, wanted.shape), wanted, rtol=0, atol=1 if size[0] > size[1] else 0
    )


def test_released_numbers_equal_pythons_for_the_same_noise(
    page: Page, setting: Setting, tmp_path: Path
) -> None:
    card = json.loads((setting.release / "card.json").read_text())
    run = session((setting.release / "release.onnx").read_bytes())
    for seed in range(4):
        path = tmp_path / f"{seed}.png"
        Image.fromarray(
            np.random.default_rng(seed).integers(0, 256, (90, 60, 3), dtype=np.uint8)
        ).save(path)
        noise = Noise.from_json(card["noise"]).draw(1, seed=seed)
        wanted = run.run(["z"], {"x": read_picture(path, (48, 48))[None], "noise": noise})[
            0
        ].ravel()
        given = in_page(
            page,
            """const [{ decode, encode }, { Release }, { readPart }] =
                 await Promise.all(['picture', 'runtime', 'campaign'].map(load));
               const release = await Release.open(await readPart(given[0]), given[1]);
               const picture = await decode(new Blob([Uint8Array.from(given[2])]));
               const x = encode(picture, given[1].input);
               return Array.from(await release.run(x, Float32Array.from(given[3])));""",
            card["sha256"]["graph"],
            card,
            list(path.read_bytes()),
            noise.ravel().tolist(),
        )
        np.testing.assert_allclose(given, wanted, atol=1e-4, rtol=0)


def test_taking_part_sends_what_the_release_lets_through_and_nothing_else(
    page: Page, setting: Setting
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    wrong: list[str] = []
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    heard = setting.site.heard
    before = len(heard)
    choose(page, setting.photo)
    assert len(heard) == before, "looking at a picture asks nobody"
    assert "52.5200 N" in page.inner_text("#metadata") and "Phone 7" in page.inner_text("#metadata")
    assert page.is_disabled("#submit"), "without consent nothing can be sent"
    page.click("details:has(#numbers) > summary")
    shown = [float(number) for number in page.inner_text("#numbers").split()]
    send(page)
    page.wait_for_selector("#receipts li")
    assert (
        "stored" in page.inner_text("#status")
        and page.inner_text("#receipts").count("Withdraw") == 1
    )

    with page.expect_download() as downloading:
        page.click("text=Download receipt")
    path = setting.folder / "receipt.json"
    downloading.value.save_as(path)
    receipt = outbox.Outbox(setting.folder / "home").find(str(path))
    body = heard[-1].partition(b"\n\n")[2]
    key = setting.campaign.sealing_key()
    assert key is not None and len(body) == 512 + 4 * DIMS + 48
    record = unpack(unseal(body, key))
    np.testing.assert_allclose(record.z, shown, atol=1e-4)
    assert (
        record.labels == {"hat": "yes"}
        and record.submission == receipt.submission
        and record.z.shape == (DIMS,)
    )

    everything = b"\n".join(heard)
    private = [
        setting.photo.read_bytes(),
        *forms(read_picture(setting.photo)),
        *forms(read_picture(setting.photo, (48, 48))),
    ]
    for content in private:
        needles = traces(content)
        assert len(needles) > 100
        assert not [needle for needle in needles if needle in everything]
        for planted in (content, content.hex().encode(), base64.b64encode(b"a" + content)):
            assert any(needle in planted for needle in needles), (
                "the search finds a photo that is there"
            )
    assert b"anna-at-home" not in everything and b"Phone 7" not in everything
    assert (
        all(url.startswith((setting.site.url, f"blob:{setting.site.url}")) for url in asked)
        and not wrong
    )

    found = export.export(setting.campaign, setting.folder / "data")
    assert found.records == 1
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#receipts li[data-state=withdrawn]")
    assert "deleted" in page.inner_text("#status")
    assert campaigns.figures(setting.campaign).records == 0
    with Client(receipt.server) as client:
        assert receipt.withdraw(client).state == "gone", "it is gone already"


def test_the_card_is_read_in_plain_words_and_text_stays_text(page: Page, setting: Setting) -> None:
    hides = page.inner_text("#hides")
    assert (
        "From one released record the best of 14 attackers is right 51 times in 100" in hides
        and "where both values are equally frequent" in hides
    )
    assert "with a balanced accuracy above 57.2 % on average over people" in hides
    assert "claimed by the campaign's owner, checked by nobody else" in hides
    assert (
        page.inner_text("h1") == "<b>Hats</b>"
        and page.inner_text("#purpose") == "To <script>alert(1)</script> learn."
    )
    assert "30 days" in page.inner_text("#about")


def test_keyboard_screen_reader_and_a_phones_width(page: Page, setting: Setting) -> None:
    choose(page, setting.photo)
    assert nameless(page) == []
    assert page.get_attribute("#status", "aria-live") == "polite"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.focus("#file")
    order = ["file"]
    for _ in range(6):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert order == ["file", "camera", "SUMMARY", "label-0", "label-1", "consent", "again"]
    page.focus("#consent")
    page.keyboard.press("Space")
    assert page.is_enabled("#submit")
    page.click("#again")


def test_the_camera_is_seen_live_and_only_a_taken_picture_could_leave(
    page: Page, setting: Setting
) -> None:
    before = len(setting.site.heard)
    page.click("#camera")
    page.wait_for_selector("body[data-rate]")
    assert page.is_hidden("#send")
    # On two idle cores it is more than ten; a test must also pass on a machine that does other
    # things.
    assert float(page.evaluate("document.body.dataset.rate")) > 2
    page.click("#take")
    page.wait_for_selector("#send:not([hidden])")
    assert page.evaluate("document.getElementById('video').srcObject") is None
    assert len(setting.site.heard) == before
    page.click("#again")


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        (
            "/v1/campaigns/",
            lambda content: content.replace(b"Lab X", b"Lab Y"),
            "not the one that the link names",
        ),
        (
            "/v1/campaigns/",
            lambda content: json.dumps({**json.loads(content), "signature": "A" * 86}).encode(),
            "signature is wrong",
        ),
        ("/v1/parts/", lambda content: content + b"\0", "Do not take part"),
        (
            "/static/vendor/ort-wasm-simd-threaded.wasm",
            None,
            "not the file that this page was built with",
        ),
        ("/static/noise.js", None, None),
    ],
    ids=["manifest", "signature", "part", "runtime", "script"],
)
def test_what_was_changed_on_the_way_is_not_run(
    browser: Browser, setting: Setting, path: str, change: Any, said: str | None
) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()

    def tamper(route: Any) -> None:
        if change is None:
            route.fulfill(body="export const fresh = () => 0;", content_type="text/javascript")
            return
        answer = route.fetch()
        route.fulfill(response=answer, body=change(answer.body()))

    page.route(f"{setting.site.url}{path}**", tamper)
    with (
        page.expect_console_message(lambda message: "integrity" in message.text)
        if change is None
        else nullcontext()
    ):
        page.goto(setting.campaign.link.text)
    if said is not None:
        page.wait_for_selector("#status.wrong")
        assert said in page.inner_text("#status")
    assert page.query_selector(READY) is None and page.is_hidden("#take-part")
    context.close()


def test_without_a_network_the_page_works_and_what_is_sent_waits(
    browser: Browser, setting: Setting
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(setting.campaign.link.text)
    page.wait_for_selector("body[data-offline=ready]")
    context.set_offline(True)
    page.reload()
    page.wait_for_selector(READY)
    choose(page, setting.photo)
    send(page)
    page.wait_for_selector("#waiting:not([hidden])")
    assert campaigns.figures(setting.campaign).records == 0
    context.set_offline(False)
    page.wait_for_selector("#receipts li")
    assert campaigns.figures(setting.campaign).records == 1 and page.is_hidden("#waiting")
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#receipts li[data-state=withdrawn]")
    context.close()


def test_an_open_campaign_by_invitation(browser: Browser, setting: Setting) -> None:
    terms = campaigns.Terms("Hats", "To learn.", "Lab X", mode="open", access="invited")
    key = setting.folder / "owner.key"
    made = campaigns.create(
        setting.site.url,
        setting.release,
        setting.folder / "invited",
        terms,
        setting.site.operator,
        key,
    )
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    for link, answer in (
        (made.link.text, "by invitation"),
        (campaigns.invite(made, 1, 7)[0], "stored"),
    ):
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector(READY)
        assert "no audit" in page.inner_text(
            "#hides"
        ) and "server and its owner" in page.inner_text("#about")
        choose(page, setting.photo)
        page.check("#consent")
        page.click("#submit")
        page.wait_for_selector("#send[hidden]", state="attached")
        page.wait_for_selector(f"#status:has-text('{answer}')")
    assert campaigns.figures(made).records == 1
    context.close()


def test_the_collectors_page_shows_what_came_to_who_has_the_token(
    browser: Browser, setting: Setting
) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.goto(f"{setting.site.url}/collector")
    page.fill("#token", "nonsense")
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.wrong")
    page.fill("#token", setting.campaign.token)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    said = page.inner_text("article")
    assert (
        "<b>Hats</b>" in said
        and "can guess beard with a balanced accuracy above 57.2 %" in said
        and "privet campaign export" in said
    )
    assert page.evaluate("localStorage.length") == 0 and page.evaluate(
        "Object.keys(sessionStorage)"
    ) == ["privet/token"]
    page.click("#leave")
    assert page.evaluate("sessionStorage.length") == 0 and page.query_selector("article") is None
    context.close()
