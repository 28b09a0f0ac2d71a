"""Receipts that nothing destroys, and a ledger of what was sent: wrong servers, lost answers, kills
at every step, more records than a bound covers."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from taking_part import TERMS, URL, Wire, through

from conftest import Bridge, Running
from privet.core.errors import PrivetError
from privet.exchange.owner import campaigns
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.participant import share as sharing
from privet.exchange.participant.campaign import fetch_campaign
from privet.exchange.participant.ledger import entries
from privet.exchange.participant.ledger_lines import ledger
from privet.exchange.participant.outbox import Outbox
from privet.exchange.participant.private_files import write_private
from privet.exchange.participant.receipts import Receipt
from privet.exchange.participant.records import prepare
from privet.exchange.participant.share import Allowed, send, withdraw

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from example_audits import certificates, full


@pytest.fixture
def wire(collector: Running) -> Wire:
    return Wire(Bridge(collector.http))


@pytest.fixture
def home(tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sharing, "Client", lambda server: through(wire))
    return tmp_path / "home"


def make(
    collector: Running, release: Path, folder: Path, covers: int = 0, key: str = "owner"
) -> CampaignFolder:
    """A campaign, with an audit that has bounds for one record and for so many."""
    more: dict[str, Any] = {}
    if covers:
        graph = json.loads((release / "card.json").read_text())["sha256"]["graph"]
        one = replace(certificates()[0], bound=0.6)
        several = () if covers == 1 else (replace(one, records=covers, bound=0.7),)
        audit = replace(full(), release={"sha256": {"graph": graph}}, rebuilt=())
        folder.mkdir()
        path = folder.with_suffix(".json")
        replace(audit, certificates=(one, *several)).save(path)
        folder.rmdir()
        more["audit"] = path
    keys = folder.parent / f"{key}.key"
    terms = replace(TERMS, who=f"Lab {key}")
    return campaigns.create(
        URL, release, folder, terms, collector.operator, keys, connect=collector.client, **more
    )


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Twelve photos of one person."""
    rng, paths = np.random.default_rng(0), []
    for k in range(12):
        paths.append(tmp_path / f"{k}.png")
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(paths[-1])
    return paths


def take_part(made: CampaignFolder, files: list[Path], home: Path, **more: Any) -> str:
    said: list[str] = []
    sharing.share(
        made.link.text,
        files,
        ["smiling=yes"],
        confirm=lambda: True,
        show=said.append,
        home=home,
        **more,
    )
    return "\n".join(said)


def stored(collector: Running, made: CampaignFolder) -> int:
    return len(collector.collector.database.submissions(made.link.campaign, 0, 1000))


EMPTY = httpx.Response(404, json={"error": "There is no such record."})
PORTAL = httpx.Response(200, html="<h1>Log in to the WLAN</h1>")


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (EMPTY, "stored", "NOT deleted"),
        (httpx.Response(404, text="nginx"), "stored", "NOT deleted"),
        (httpx.Response(410, json={"error": "gone"}), "gone", "without proof"),
        (PORTAL, "gone", "without proof"),
        (httpx.Response(204), "gone", "without proof"),
        (httpx.Response(204, headers={"privet-withdrawn": "0" * 64}), "gone", "without proof"),
        (httpx.Response(503), "stored", "NOT deleted"),
    ],
    ids=["empty", "proxy", "410", "portal", "earlier", "other bytes", "unwell"],
)
def test_a_wrong_server_takes_no_receipt(
    collector: Running,
    release: Path,
    pictures: list[Path],
    wire: Wire,
    home: Path,
    tmp_path: Path,
    answer: httpx.Response,
    state: str,
    words: str,
) -> None:
    made = make(collector, release, tmp_path / "mine")
    take_part(made, pictures[:1], home)
    wire.before = lambda request: answer if request.method == "DELETE" else None
    said: list[str] = []
    (receipt,) = withdraw(everything=True, home=home, show=said.append)
    assert receipt.state == state and words in said[0] and stored(collector, made) == 1
    (left,) = Outbox(home).receipts()
    assert left.secret and left.state == state
    wire.before = None
    (receipt,) = withdraw(everything=True, home=home, show=said.append)
    assert receipt.state == "withdrawn" and "deleted" in said[1] and stored(collector, made) == 0
    (after,) = Outbox(home).receipts()
    assert after.secret == ""
    assert after.secret_sha256 == hashlib.sha256(bytes.fromhex(left.secret)).hexdigest()
    assert withdraw(everything=True, home=home) == [], "what was withdrawn is not asked back again"


