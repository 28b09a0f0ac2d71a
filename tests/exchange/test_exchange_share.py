"""From a photo to a table: a participant checks, releases and sends; the owner exports; nobody else
can read, and no raw byte leaves."""

from __future__ import annotations

import base64
import json
import stat
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image
from world import world

from conftest import Bridge, Running
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.core.secret_files import write_secret
from privet.data.schema import ImageSchema
from privet.exchange.owner import campaigns
from privet.exchange.owner.campaigns import CampaignFolder, Terms
from privet.exchange.owner.export import TABLE, download, export
from privet.exchange.owner.published import published_audit
from privet.exchange.participant.campaign import Campaign, fetch_campaign
from privet.exchange.participant.metadata import metadata
from privet.exchange.participant.outbox import Outbox
from privet.exchange.participant.owners import Standing
from privet.exchange.participant.records import prepare
from privet.exchange.participant.sentences import about, leaves
from privet.exchange.participant.share import send
from privet.exchange.protocol import seal
from privet.exchange.protocol.client import Client, Link, Offline, Rejected, server_address
from privet.nets import registry as nets
from privet.release.release import Release

URL = "http://127.0.0.1:1"
TERMS = Terms(
    "Smiles", "To learn smiles.", "Lab X", ["smiling=yes,no", "age"], records_per_person=40
)
PLACE = "52.5200 N, 13.4050 E"


