"""The participant's page against owners and servers that cheat: forged audits, stolen names, lost
receipts, pictures that are called numbers. Every check gives what Python's gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")
pytest.importorskip(
    "playwright.sync_api", reason="the pages are tested with  pip install playwright"
)

from browsing import CHROMIUM, QUIET, READY, WEB, Site, built, choose, in_page, nameless, site
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from taking_part import TERMS

from privet.auditing.signatures import Signer, make_key, sign
from privet.data.portraits.source import portraits
from privet.data.schema import ImageSchema
from privet.exchange.owner import campaigns
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.participant.owners import is_same_name
from privet.exchange.participant.receipts import Receipt
from privet.exchange.protocol.asking import asked_for, overlaps
from privet.exchange.protocol.manifest import Label
from privet.nets import registry as nets
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.what_runs import runs_hash

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from example_audits import certificates, full

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

# Where pictures of the pages are left, to be looked at.
SHOTS = os.environ.get("PRIVET_SCREENSHOTS")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("trust")
    with site(folder, built(folder / "pages")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A browser that has seen nothing before."""
    context = browser.new_context(service_workers="block", viewport={"width": 375, "height": 740})
    yield context.new_page()
    context.close()


def pictured(folder: Path, network: str = "hedge") -> Path:
    """A release of small pictures that nothing was learned for; `identity` lets them through."""
    schema = ImageSchema(3, 48, 48)
    settings = {"dims": 8, "sigma": 0.4, "width": 0.0625} if network == "hedge" else {}
    card = {"method": "hedge", "settings": settings, "private": ["beard"]}
    noise = Noise("gaussian", (8,), 0.4) if network == "hedge" else None
    net = nets.build(network, schema, settings)
    Release(schema, (network, settings), net, noise, card).save(folder)
    return folder


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pictured(tmp_path_factory.mktemp("releases") / "hedge")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three drawn people."""
    folder, data = tmp_path_factory.mktemp("photos"), portraits(20, seed=0)
    for k in range(3):
        picture = Image.fromarray(np.asarray(data.records[k]).transpose(1, 2, 0))
        picture.save(folder / f"{k}.png")
    return sorted(folder.iterdir())


def audit_of(release: Path, covers: int = 1) -> Any:
    card = json.loads((release / "card.json").read_text())
    graph = card["sha256"]["graph"]
    about = {"sha256": {"graph": graph}, "runs": runs_hash(graph, card["input"], card["noise"])}
    one = replace(certificates()[0], bound=0.6123)
    several = (replace(one, records=covers, bound=0.7),) if covers > 1 else ()
    return replace(full(), release=about, rebuilt=(), certificates=(one, *several))


def opened(
    running: Site, release: Path, folder: Path, key: str = "owner", audit: Any = None, **terms: Any
) -> CampaignFolder:
    more = {}
    if audit is not None:
        path = folder.with_suffix(".json")
        audit.save(path)
        more["audit"] = path
    wanted = replace(TERMS, **{"labels": [], **terms})
    keys = folder.parent / f"{key}.key"
    return campaigns.create(running.url, release, folder, wanted, running.operator, keys, **more)


def visit(page: Page, made: CampaignFolder) -> None:
    page.goto(made.link.text)
    page.wait_for_selector(READY)


def send(page: Page, photo: Path) -> None:
    choose(page, photo)
    page.check("#consent")
    page.click("#submit")


def shoot(page: Page, name: str) -> None:
    """A picture of the whole page at the widths of a desk and of a phone, where it is asked for;
    at both, nothing sticks out and no button lies under a message."""
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        assert page.evaluate(COVERED) == [], (name, width)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}.png", full_page=True)


COVERED = """() => [...document.querySelectorAll('button, input, select, a, summary')].filter((e) => {
  if (!e.getClientRects().length || e.classList.contains('unseen') || e.closest('.skip')) return false;
  e.scrollIntoView({ block: 'center' });
  const { x, y, width, height } = e.getBoundingClientRect();
  const top = document.elementFromPoint(x + width / 2, y + height / 2);
  return top && !e.contains(top) && !top.contains(e) && !top.closest('label')?.contains(e);
}).map((e) => e.outerHTML)"""


def test_the_identity_with_somebodys_audit_is_a_claim_and_is_drawn_as_the_picture_it_is(
    page: Page, running: Site, photos: list[Path], tmp_path: Path
) -> None:
    raw = pictured(tmp_path / "raw", "identity")
    page.goto(opened(running, raw, tmp_path / "mine", audit=audit_of(raw)).link.text)
    page.wait_for_selector("#status.wrong")
    assert page.is_hidden("#take-part"), "its own test of the release stops the page"
    assert page.inner_text("#hides-title") == "What its owner says it hides"
    assert "claimed by the campaign's owner, checked by nobody else" in page.inner_text("#claim")
    said = page.inner_text("#hides")
    assert "The campaign's owner claims, and nobody whose key you trust has checked:" in said
    assert "certificate that the campaign shows cannot be true" in page.inner_text("#status")
    claims = f"{said} {page.inner_text('#about')} {page.inner_text('#claim')}"
    claims = claims.replace("not certified", "").replace("nothing is certified", "")
    assert "ertif" not in claims and page.is_hidden("#trust")
    visit(page, opened(running, raw, tmp_path / "bare"))
    choose(page, photos[0])
    assert "It looks like a picture, and is drawn as one." in page.inner_text("#leaving")
    left, right = (
        np.array(
            page.evaluate(
                """(id) => Array.from(document.getElementById(id).getContext('2d')
                     .getImageData(0, 0, 48, 48).data.filter((_, i) => i % 4 < 3))""",
                name,
            ),
            float,
        )
        for name in ("before", "leaves")
    )
    assert np.corrcoef(left, right)[0, 1] > 0.95, "it is seen to be the photo"
    shoot(page, "identity")


@pytest.fixture
def auditor(tmp_path: Path) -> tuple[Path, str]:
    return tmp_path / "ada.key", make_key(tmp_path / "ada.key")


def test_a_signature_counts_once_its_key_is_trusted(
    page: Page, running: Site, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    key, print_of = auditor
    odd = replace(audit_of(release), limits=("Straße 我們 🙂 \u2028 \x7f", "1e-05"), seconds=1e-05)
    made = opened(running, release, tmp_path / "mine", audit=sign(odd, Signer(key, "Ada\u202e")))
    visit(page, made)
    assert "you have not said to trust" in page.inner_text("#claim")
    assert print_of in page.inner_text("#claim") and "\u202e" not in page.inner_text("main")
    page.click("#trust-key")
    page.wait_for_selector("#hides-title:has-text('What it hides')")
    assert f"checked by Ada\\u202e, key {print_of}" in page.inner_text("#claim")
    assert "owner claims" not in page.inner_text("#hides")
    page.reload()
    page.wait_for_selector(READY)
    assert "checked by" in page.inner_text("#claim")
    shoot(page, "checked")
    page.click("#trust-key")
    page.wait_for_selector("#claim:has-text('not said to trust')")


def claim_in_page(page: Page, audit: Any, card: str, made: CampaignFolder) -> str:
    text = audit if isinstance(audit, str) else audit.to_json()
    given = in_page(
        page,
        """const { claimOf } = await load('claims');
           const manifest = { signing_key: given[2], release: { graph: given[3] } };
           return (await claimOf({ auditText: given[0], cardText: given[1], manifest })).kind;""",
        text,
        card,
        made.manifest.signing_key,
        made.manifest.release.graph,
    )
    return str(given)


def test_every_other_signature_is_no_check(
    page: Page, running: Site, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    key, print_of = auditor
    made = opened(running, release, tmp_path / "mine")
    visit(page, made)
    page.evaluate("(key) => localStorage.setItem('privet/auditor/' + key, 'Ada')", print_of)
    card = (release / "card.json").read_text()
    right = sign(audit_of(release), Signer(key, "Ada"))
    quiet = json.loads(card)
    quiet["noise"]["scale"] = 1e-6
    text = right.to_json()
    own = sign(audit_of(release), Signer(tmp_path / "owner.key", "An Independent Lab"))
    kinds = {
        "right": claim_in_page(page, right, card, made),
        "reordered": claim_in_page(page, json.dumps(json.loads(text), indent=3), card, made),
        "a figure": claim_in_page(page, text.replace("0.6123", "0.5123"), card, made),
        "a name twice": claim_in_page(page, '{"seconds": 1, ' + text.strip()[1:], card, made),
        "quiet": claim_in_page(page, right, json.dumps(quiet), made),
        "unsigned": claim_in_page(page, audit_of(release), card, made),
        "the owner's": claim_in_page(page, own, card, made),
        "no signature": claim_in_page(
            page, json.dumps({**json.loads(text), "signature": {"key": "x"}}), card, made
        ),
    }
    assert kinds == {
        "right": "checked",
        "reordered": "checked",
        "a figure": "changed",
        "a name twice": "owner",
        "quiet": "unbound",
        "unsigned": "owner",
        "the owner's": "owner",
        "no signature": "changed",
    }


ASKED = json.loads((Path(__file__).parent / "asking.json").read_text(encoding="utf-8"))
NAMES = [
    ("Lab X, x@example.org", "LAB \u0425 (Berlin)"),
    ("Lab X", "Lab Y"),
    ("Universit\u00e4t Y", "UNIVERSITAT Y, Physik"),
    ("", "Lab X"),
    ("A; B", "a"),
]


def test_questions_and_names_are_compared_as_python_compares_them(
    page: Page, running: Site, release: Path, tmp_path: Path
) -> None:
    visit(page, opened(running, release, tmp_path / "mine"))
    for case in ASKED:
        refused, near = in_page(
            page,
            """const { askedFor, overlaps } = await load('asking');
               const [{ label, private: hidden, values }] = given;
               return [Boolean(askedFor([label], hidden)), overlaps([label], hidden, values ?? {})];
            """,
            case,
        )
        label = Label(**case["label"])
        assert refused == bool(asked_for([label], case["private"])), case
        wanted = overlaps([label], case["private"], case.get("values", {}))
        assert [tuple(one.values()) for one in near] == [tuple(one) for one in wanted], case
    for one, other in NAMES:
        same = in_page(page, "return (await load('owners')).isSameName(...given);", one, other)
        assert same == is_same_name(one, other), (one, other)


def test_a_campaign_that_asks_for_what_is_hidden_is_not_opened(
    page: Page, running: Site, release: Path, tmp_path: Path
) -> None:
    visit(page, opened(running, release, tmp_path / "mine"))
    said = in_page(
        page,
        """const { askedFor } = await load('asking');
           return askedFor([{ name: 'q', question: 'Do you have a beard?', values: [] }], ['beard']).name;
        """,
    )
    assert said == "q"


def test_looking_marks_no_key_and_a_new_key_under_a_known_name_must_be_accepted(
    page: Page, running: Site, release: Path, photos: list[Path], tmp_path: Path
) -> None:
    first = opened(running, release, tmp_path / "first", who="Lab X, x@example.org")
    for _ in range(2):
        visit(page, first)
        choose(page, photos[0])
        assert "you never sent to it" in page.inner_text("#about") and page.is_hidden("#alarms")
    send(page, photos[0])
    page.wait_for_selector("#receipts li")
    visit(page, first)
    assert "you sent to it before from this browser, as Lab X" in page.inner_text("#about")
    visit(page, opened(running, release, tmp_path / "second", "thief", who="LAB \u0425"))
    assert "somebody may pretend to be them" in page.inner_text("#alarms")
    choose(page, photos[1])
    page.check("#consent")
    assert page.is_disabled("#submit"), "consent alone is not enough"
    shoot(page, "new-key")
    page.check("#accept-key")
    assert page.is_enabled("#submit")
    page.click("#submit")
    page.wait_for_selector("#receipts li")
    assert "2 records to 2 owners" in page.inner_text("#ledger")


def test_more_records_than_a_bound_covers_are_agreed_to_by_themselves(
    page: Page, running: Site, release: Path, photos: list[Path], tmp_path: Path
) -> None:
    made = opened(running, release, tmp_path / "mine", audit=audit_of(release, 2))
    visit(page, made)
    send(page, photos[0])
    page.wait_for_selector("#receipts li")
    assert "above 61.3 %" in page.inner_text("#ledger")
    send(page, photos[0])
    page.wait_for_selector("#receipts li >> nth=1")
    assert "1 record sent" in page.inner_text("#ledger"), "the same numbers again"
    send(page, photos[1])
    page.wait_for_selector("#receipts li >> nth=2")
    assert "above 70.0 %" in page.inner_text("#ledger")
    choose(page, photos[2])
    page.check("#consent")
    assert page.is_disabled("#submit") and "3 records of me" in page.inner_text("#beyond")
    assert nameless(page) == []
    shoot(page, "beyond")
    page.check("#accept-beyond")
    page.click("#submit")
    page.wait_for_selector("#receipts li >> nth=3")
    assert "beard: not certified for 3 records of one person" in page.inner_text("#ledger")
    shoot(page, "ledger")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"status": 404, "body": '{"error": "There is no such record."}'}, "stored"),
        ({"status": 204}, "gone"),
        ({"status": 200, "body": "<h1>Log in</h1>"}, "gone"),
        ({"status": 410, "body": "{}"}, "gone"),
    ],
    ids=["empty", "earlier", "portal", "410"],
)
def test_a_wrong_server_takes_no_receipt(
    page: Page,
    running: Site,
    release: Path,
    photos: list[Path],
    tmp_path: Path,
    answer: dict[str, Any],
    state: str,
) -> None:
    made = opened(running, release, tmp_path / "mine")
    visit(page, made)
    send(page, photos[0])
    page.wait_for_selector("#receipts li")

    def instead(route: Any) -> None:
        if route.request.method == "DELETE":
            route.fulfill(**answer)
        else:
            route.continue_()

    page.route("**/submissions/*", instead)
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#status:has-text('receipt is kept')")
    page.unroute("**/submissions/*")
    assert page.get_attribute("#receipts li", "data-state") == state
    assert campaigns.figures(made).records == 1
    with page.expect_download() as downloading:
        page.click("text=Download receipt")
    receipt = Receipt.read(downloading.value.path())
    assert (receipt.manifest, receipt.signature) == (made.text, made.signature)
    assert receipt.consent.startswith("I agree") and receipt.secret
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#receipts li[data-state=withdrawn]")
    assert campaigns.figures(made).records == 0
    assert not [k for k in page.evaluate("Object.values(localStorage)") if receipt.secret in k]


@pytest.mark.parametrize("seed", range(3))
def test_pictures_are_recognised_in_every_layout_and_numbers_are_not(
    page: Page, running: Site, release: Path, tmp_path: Path, seed: int
) -> None:
    visit(page, opened(running, release, tmp_path / "mine"))
    rng = np.random.default_rng(seed)
    picture = np.asarray(portraits(20, seed=seed).records[seed]).astype(float) / 255
    dim = 0.01 * picture + 3
    noisy = picture + picture.std() * rng.standard_normal(picture.shape)
    maps = np.stack([np.roll(picture[k % 3], k, 0)[:16, :16] for k in range(20)])
    seen = {
        "planar": picture,
        "interleaved": picture.transpose(1, 2, 0),
        "flat": dim.ravel(),
        "flat, interleaved": dim.transpose(1, 2, 0).ravel(),
        "noisy": noisy,
        "grey": picture.mean(0).ravel(),
        "maps": maps,
        "numbers": rng.standard_normal(4096),
        "a few": rng.standard_normal(8),
        "no picture": rng.standard_normal((128, 16, 16)),
        "shuffled": rng.permutation(picture.ravel()),
    }
    drawn = {
        name: in_page(
            page,
            """const { pictureIn } = await load('picture_like');
               const input = { height: 48, width: 48 };
               return pictureIn(Float32Array.from(given[0]), given[1], input) !== null;""",
            values.ravel().tolist(),
            list(values.shape),
        )
        for name, values in seen.items()
    }
    no = {"numbers", "a few", "no picture", "shuffled"}
    assert drawn == {name: name not in no for name in seen}


def test_the_walk(
    page: Page, running: Site, release: Path, photos: list[Path], tmp_path: Path
) -> None:
    """Open, choose, send, see the ledger, withdraw: as it looks at the widths of desk and phone."""
    made = opened(
        running,
        release,
        tmp_path / "mine",
        audit=audit_of(release),
        labels=["hat=yes,no"],
    )
    visit(page, made)
    shoot(page, "1-open")
    choose(page, photos[0])
    shoot(page, "2-chosen")
    page.check("#consent")
    page.click("#submit")
    page.wait_for_selector("#receipts li")
    assert page.evaluate("document.activeElement.id") == "sent-title"
    shoot(page, "3-sent")
    page.click("#receipts >> text=Withdraw")
    page.wait_for_selector("#receipts li[data-state=withdrawn]")
    shoot(page, "4-withdrawn")
    assert nameless(page) == []


FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PUPPETEER = WEB / "node_modules" / "puppeteer-core" / "lib"


@pytest.mark.skipif(
    FIREFOX is None, reason="there is no Firefox here: on Debian, install the package firefox-esr"
)
@pytest.mark.skipif(not PUPPETEER.is_dir(), reason="Firefox is driven by puppeteer-core: make web")
@pytest.mark.skipif(shutil.which("node") is None, reason="puppeteer-core is run by node")
def test_the_same_walk_in_firefox(
    running: Site, release: Path, photos: list[Path], tmp_path: Path
) -> None:
    made = opened(running, release, tmp_path / "mine", audit=audit_of(release))
    given = {
        "puppeteer": str(next(PUPPETEER.rglob("puppeteer-core.js"))),
        "firefox": FIREFOX,
        "link": made.link.text,
        "photo": str(photos[0]),
        "shots": SHOTS,
    }
    walk = Path(__file__).parent / "firefox_walk.mjs"
    done = subprocess.run(
        ["node", str(walk)], input=json.dumps(given), capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "owner claims" in said["claim"] and "8 numbers" in said["leaving"] and said["disabled"]
    assert "1 record sent" in said["ledger"] and "above 61.3 %" in said["ledger"]
    assert "the collector has deleted it" in said["withdrawn"]
    assert campaigns.figures(made).records == 0