def test_a_receipt_holds_what_was_signed_and_agreed_to(
    collector: Running, release: Path, pictures: list[Path], home: Path, tmp_path: Path
) -> None:
    made = make(collector, release, tmp_path / "mine")
    take_part(made, pictures[:1], home)
    (receipt,) = Outbox(home).receipts()
    assert (receipt.manifest, receipt.signature) == (made.text, made.signature)
    assert "I agree" in receipt.consent and receipt.person == "" and receipt.invite is None
    for path in home.rglob("*"):
        private = stat.S_IMODE(path.stat().st_mode) & 0o077
        assert not private or "known" in path.parts, path


def test_earlier_receipts_are_still_read(tmp_path: Path) -> None:
    old = {
        "server": URL,
        "campaign": "0" * 32,
        "title": "Old",
        "submission": "1" * 32,
        "secret": "ab" * 32,
        "sha256": "c" * 64,
        "source": "a.jpg",
        "received": 1,
    }
    outbox = Outbox(tmp_path)
    (outbox.sent / f"{'1' * 32}.json").write_text(json.dumps(old))
    assert outbox.receipts()[0].state == "stored"
    assert "not certified for 1 record of one person" in ledger(entries(outbox))


def test_a_refusal_after_a_lost_answer_keeps_the_secret(
    collector: Running,
    release: Path,
    pictures: list[Path],
    wire: Wire,
    home: Path,
    tmp_path: Path,
) -> None:
    """The record is stored, the answer is lost, and the next try meets a proxy that refuses."""
    made = make(collector, release, tmp_path / "mine")

    def lose(request: httpx.Request, answer: httpx.Response) -> None:
        if request.method == "POST":
            raise httpx.ReadError("lost")

    wire.after = lose
    take_part(made, pictures[:1], home)
    wire.after = None
    wire.before = lambda request: httpx.Response(403, text="blocked")
    outbox = Outbox(home)
    assert outbox.send_all(lambda server: through(wire)).refused and stored(collector, made) == 1
    assert [one.state for one in outbox.receipts()] == ["unsure"]
    wire.before = None
    assert [one.state for one in withdraw(everything=True, home=home)] == ["withdrawn"]
    assert stored(collector, made) == 0


STEPS = ["written", "sent", "kept", "asked", "deleted"]