class Wire(httpx.BaseTransport):
    """What goes over the network: remembered, and changed or cut off where a test wants it."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner, self.sent = inner, []  # type: ignore[var-annotated]
        self.down = False
        self.lose_answer = False
        self.change: Any = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("no network")
        self.sent.append((request.method, str(request.url), dict(request.headers), request.read()))
        answer = self.inner.handle_request(request)
        if self.lose_answer and request.method == "POST":
            raise httpx.ReadError("the connection was lost")
        if self.change is not None:
            content = self.change(str(request.url), answer.read())
            return httpx.Response(
                answer.status_code, headers={"content-type": "application/json"}, content=content
            )
        return answer


@pytest.fixture
def wire(collector: Running) -> Wire:
    return Wire(Bridge(collector.http))


@pytest.fixture
def opened(collector: Running, release: Path, tmp_path: Path) -> CampaignFolder:
    return campaigns.create(
        URL,
        release,
        tmp_path / "campaign",
        TERMS,
        collector.operator,
        tmp_path / "owner.key",
        connect=collector.client,
    )


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    yield Outbox(tmp_path / "home")


def through(wire: Wire) -> Client:
    return Client(URL, transport=wire)


def test_the_whole_way(
    collector: Running,
    opened: CampaignFolder,
    photo: Path,
    outbox: Outbox,
    wire: Wire,
    tmp_path: Path,
) -> None:
    client = through(wire)
    campaign = fetch_campaign(opened.link, client)
    assert campaign.fingerprint == fingerprint(opened.manifest.signing_key)
    records = prepare(campaign, [photo, photo], ["smiling=yes", "age=30"])
    assert np.array_equal(records[0].z, records[1].z), "the same record gives the same numbers"
    said = about(campaign, Standing("new")) + leaves(campaign, records)
    for word in (
        "beard",
        "Lab X",
        "30 days",
        PLACE,
        "Phone 7",
        "2026:11:01",
        "Anna Example",
        "does not leave",
        f"{len(records[0].content)} bytes",
    ):
        assert word in said
    sent = send(campaign, records, outbox, client)
    assert len(sent.receipts) == 2 and not sent.waiting and not sent.refused
    assert [receipt.submission for receipt in outbox.receipts()] and not list(outbox.queued())

    got = export(opened, tmp_path / "out", connect=collector.client)
    table = pq.read_table(got.table)
    assert got.records == 2 and table.column_names == [
        "submission",
        "person",
        "smiling",
        "age",
        "z",
    ]
    by_name = {row["submission"]: row for row in table.to_pylist()}
    for record in records:
        row = by_name[record.submission]
        assert (row["smiling"], row["age"]) == ("yes", 30.0)
        assert np.array_equal(np.float32(row["z"]), record.z)
    assert len(set(table["person"].to_pylist())) == 1

    assert outbox.withdraw(sent.receipts[0], client).state == "withdrawn"
    assert outbox.withdraw(sent.receipts[0], client).state == "gone", "a second request"
    got = export(opened, tmp_path / "out", connect=collector.client)
    assert got.records == 1
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["withdrawn"] == [
        sent.receipts[0].submission
    ]
    assert outbox.withdraw(sent.receipts[1], client).state == "withdrawn"
    got = export(opened, tmp_path / "out", connect=collector.client)
    assert got.records == 0 and len(pq.read_table(tmp_path / "out" / TABLE)) == 0


def test_no_request_carries_the_photo_its_name_or_its_metadata(
    opened: CampaignFolder, photo: Path, outbox: Outbox, wire: Wire
) -> None:
    client = through(wire)
    campaign = fetch_campaign(opened.link, client)
    send(campaign, prepare(campaign, [photo], ["smiling=no"]), outbox, client)
    raw = photo.read_bytes()
    small = np.asarray(Image.open(photo).convert("RGB").resize((16, 16)))
    secrets = [raw[k : k + 24] for k in range(0, len(raw) - 24, 24)] + [
        small.tobytes()[:24],
        small.transpose(2, 0, 1).tobytes()[:24],
    ]
    forms = [
        form
        for secret in secrets
        for form in (
            secret,
            base64.b64encode(secret)[:30],
            secret.hex().encode(),
            zlib.compress(secret)[2:20],
        )
    ]
    words = [b"anna", b"Acme", b"Phone 7", b"52.5", b"smiling", b"JFIF", b"Exif"]
    for method, url, headers, content in wire.sent:
        everything = method.encode() + url.encode() + json.dumps(headers).encode() + content
        assert not any(form in everything for form in forms)
        if method == "POST":
            assert not any(word.lower() in everything.lower() for word in words)
            assert len(content) == 576


def test_only_the_owner_can_read(
    collector: Running,
    opened: CampaignFolder,
    photo: Path,
    outbox: Outbox,
    wire: Wire,
    tmp_path: Path,
) -> None:
    campaign = fetch_campaign(opened.link, through(wire))
    records = prepare(campaign, [photo], ["smiling=yes"])
    send(campaign, records, outbox, through(wire))
    [blob] = (collector.folder / "blobs" / opened.link.campaign).glob("*")
    assert records[0].z.tobytes() not in blob.read_bytes() and b"smiling" not in blob.read_bytes()
    other = tmp_path / "other.key"
    write_secret(other, seal.sealing_keys()[0])
    with pytest.raises(PrivetError, match="not sealed with this campaign's key"):
        export(opened, tmp_path / "out", key=other, connect=collector.client)


def test_an_export_may_be_opened_without_a_network(
    collector: Running,
    opened: CampaignFolder,
    photo: Path,
    outbox: Outbox,
    wire: Wire,
    tmp_path: Path,
) -> None:
    campaign = fetch_campaign(opened.link, through(wire))
    send(campaign, prepare(campaign, [photo] * 3, ["smiling=yes"]), outbox, through(wire))
    assert download(opened, tmp_path / "sealed.bin", collector.client) == 3

    def nobody(_url: str, _token: str | None = None) -> Client:
        raise AssertionError("there is no network here")

    assert (
        export(opened, tmp_path / "out", source=tmp_path / "sealed.bin", connect=nobody).records
        == 3
    )
    (tmp_path / "sealed.bin").write_bytes((tmp_path / "sealed.bin").read_bytes()[:-5])
    with pytest.raises(PrivetError, match="cut off"):
        export(opened, tmp_path / "other", source=tmp_path / "sealed.bin", connect=nobody)


def test_a_record_that_was_not_made_by_the_release_is_left_out_of_the_export(
    collector: Running, opened: CampaignFolder, tmp_path: Path
) -> None:
    """Sealed, nobody sees it on the way; the owner looks at it before using it."""
    made = replace(world(), manifest=opened.manifest, text=opened.text)
    z = np.array([0.5, -0.25, 0.125, 0.75], np.float32)
    assert collector.submit(made, "0" * 32, made.body("0" * 32, z + 100)).status_code == 201
    assert collector.submit(made, "1" * 32, made.body("2" * 32, z)).status_code == 201
    assert collector.submit(made, "3" * 32, made.body("3" * 32, z)).status_code == 201
    got = export(opened, tmp_path / "out", connect=collector.client)
    assert got.records == 1 and sum(got.refused.values()) == 2


@pytest.mark.parametrize("what", ["manifest", "signature", "card", "graph"])
def test_a_participant_refuses_what_was_tampered_with(
    opened: CampaignFolder, wire: Wire, what: str
) -> None:
    def change(url: str, content: bytes) -> bytes:
        if "/parts/" in url:
            name = getattr(opened.manifest.release, what, None)
            return content[:-1] + bytes([content[-1] ^ 1]) if name and name in url else content
        about_it = json.loads(content)
        if what == "manifest":
            about_it["manifest"] = about_it["manifest"].replace("Lab X", "Lab Y")
        if what == "signature":
            about_it["signature"] = seal.sign(opened.text.encode(), seal.signing_key())
        return json.dumps(about_it).encode()

    wire.change = change
    with pytest.raises(PrivetError, match="Do not take part"):
        fetch_campaign(opened.link, through(wire))


def test_a_graph_that_reads_a_participants_file_is_not_run(
    opened: CampaignFolder, photo: Path, wire: Wire, monkeypatch: Any
) -> None:
    """A campaign's graph could name a file in the folder that records are shared from, and its
    owner would export it."""
    monkeypatch.chdir(photo.parent)
    campaign = fetch_campaign(opened.link, through(wire))
    graph = onnx.load_from_string(campaign.graph)
    tensor = onnx.TensorProto(
        name="stolen", data_type=onnx.TensorProto.UINT8, dims=[photo.stat().st_size]
    )
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=photo.name)
    graph.graph.initializer.append(tensor)
    with pytest.raises(PrivetError, match="read from another file"):
        prepare(replace(campaign, graph=graph.SerializeToString()), [photo])


def test_the_owners_key_may_be_pinned(opened: CampaignFolder, wire: Wire, tmp_path: Path) -> None:
    right = fingerprint(opened.manifest.signing_key)
    assert fetch_campaign(opened.link, through(wire), pinned=right.upper().replace(" ", ":")).open
    with pytest.raises(PrivetError, match="not the one you expect"):
        fetch_campaign(
            opened.link, through(wire), pinned=("1" if right[0] == "0" else "0") + right[1:]
        )


def test_without_a_network_records_wait_and_leave_later_under_the_same_key(
    collector: Running, opened: CampaignFolder, photo: Path, outbox: Outbox, wire: Wire
) -> None:
    client = through(wire)
    campaign = fetch_campaign(opened.link, client, outbox.home / "known")
    wire.down = True
    again = fetch_campaign(opened.link, client, outbox.home / "known")
    assert again.manifest == campaign.manifest, "what was fetched before is enough"
    records = prepare(again, [photo, photo], ["smiling=yes"])
    sent = send(again, records, outbox, client)
    assert (len(sent.receipts), sent.waiting) == (0, 2) and "no network" in sent.why
    wire.down, wire.lose_answer = False, True
    assert outbox.send_all(lambda _: client).waiting == 2, "stored, but nobody has heard of it"
    wire.lose_answer = False
    sent = outbox.send_all(lambda _: client)
    assert len(sent.receipts) == 2 and {receipt.submission for receipt in sent.receipts} == {
        record.submission for record in records
    }
    assert len(collector.collector.database.submissions(opened.link.campaign, 0, 10)) == 2
    assert not list(outbox.waiting.iterdir())


def test_what_is_kept_at_home_is_its_owners_alone_and_never_raw(
    opened: CampaignFolder, photo: Path, outbox: Outbox, wire: Wire, tmp_path: Path
) -> None:
    campaign = fetch_campaign(opened.link, through(wire), outbox.home / "known")
    wire.down = True
    send(campaign, prepare(campaign, [photo], ["smiling=yes"]), outbox, through(wire))
    raw = photo.read_bytes()
    for path in outbox.home.rglob("*"):
        if path.is_file() and path.parent.name != "known":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert raw[200:230] not in path.read_bytes()


def test_a_refused_record_does_not_wait_for_ever(
    collector: Running, opened: CampaignFolder, photo: Path, outbox: Outbox, wire: Wire
) -> None:
    campaign = fetch_campaign(opened.link, through(wire))
    campaigns.close(opened, collector.client)
    sent = send(campaign, prepare(campaign, [photo], ["smiling=yes"]), outbox, through(wire))
    assert len(sent.refused) == 1 and "closed" in sent.refused[0] and not list(outbox.queued())
    assert fetch_campaign(opened.link, through(wire)).open is False


@pytest.mark.parametrize(
    "label", ["beard=yes", "Beard=yes", "smiling=perhaps", "colour=red", "smiling", "age=old"]
)
def test_only_what_is_asked_may_be_told(
    opened: CampaignFolder, photo: Path, wire: Wire, label: str
) -> None:
    with pytest.raises(PrivetError):
        prepare(fetch_campaign(opened.link, through(wire)), [photo], [label])


def test_more_than_a_person_may_give_is_refused_before_it_leaves(
    opened: CampaignFolder, photo: Path, wire: Wire
) -> None:
    with pytest.raises(PrivetError, match="40 records from one person"):
        prepare(fetch_campaign(opened.link, through(wire)), [photo] * 41)


def test_a_campaign_never_asks_for_what_is_hidden(
    collector: Running, release: Path, tmp_path: Path
) -> None:
    for label in ("beard=yes,no", "BEARD"):
        with pytest.raises(PrivetError, match="hides"):
            campaigns.create(
                URL,
                release,
                tmp_path / "no",
                replace(TERMS, labels=[label]),
                collector.operator,
                tmp_path / "k",
                connect=collector.client,
            )
    assert not (tmp_path / "no").exists()


def test_nothing_is_left_of_a_campaign_that_could_not_be_made(
    release: Path, collector: Running, tmp_path: Path
) -> None:
    with pytest.raises(Rejected, match="valid token"):
        campaigns.create(
            URL,
            release,
            tmp_path / "no",
            TERMS,
            "pvt_0_0",
            tmp_path / "k",
            connect=collector.client,
        )
    assert not (tmp_path / "no").exists()


def test_a_published_audit_shows_nobody(tmp_path: Path) -> None:
    shown = {
        "measure": "PSNR in dB",
        "value": 21.0,
        "n": 9,
        "originals": ["SOMEBODY"],
        "rebuilt": ["SOMEBODY AGAIN"],
    }
    audit = {
        "release": {"sha256": {"graph": "a" * 64}},
        "rebuilt": [shown],
        "readings": [{"attribute": "beard"}],
    }
    published = json.loads(
        published_audit(json.dumps(audit).encode(), "a" * 64, tmp_path / "audit.json")
    )
    assert "SOMEBODY" not in json.dumps(published)
    assert published["readings"] == audit["readings"] and published["rebuilt"][0]["value"] == 21.0


def test_the_audit_of_another_release_is_refused(
    collector: Running, release: Path, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.json"
    audit.write_text(json.dumps({"release": {"sha256": {"graph": "0" * 64}}}))
    with pytest.raises(PrivetError, match="another release"):
        campaigns.create(
            URL,
            release,
            tmp_path / "no",
            TERMS,
            collector.operator,
            tmp_path / "k",
            audit=audit,
            connect=collector.client,
        )


def test_invited_people_take_part_by_their_link(
    collector: Running, release: Path, photo: Path, outbox: Outbox, wire: Wire, tmp_path: Path
) -> None:
    terms = replace(TERMS, access="invited")
    opened = campaigns.create(
        URL,
        release,
        tmp_path / "c",
        terms,
        collector.operator,
        tmp_path / "k",
        connect=collector.client,
    )
    first, second = campaigns.invite(opened, 2, 7, collector.client)
    campaigns.revoke(opened, second, collector.client)

    def take_part(link: Link) -> int:
        campaign = fetch_campaign(link, through(wire))
        return len(
            send(
                campaign, prepare(campaign, [photo], ["smiling=yes"]), outbox, through(wire)
            ).receipts
        )

    assert [take_part(Link.parse(link)) for link in (first, second, opened.link.text)] == [1, 0, 0]
    kept = "".join(path.read_text() for path in outbox.sent.iterdir())
    assert "pvt_" not in kept, "a receipt holds no invitation"


def test_open_campaigns_take_what_the_release_gives(
    collector: Running, table_release: Path, outbox: Outbox, wire: Wire, tmp_path: Path
) -> None:
    """Rows of a table, with labels from its own columns; the server checks every record, and the
    honest ones pass."""
    terms = replace(TERMS, mode="open")
    opened = campaigns.create(
        URL,
        table_release,
        tmp_path / "c",
        terms,
        collector.operator,
        tmp_path / "k",
        connect=collector.client,
    )
    assert (
        opened.manifest.expect.law == "gaussian"
        and opened.manifest.expect.low == -1.0
        and opened.manifest.expect.step
    )
    assert not (tmp_path / "c" / "sealing.key").exists()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(30),
            "b": rng.standard_normal(30),
            "smiling": [1, 0] * 15,
            "beard": [0, 1] * 15,
        }
    )
    frame.to_csv(tmp_path / "mine.csv", index=False)
    campaign = fetch_campaign(opened.link, through(wire))
    records = prepare(campaign, [tmp_path / "mine.csv"])
    assert [record.labels["smiling"] for record in records[:2]] == ["yes", "no"]
    sent = send(campaign, records, outbox, through(wire))
    assert len(sent.receipts) == 30, sent.refused
    got = pq.read_table(export(opened, tmp_path / "out", connect=collector.client).table)
    assert len(got) == 30 and "beard" not in got.column_names


def test_a_release_whose_records_look_raw_must_be_sealed(
    collector: Running, tmp_path: Path
) -> None:
    schema = ImageSchema(3, 8, 8)
    card = {"method": "identity", "private": ["beard"]}
    Release(schema, ("identity", {}), nets.build("identity", schema, {}), None, card).save(
        tmp_path / "identity"
    )
    with pytest.raises(PrivetError, match="Use a sealed campaign"):
        campaigns.create(
            URL,
            tmp_path / "identity",
            tmp_path / "c",
            replace(TERMS, mode="open"),
            collector.operator,
            tmp_path / "k",
            connect=collector.client,
        )


def test_links_and_addresses() -> None:
    name = "0" * 32
    assert Link.parse(f"https://x.org/deep/c/{name}/").server == "https://x.org/deep"
    for wrong in (
        "",
        "x",
        f"ftp://x/c/{name}",
        "https://x.org/c/123",
        f"http://x.org/c/{name}",
        f"https:///c/{name}",
    ):
        with pytest.raises(PrivetError):
            Link.parse(wrong)
    for here in ("http://127.0.0.1:8300", "http://localhost", "http://[::1]:1"):
        assert server_address(here) == here
    with pytest.raises(PrivetError, match="https"):
        server_address("http://192.168.0.7:8300")


def test_a_collector_that_is_not_there_is_offline() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(Offline, match="cannot be reached"):
        client.request("GET", "/healthz")


def test_a_photos_metadata_is_found(photo: Path, tmp_path: Path) -> None:
    found = metadata(photo)
    assert (
        found["place"] == PLACE
        and sorted(found["device"].split(", ")) == ["Acme", "Phone 7"]
        and found["name"] == "Anna Example"
    )
    assert metadata(photo.read_bytes()) == found
    bare = tmp_path / "bare.png"
    Image.new("RGB", (4, 4)).save(bare)
    assert metadata(bare) == {}
    assert metadata(b"not a picture") == {}


def test_terminal_codes_in_a_campaign_do_not_reach_the_terminal(opened: CampaignFolder) -> None:
    campaign = Campaign(
        opened.link, opened.manifest.model_copy(update={"title": "a\x1b[2Jb"}), {}, b"", True
    )
    assert "\x1b" not in about(campaign, Standing("new"))
