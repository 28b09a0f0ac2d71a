"""Records of every kind in a real browser: from a photo to the collector's own model, and texts and
tables that stay where they are."""

from __future__ import annotations

import base64
import json
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")
pytest.importorskip(
    "playwright.sync_api", reason="the pages are tested with  pip install playwright"
)

import torch
from browsing import CHROMIUM, QUIET, READY, WEB, Site, built, choose, in_page, nameless, site
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from privet.cli.main import main
from privet.data.dataset import Dataset
from privet.data.portraits.source import portraits
from privet.data.schema import Column, Schema, SignalSchema, TableSchema, TextSchema, split_words
from privet.exchange.owner import campaigns, export
from privet.exchange.owner.decoder import learn_decoder
from privet.exchange.participant.campaign import fetch_campaign
from privet.exchange.participant.outbox import Outbox
from privet.exchange.participant.records import Record, prepare
from privet.exchange.participant.share import send
from privet.exchange.protocol.client import Client
from privet.methods.tiprdc import TIPRDC
from privet.nets import registry as nets
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.runtime import session
from privet.train.game import Run

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from example_audits import full

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

PEOPLE, EACH = 26, 3
WORDS = ("the", "film", "was", "good", "bad", "l'été", "straße", "12", "!", "我們")
RELEASED = """
  const [{ Release }, { readPart }] = await Promise.all(['runtime', 'campaign'].map(load));
  const release = await Release.open(await readPart(given[0].sha256.graph), given[0]);
  const noise = given[1] && Float32Array.from(given[1]);"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with site(folder, built(folder / "pages")) as found:
        (folder / "operator.token").touch(0o600)
        (folder / "operator.token").write_text(found.operator)
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def privet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Any:
    """What an owner types, and reads."""
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path / "home"))

    def say(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["privet", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert not end.value.code, said.err
        return said.out

    return say


def opened(browser: Browser, link: str) -> Page:
    page = browser.new_context(service_workers="block").new_page()
    page.goto(link)
    page.wait_for_selector(f"{READY}, #status.wrong")
    return page


def untrained(
    schema: Schema, network: str, settings: dict[str, Any], noise: Noise, folder: Path
) -> dict[str, Any]:
    """A release that nothing was learned for, and its card."""
    torch.manual_seed(0)
    card = {"method": network, "settings": settings, "private": ["author"]}
    Release(schema, (network, settings), nets.build(network, schema, settings), noise, card).save(
        folder
    )
    return dict(json.loads((folder / "card.json").read_text()))


def ask(
    running: Site, release: Path, out: Path, labels: list[str], **more: Path
) -> campaigns.CampaignFolder:
    terms = campaigns.Terms("Records", "To learn.", "Lab X", labels, 30, 100)
    return campaigns.create(
        running.url, release, out, terms, running.operator, out.parent / "owner.key", **more
    )


def shared(campaign: campaigns.CampaignFolder, file: Path, home: Path) -> list[Record]:
    """What `privet share` makes of a file, after it has sent it."""
    with Client(campaign.link.server) as client:
        found = fetch_campaign(campaign.link, client)
        records = prepare(found, [file])
        assert len(send(found, records, Outbox(home), client).receipts) == len(records)
    return records


def audited(graph: str, folder: Path) -> Path:
    folder.mkdir()
    replace(full(), release={**full().release, "sha256": {"graph": graph}}).save(
        folder / "audit.json"
    )
    return folder


def pictures(data: Dataset, where: list[int], folder: Path) -> list[Path]:
    folder.mkdir()
    paths = [folder / f"{row}.png" for row in where]
    for path, row in zip(paths, where, strict=True):
        Image.fromarray(np.asarray(data.records[row]).transpose(1, 2, 0)).save(path)
    return paths


def test_from_photos_in_a_browser_to_a_model_that_answers(
    running: Site, browser: Browser, privet: Any, tmp_path: Path
) -> None:
    data = portraits(200, seed=1, progress=False)
    learned = TIPRDC(width=0.05, warmup=0, epochs=2, noise=0.002, seed=0).fit(
        data, ["beard"], [], run=Run(progress=False, device="cpu")
    )
    learned.save(tmp_path / "release")
    made = learn_decoder(
        tmp_path / "release",
        "portraits:60",
        tmp_path / "decoder.onnx",
        width=0.03,
        steps=2,
        device="cpu",
        progress=False,
    )
    rebuilt = session((tmp_path / "decoder.onnx").read_bytes()).run(
        None, {"z": np.zeros((2, *learned.shape), np.float32)}
    )[0]
    assert (
        made.figures["psnr"].n > 0
        and rebuilt.shape == (2, 3, 48, 48)
        and -1 <= rebuilt.min() <= rebuilt.max() <= 1
    )
    said = privet(
        "campaign",
        "create",
        tmp_path / "release",
        "--title",
        "Colours",
        "--purpose",
        "To learn.",
        "--who",
        "Lab X",
        "--label",
        "warm!=yes,no",
        "--per-person",
        "10",
        "--decoder",
        tmp_path / "decoder.onnx",
        "--server",
        running.url,
        "--token",
        Path(running.collector.database.engine.url.database or "").parent / "operator.token",
        "--out",
        tmp_path / "mine",
    )
    campaign = campaigns.CampaignFolder.load(tmp_path / "mine")
    assert campaign.link.text in said

    # Whether red or blue prevails: what a participant can say of a picture, and this release lets
    # through. The clearest are asked.
    red = np.asarray(data.records, dtype=float)[:, 0].mean((1, 2)) - np.asarray(
        data.records, dtype=float
    )[:, 2].mean((1, 2))
    half = PEOPLE * EACH // 2
    rows = (
        np.random.default_rng(0)
        .permutation(np.argsort(red)[[*range(half), *range(-half, 0)]])
        .tolist()
    )
    answers = ["yes" if red[row] > np.median(red) else "no" for row in rows]
    photos = pictures(data, rows, tmp_path / "photos")
    page = opened(browser, campaign.link.text)
    for photo, answer in zip(photos[:EACH], answers[:EACH], strict=True):
        choose(page, photo)
        assert page.is_visible("#rebuilt-view")
        page.select_option("#label-0", answer)
        if photo != photos[0]:
            page.check("#accept-beyond")
        page.check("#consent")
        page.click("#submit")
        page.wait_for_selector("#status:has-text('stored')")
    # The page's own functions, as one person after the other would use them in a browser of their
    # own.
    card = json.loads((tmp_path / "release" / "card.json").read_text())
    sent = in_page(
        page,
        RELEASED
        + """
        const [{ open }, { decode, encode }, { prepare, send }] =
          await Promise.all(['campaign', 'picture', 'outbox'].map(load));
        const campaign = await open(given[2], () => {});
        let sent = 0;
        for (const [person, photos] of given[3].entries()) {
          localStorage.removeItem(`privet/person/${campaign.id}`);
          for (const [bytes, answer] of photos) {
            const picture = await decode(new Blob([Uint8Array.fromBase64(bytes)]));
            const x = encode(picture, campaign.card.input);
            const source = `person ${person}`;
            const record = { z: await release.run(x), shape: release.shape(x), source };
            sent += (await send(await prepare(campaign, record, { warm: answer }))).received > 0;
          }
        }
        return sent;""",
        card,
        None,
        campaign.link.campaign,
        people(photos[EACH:], answers[EACH:]),
    )
    assert sent == (PEOPLE - 1) * EACH
    assert campaigns.figures(campaign).people == PEOPLE
    receipt = page.inner_text("#receipts li code")
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#status:has-text('deleted')")

    for seed, photo in enumerate(photos[:2]):
        noise = Noise.from_json(card["noise"]).draw(1, seed=seed)
        x = np.asarray(data.records[rows[seed]])[None]
        wanted = session((tmp_path / "release" / "release.onnx").read_bytes()).run(
            ["z"], {"x": x, "noise": noise}
        )[0]
        given = in_page(
            page,
            RELEASED
            + """
            const { decode, encode } = await load('picture');
            const picture = await decode(new Blob([Uint8Array.from(given[2])]));
            return Array.from(await release.run(encode(picture, given[0].input), noise));""",
            card,
            noise.ravel().tolist(),
            list(photo.read_bytes()),
        )
        assert np.abs(np.reshape(given, wanted.shape) - wanted).max() <= 1e-4
    page.context.close()

    privet("campaign", "export", tmp_path / "mine", "--out", tmp_path / "data")
    table = pq.read_table(tmp_path / "data" / "export.parquet")
    assert len(table) == PEOPLE * EACH - 1 and not [
        name for name in table["submission"].to_pylist() if name.startswith(receipt)
    ]
    assert (
        set(table["warm"].to_pylist()) == {"yes", "no"}
        and len(set(table["person"].to_pylist())) == PEOPLE
    )
    said = privet(
        "task",
        "--data",
        tmp_path / "data" / "export.parquet",
        "--label",
        "warm",
        "--out",
        tmp_path / "model",
    )
    task: dict[str, Any] = json.loads((tmp_path / "model" / "task.json").read_text())
    assert "records of other people" in said
    assert (
        task["score"]["chance"] == 0.5
        and task["score"]["low"] <= task["score"]["value"] <= task["score"]["high"]
    )
    assert task["score"]["value"] > task["score"]["chance"]
    assert sum(task["records"].values()) == len(table)
    again = session((tmp_path / "model" / "model.onnx").read_bytes())
    z = np.stack(table["z"].to_numpy()).astype(np.float32)
    right = (
        np.array(task["values"])[again.run(["answers"], {"z": z})[0].argmax(1)]
        == table["warm"].to_numpy()
    )
    # Among these are the people it was learned from: this is that what is kept answers, and the
    # figure above how well.
    truth = table["warm"].to_numpy()
    assert np.mean([right[truth == value].mean() for value in ("yes", "no")]) > 0.6


def people(photos: list[Path], answers: list[str]) -> list[list[tuple[str, str]]]:
    """For each person, photos in base64 and their answers."""
    each = [
        (base64.b64encode(photo.read_bytes()).decode(), answer)
        for photo, answer in zip(photos, answers, strict=True)
    ]
    return [each[start : start + EACH] for start in range(0, len(each), EACH)]


@pytest.fixture(scope="module")
def written(
    running: Site, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Page, dict[str, Any], Any]]:
    """A campaign for texts whose released length is free, and its page."""
    folder = tmp_path_factory.mktemp("texts")
    settings = {"width": 0.03, "noise": 0.25}
    size = nets.build("noisy-extractor", TextSchema(WORDS, 16), settings).shape[1]
    card = untrained(
        TextSchema(WORDS, 16),
        "noisy-extractor",
        settings,
        Noise("gaussian", (None, size), 0.25),
        folder / "release",
    )
    campaign = ask(running, folder / "release", folder / "mine", ["liked=yes,no"])
    page = opened(browser, campaign.link.text)
    yield page, card, (campaign, folder)
    page.context.close()


def test_texts_are_read_in_the_browser_as_in_python(
    written: tuple[Page, dict[str, Any], Any],
) -> None:
    page, card, (_, folder) = written
    rng = np.random.default_rng(0)
    assigned = [
        chr(c) for c in range(0x2FA20) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
    ]
    strange = ["".join(rng.choice(assigned, 40)) for _ in range(200)]
    texts = [
        "It's GOOD :)",
        "",
        " \x1c\x85\ufeff\u200b ",
        "L'ÉTÉ Straße ΣΑΣ İ",
        "a_b-c 12.5",
        *strange,
    ]
    both = """const { splitWords, encodeText } = await load('inputs');
              const codes = (text) => Array.from(encodeText(text, given[0]), Number);
              return given[1].map((text) => [splitWords(text), codes(text)]);"""
    for text, (words, codes) in zip(texts, in_page(page, both, card["input"], texts), strict=True):
        assert words == split_words(text)
        assert codes == TextSchema(WORDS, 16).encode([text])[0].tolist()

    text = "The film was, l'été 12 !"
    x = TextSchema(WORDS, 16).encode([text])
    noise = Noise.from_json(card["noise"]).draw(1, x.shape[1], seed=3)
    wanted = session((folder / "release" / "release.onnx").read_bytes()).run(
        ["z"], {"x": x, "noise": noise}
    )[0]
    run = """const { encodeText } = await load('inputs');
             const x = encodeText(given[2], given[0].input);
             return Array.from(await release.run(x, noise));"""
    given = in_page(page, RELEASED + run, card, noise.ravel().tolist(), text)
    assert np.abs(np.reshape(given, wanted.shape) - wanted).max() <= 1e-4


def test_a_text_is_written_sent_and_exported_and_its_words_stay(
    running: Site, written: tuple[Page, dict[str, Any], Any]
) -> None:
    page, _, (campaign, folder) = written
    before = len(running.heard)
    page.focus("#text")
    page.keyboard.type("The film was unspeakable!")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#send:not([hidden])")
    assert (
        page.inner_text("#read") == "the film was ? !"
        and "5 \u00d7 9" in page.inner_text("#leaving")
        and page.is_hidden("#before-picture")
    )
    page.select_option("#label-0", "no")
    page.check("#consent")
    page.click("#submit")
    page.wait_for_selector("#receipts li")
    sent = b"\n".join(running.heard[before:])
    assert b"unspeakable" not in sent.lower() and b"film" not in sent.lower()
    table = pq.read_table(export.export(campaign, folder / "data").table)
    assert len(table["z"][0].as_py()) == 5 * 9 and table["liked"].to_pylist() == ["no"]
    body = next(one for one in running.heard[before:] if one.startswith(b"POST ")).partition(
        b"\n\n"
    )[2]
    assert len(body) == 1024 + 48, "lengths are filled up to a power of two"
    (folder / "words.txt").write_text("The film was unspeakable!")
    assert shared(campaign, folder / "words.txt", folder / "home")[0].z.shape == (5, 9)
    assert export.export(campaign, folder / "data").records == 2


def test_a_row_is_filled_in_and_sent(running: Site, browser: Browser, tmp_path: Path) -> None:
    schema = TableSchema((Column("age", 40.0, 12.5), Column("work", values=("home", "office"))))
    card = untrained(
        schema, "noisy-record", {"scale": 2.0}, Noise("gaussian", (3,), 2.0), tmp_path / "release"
    )
    graph = json.loads((tmp_path / "release" / "card.json").read_text())["sha256"]["graph"]
    campaign = ask(
        running,
        tmp_path / "release",
        tmp_path / "mine",
        ["liked=yes,no"],
        report=audited(graph, tmp_path / "audit"),
    )
    page = opened(browser, campaign.link.text)
    encode = """const { encodeRow } = await load('inputs');
                return given[1].map((row) => Array.from(encodeRow(row, given[0])));"""
    frame = [
        {"age": "52.5", "work": "office"},
        {"age": "", "work": ""},
        {"work": "elsewhere"},
        {"age": "-1e3"},
    ]
    given = in_page(page, encode, card["input"], frame)
    wanted = schema.encode(pd.DataFrame(frame))
    np.testing.assert_array_equal(np.asarray(given, dtype=np.float32), wanted)
    page.fill("#column-0", "52.5")
    page.select_option("#column-1", "office")
    page.click("#fill button")
    page.wait_for_selector("#send:not([hidden])")
    assert page.inner_text("#read") == "age: 52.5\nwork: office"
    page.check("#consent")
    page.click("#submit")
    page.wait_for_selector("#receipts li")
    assert export.export(campaign, tmp_path / "data").records == 1
    assert page.get_attribute(
        "#report-link", "href"
    ) == f"/c/{campaign.link.campaign}/report" and page.is_visible("#report")
    wrong: list[str] = []
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.goto(f"{running.url}/collector")
    page.fill("#token", campaign.token)
    page.keyboard.press("Enter")
    page.click("summary:has-text('The whole report')")
    inside = page.frame_locator("iframe.report")
    inside.locator("h1").wait_for()
    assert "beard" in inside.locator("body").inner_text() and not wrong and nameless(page) == []
    page.context.close()


def test_what_a_page_cannot_take_is_said_with_what_can(
    running: Site, browser: Browser, tmp_path: Path
) -> None:
    schema = SignalSchema(2, 64, (0.0, 0.0), (1.0, 1.0))
    untrained(
        schema,
        "noisy-record",
        {"scale": 0.4},
        Noise("gaussian", (2, 64), 0.4),
        tmp_path / "release",
    )
    campaign = ask(running, tmp_path / "release", tmp_path / "mine", [])
    page = opened(browser, campaign.link.text)
    assert "privet share" in page.inner_text("#status.wrong") and page.is_hidden("#take-part")
    page.context.close()
    windows = np.random.default_rng(0).standard_normal((2, 2, 64))
    pd.DataFrame({"window": windows.tolist()}).to_parquet(tmp_path / "windows.parquet")
    assert [
        record.z.shape
        for record in shared(campaign, tmp_path / "windows.parquet", tmp_path / "home")
    ] == [(2, 64)] * 2
    assert export.export(campaign, tmp_path / "data").records == 2