@pytest.mark.parametrize("step", STEPS)
def test_kill_9_at_any_step_loses_no_record_and_no_secret(
    collector: Running,
    release: Path,
    pictures: list[Path],
    wire: Wire,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Taking part and withdrawing end at one step, with nothing run after it; then it is gone on
    with from the files."""
    made = make(collector, release, tmp_path / "mine")
    campaign = fetch_campaign(made.link, through(wire))
    records = prepare(campaign, pictures[:1], ["smiling=yes"], home=home)
    seen: list[str] = []

    class Killed(BaseException):
        """Nothing after this is run, as after kill -9: no handler of ours catches it."""

    def at(name: str) -> None:
        seen.append(name)
        if name == step:
            raise Killed

    written = Receipt.write

    def write(self: Receipt, folder: Path) -> None:
        written(self, folder)
        if folder.name == "outbox":
            at("written")
        else:
            at("asked" if self.asked_back and self.state == "stored" else "kept")

    def after(request: httpx.Request, answer: httpx.Response) -> None:
        at({"POST": "sent", "DELETE": "deleted"}.get(request.method, ""))

    outbox = Outbox(home)
    with monkeypatch.context() as child:
        child.setattr(Receipt, "write", write)
        wire.after = after
        with pytest.raises(Killed):
            send(campaign, records, outbox, through(wire))
            withdraw(everything=True, home=home)
    wire.after = None
    assert seen[-1] == step
    again = Outbox(home)
    again.send_all(lambda server: through(wire))
    assert stored(collector, made) == (0 if step == "deleted" else 1)
    assert len(again.receipts()) == 1 and not list(again.waiting.glob("*"))
    states = [one.state for one in withdraw(everything=True, home=home)]
    assert states == ["gone" if step == "deleted" else "withdrawn"]
    assert stored(collector, made) == 0


def test_files_are_whole_after_a_real_kill(tmp_path: Path) -> None:
    """Processes that write one receipt over and over, killed: what is there can be read."""
    path = tmp_path / "file.json"
    for _ in range(10):
        child = os.fork()
        if child == 0:
            k = 0
            while True:
                k += 1
                write_private(path, json.dumps({"k": k, "pad": "x" * 20_000}).encode())
        while not path.exists():
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(json.loads(path.read_bytes())["pad"]) == 20_000
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("covers", "most"), [(0, 1), (1, 1), (5, 5)])
def test_no_more_records_leave_than_a_bound_covers(
    collector: Running,
    release: Path,
    pictures: list[Path],
    home: Path,
    tmp_path: Path,
    covers: int,
    most: int,
) -> None:
    made = make(collector, release, tmp_path / "mine", covers)
    with pytest.raises(PrivetError, match="--beyond-certificate"):
        take_part(made, pictures[:10], home)
    assert stored(collector, made) == 0
    for k in range(most):
        take_part(made, pictures[k : k + 1], home)
    take_part(made, pictures[:most], home)  # the same again tells nothing new
    with pytest.raises(PrivetError, match="no bound covers"):
        take_part(made, pictures[most : most + 1], home)
    withdraw(everything=True, home=home)
    with pytest.raises(PrivetError, match="no bound covers"):
        take_part(made, pictures[most : most + 1], home)
    said = take_part(made, pictures[:10], home, dry_run=True)
    assert "10 different ones of you" in said and "Several can tell much more" in said
    take_part(made, pictures[:10], home, allowed=Allowed(beyond=True))
    text = ledger(entries(Outbox(home)))
    assert "10 records sent" in text and "beard: not certified for 10 records" in text


def test_the_ledger_says_what_is_known_at_the_number_sent(
    collector: Running, release: Path, pictures: list[Path], home: Path, tmp_path: Path
) -> None:
    assert ledger(entries(Outbox(home))) == "Nothing was sent from here."
    first = make(collector, release, tmp_path / "first", 5)
    take_part(first, pictures[:1], home)
    text = ledger(entries(Outbox(home)))
    assert "above 60.0 %" in text and "one release of one record" in text
    assert text.count("owner claims") == 1 and "together" not in text
    take_part(first, pictures[1:3], home)
    text = ledger(entries(Outbox(home)))
    assert "above 70.0 %" in text and "5 records of a person" in text and "60.0" not in text
    assert text.count("  stored  ") == 3
    second = make(collector, release, tmp_path / "second", 5)
    take_part(second, pictures[3:4], home)
    text = ledger(entries(Outbox(home)))
    assert "4 records in 2 campaigns of this owner: nothing is certified" in text
    assert "owners" not in text
    take_part(make(collector, release, tmp_path / "third", 0, "other"), pictures[:1], home)
    text = ledger(entries(Outbox(home)))
    assert "5 records to 2 owners" in text and "not certified for 1 record of one" in text
    withdraw(campaign=first.link.text, home=home)
    assert ledger(entries(Outbox(home))).count("  withdrawn  ") == 3
