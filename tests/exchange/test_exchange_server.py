"""The collector: what it takes, what it refuses, what it gives back."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from world import World, headers, world

from conftest import Running, Start
from privet.exchange.blobs import Blob, Disk, blob_name
from privet.exchange.commits import Offer
from privet.exchange.limits import Buckets, Limits
from privet.exchange.retention import expire, sweep, tidy
from privet.exchange.store import DAY, Store, now

KEYS = [f"{k:032x}" for k in range(50)]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# Submissions


@pytest.mark.parametrize("mode", ["sealed", "open"])
def test_a_record_is_on_disk_and_in_a_row_when_it_is_acknowledged(collector: Running, mode: str) -> None:
    made = world(mode)
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    answer = collector.submit(made, KEYS[0], content)
    assert answer.status_code == 201
    assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest()
    [row] = collector.collector.store.rows(made.id, 0, 10)
    assert row.id == KEYS[0]
    assert (collector.folder / "blobs" / made.id / row.blob).read_bytes() == content


def test_the_same_request_again_gets_the_same_receipt_and_stores_nothing(collector: Running) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    first, second = collector.submit(made, KEYS[0], content), collector.submit(made, KEYS[0], content)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert collector.stored(made) == (1, 1)


def test_another_record_under_the_same_key_is_refused(collector: Running) -> None:
    made = world()
    collector.settle(made)
    assert collector.submit(made, KEYS[0]).status_code == 201
    assert collector.submit(made, KEYS[0], made.body(KEYS[0], made.record(7))).status_code == 409
    assert collector.stored(made) == (1, 1)


def test_the_same_bytes_under_another_key_are_a_replay(collector: Running) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    assert collector.submit(made, KEYS[0], content).status_code == 201
    assert collector.submit(made, KEYS[1], content).status_code == 409
    assert collector.stored(made) == (1, 1)


def test_two_at_once_with_one_key_are_one_record(collector: Running) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: collector.submit(made, KEYS[0], content), range(32)))
    assert sorted(answer.status_code for answer in answers) == [200] * 31 + [201]
    assert len({answer.text for answer in answers}) == 1
    assert collector.stored(made) == (1, 1)


def test_many_at_once_are_all_stored_once(collector: Running) -> None:
    made = world()
    collector.settle(made)
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda k: collector.submit(made, f"{k:032x}"), range(200)))
    assert {answer.status_code for answer in answers} == {201}
    assert collector.stored(made) == (200, 200)


def test_a_record_for_another_campaign_is_refused(collector: Running) -> None:
    mine, other = world("open"), world("open")
    collector.settle(mine)
    collector.settle(other)
    content = mine.body(KEYS[0], mine.record())
    answer = collector.http.post(f"/v1/campaigns/{other.id}/submissions", content=content, headers=headers(other, KEYS[0], "00" * 32))
    assert answer.status_code == 422 and "another campaign" in answer.json()["error"]
    assert (
        collector.http.post(f"/v1/campaigns/{'0' * 32}/submissions", content=content, headers=headers(mine, KEYS[0], "00" * 32)).status_code
        == 404
    )
    assert collector.stored(other) == (0, 0)


def test_an_unknown_mechanism_is_refused(collector: Running) -> None:
    made = world("open")
    collector.settle(made)
    answer = collector.submit(made, KEYS[0], privet_release="9" * 64)
    assert answer.status_code == 422 and "another release" in answer.json()["error"]
    inside = made.plain(KEYS[0], made.record(), release="9" * 64)
    assert collector.submit(made, KEYS[0], inside).status_code == 422
    assert collector.stored(made) == (0, 0)


def test_a_private_label_is_refused(collector: Running) -> None:
    made = world("open")
    collector.settle(made)
    answer = collector.submit(made, KEYS[0], made.body(KEYS[0], made.record(), {"Beard": "yes"}))
    assert answer.status_code == 422 and "hides" in answer.json()["error"]


def test_a_photo_is_refused_in_every_kind_of_campaign(collector: Running) -> None:
    photo = b"\xff\xd8\xff\xe0" + os.urandom(600)
    for mode in ("sealed", "open"):
        made = world(mode)
        collector.settle(made)
        assert collector.submit(made, KEYS[0], photo).status_code == 422
        assert collector.stored(made) == (0, 0)


def test_an_unsealed_record_is_refused_where_records_are_sealed(collector: Running) -> None:
    made = world()
    collector.settle(made)
    plain = made.plain(KEYS[0], made.record())
    assert collector.submit(made, KEYS[0], plain).status_code == 422
    assert collector.submit(made, KEYS[0], plain, content_type="application/vnd.privet.record").status_code == 415


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("idempotency-key", "short"), ("idempotency-key", "../../../etc/passwd"), ("idempotency-key", "G" * 32), ("idempotency-key", None),
        ("privet-release", "x"), ("privet-withdraw", "x"), ("privet-withdraw", None), ("privet-person", "x"), ("privet-person", None),
    ],
)  # fmt: skip
def test_wrong_headers_get_a_sentence(collector: Running, name: str, value: str | None) -> None:
    made = world()
    collector.settle(made)
    answer = collector.submit(made, KEYS[0], **{name.replace("-", "_"): value})
    assert answer.status_code == 422 and answer.json()["error"]
    assert collector.stored(made) == (0, 0)


def test_a_person_gives_as_many_records_as_the_campaign_takes(collector: Running) -> None:
    made = world(per_person=2)
    collector.settle(made)
    statuses = [collector.submit(made, key).status_code for key in KEYS[:3]]
    assert statuses == [201, 201, 403]
    assert collector.submit(made, KEYS[3], privet_person="77" * 32).status_code == 201


def test_the_limit_per_person_holds_for_many_at_once(collector: Running) -> None:
    made = world(per_person=5)
    collector.settle(made)
    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda key: collector.submit(made, key).status_code, KEYS[:40]))
    assert statuses.count(201) == 5 and statuses.count(403) == 35
    assert collector.stored(made) == (5, 5)


# Withdrawal, retention, orphans


def test_withdrawal_deletes_row_and_blob_at_once(collector: Running) -> None:
    made = world()
    collector.settle(made)
    secret = secrets.token_hex(32)
    content = made.body(KEYS[0], made.record())
    assert collector.submit(made, KEYS[0], content, secret).status_code == 201
    assert collector.submit(made, KEYS[1]).status_code == 201
    path = f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}"
    assert collector.http.get(path, headers={"privet-withdraw": secret}).json()["stored"] is True
    assert collector.http.delete(path, headers={"privet-withdraw": "00" * 32}).status_code == 404
    assert collector.stored(made) == (2, 2)
    assert collector.http.delete(path, headers={"privet-withdraw": secret}).status_code == 204
    assert collector.stored(made) == (1, 1)
    assert collector.http.delete(path, headers={"privet-withdraw": secret}).status_code == 410
    assert collector.submit(made, KEYS[0], content, secret).status_code == 410


def test_withdrawing_what_never_was_looks_like_a_wrong_secret(collector: Running) -> None:
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[0])
    wrong = collector.http.delete(f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}", headers={"privet-withdraw": "00" * 32})
    never = collector.http.delete(f"/v1/campaigns/{made.id}/submissions/{KEYS[1]}", headers={"privet-withdraw": "00" * 32})
    assert (wrong.status_code, wrong.text) == (never.status_code, never.text)


def test_records_leave_when_their_time_is_over_and_not_before(collector: Running) -> None:
    made = world(retention_days=3)
    owner = collector.settle(made)
    collector.submit(made, KEYS[0])
    store, blobs, watch = collector.collector.store, collector.collector.blobs, collector.collector.watch
    assert expire(store, blobs, watch, now() + 3 * DAY - 60_000) == 0
    assert tidy(store, blobs, watch, now() + 3 * DAY + 60_000) == 1
    assert collector.stored(made) == (0, 0)
    [gone] = collector.http.get(f"/v1/campaigns/{made.id}/gone", headers=bearer(owner)).json()
    assert (gone["id"], gone["reason"]) == (KEYS[0], "retention")


def test_the_sweep_takes_orphans_and_leaves_the_rest(collector: Running) -> None:
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[0])
    parts = collector.collector
    parts.blobs.put(Blob(made.id, "f" * 64), b"nobody's")
    parts.blobs.put(Blob("0" * 32, "e" * 64), b"of no campaign")
    assert sweep(parts.store, parts.blobs, parts.watch, older=3600) == 0
    assert sweep(parts.store, parts.blobs, parts.watch, older=0) == 2
    assert collector.stored(made) == (1, 1)
    assert collector.http.get(f"/v1/parts/{made.manifest.release.graph}").content == made.parts["graph"]


def test_parts_that_no_campaign_names_are_deleted_after_a_day(collector: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    collector.settle(made)
    name = hashlib.sha256(b"unused").hexdigest()
    assert collector.http.put(f"/v1/parts/{name}", content=b"unused", headers=bearer(collector.operator)).status_code == 201
    parts = collector.collector
    tidy(parts.store, parts.blobs, parts.watch)
    assert collector.http.get(f"/v1/parts/{name}").status_code == 200
    monkeypatch.setattr("privet.exchange.retention.now", lambda: now() + 2 * DAY)
    tidy(parts.store, parts.blobs, parts.watch, now())
    assert collector.http.get(f"/v1/parts/{name}").status_code == 404
    assert collector.http.get(f"/v1/parts/{made.manifest.release.card}").status_code == 200


def test_two_servers_cannot_use_one_folder(collector: Running) -> None:
    with pytest.raises(Exception, match="Another server uses"):
        Disk(collector.folder / "blobs")


# Tokens


def test_invitations(collector: Running) -> None:
    made, other = world(access="invited", per_person=1), world(access="invited")
    owner, other_owner = collector.settle(made), collector.settle(other)
    path = f"/v1/campaigns/{made.id}/tokens"

    def invite(campaign: World, token: str) -> dict[str, str]:
        found = collector.http.post(
            f"/v1/campaigns/{campaign.id}/tokens", json={"scope": "invite", "days": 1}, headers=bearer(token)
        ).json()
        return dict(found[0])

    def send(key: str, token: str | None) -> int:
        return int(collector.submit(made, key, authorization=None if token is None else f"Bearer {token}").status_code)

    good, revoked, expired, elsewhere = (invite(w, t) for w, t in ((made, owner), (made, owner), (made, owner), (other, other_owner)))
    assert collector.http.delete(f"{path}/{revoked['id']}", headers=bearer(owner)).status_code == 204
    assert collector.http.delete(f"{path}/{revoked['id']}", headers=bearer(owner)).status_code == 404
    with collector.collector.store.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE tokens SET expires = {now() - 1} WHERE id = '{expired['id']}'")
    forged = good["token"][:-4] + "AAAA"
    for token in (None, revoked["token"], expired["token"], elsewhere["token"], forged, owner, collector.operator, "nonsense"):
        assert send(KEYS[0], token) == 401
    assert collector.stored(made) == (0, 0)
    assert send(KEYS[0], good["token"]) == 201
    assert send(KEYS[1], good["token"]) == 403, "an invitation is for one person"


def test_nobody_sees_what_is_anothers(collector: Running) -> None:
    mine, other = world(), world()
    owner, thief = collector.settle(mine), collector.settle(other)
    collector.submit(mine, KEYS[0])
    asked = [
        ("GET", "figures", None), ("GET", "records", None), ("GET", "gone", None), ("GET", "tokens", None), ("POST", "close", None),
        ("POST", "tokens", {"scope": "owner"}), ("DELETE", f"tokens/{'0' * 16}", None),
    ]  # fmt: skip
    for method, what, body in asked:
        path = f"/v1/campaigns/{mine.id}/{what}"
        assert collector.http.request(method, path, json=body, headers=bearer(thief)).status_code == 403
        assert collector.http.request(method, path, json=body).status_code == 401
        assert collector.http.request(method, path, json=body, headers=bearer(owner[:-3] + "xxx")).status_code == 401
    assert collector.http.get(f"/v1/campaigns/{mine.id}/records", headers=bearer(collector.operator)).status_code == 403
    assert [one["campaign"] for one in collector.http.get("/v1/campaigns", headers=bearer(thief)).json()] == [other.id]
    seen = {one["campaign"] for one in collector.http.get("/v1/campaigns", headers=bearer(collector.operator)).json()}
    assert seen >= {mine.id, other.id}
    assert collector.http.get(f"/v1/campaigns/{mine.id}/figures", headers=bearer(owner)).json()["records"] == 1


def test_a_closed_campaign_takes_nothing_more(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    content = made.body(KEYS[0], made.record())
    assert collector.submit(made, KEYS[0], content).status_code == 201
    assert collector.http.post(f"/v1/campaigns/{made.id}/close", headers=bearer(owner)).status_code == 204
    assert collector.submit(made, KEYS[1]).status_code == 403
    assert collector.submit(made, KEYS[0], content).status_code == 200, "a receipt that was lost on the way is still given"
    assert collector.http.get(f"/v1/campaigns/{made.id}").json()["open"] is False


def test_tokens_are_not_stored(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    raw = b"".join(path.read_bytes() for path in collector.folder.glob("collector.db*"))
    for token in (owner, collector.operator):
        assert token.encode() not in raw
        assert token.split("_", 2)[2].encode() not in raw
        assert hashlib.sha256(token.encode()).hexdigest().encode() in raw


def test_a_new_operators_token_ends_the_old_one(start: Start) -> None:
    collector = start()
    new = collector.collector.store.first_operator(again=True)
    assert new and collector.collector.store.first_operator() is None
    assert collector.http.get("/v1/campaigns", headers=bearer(collector.operator)).status_code == 401
    assert collector.http.get("/v1/campaigns", headers=bearer(new)).status_code == 200


def test_campaigns_are_opened_by_the_operator_with_a_right_manifest(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    new = world()
    right = {"manifest": new.text, "signature": new.signature}
    assert collector.http.post("/v1/campaigns", json=right, headers=bearer(owner)).status_code == 403
    assert collector.http.post("/v1/campaigns", json=right).status_code == 401
    for wrong in ({**right, "signature": made.signature}, {**right, "manifest": "{}"}, {"manifest": new.text}):
        assert collector.http.post("/v1/campaigns", json=wrong, headers=bearer(collector.operator)).status_code == 422
    assert (
        collector.http.post(
            "/v1/campaigns", json={"manifest": made.text, "signature": made.signature}, headers=bearer(collector.operator)
        ).status_code
        == 409
    )
    other = world(size=17)
    answer = collector.http.post(
        "/v1/campaigns", json={"manifest": other.text, "signature": other.signature}, headers=bearer(collector.operator)
    )
    assert answer.status_code == 422 and "send it first" in answer.json()["error"]
    assert collector.http.put(f"/v1/parts/{'0' * 64}", content=b"x", headers=bearer(collector.operator)).status_code == 422


# Limits


def test_bodies_are_limited_whatever_they_promise(collector: Running) -> None:
    made = world()
    collector.settle(made)

    def chunks() -> Any:
        for _ in range(100):
            yield os.urandom(1024)

    for content in (os.urandom(100_000), chunks()):
        answer = collector.http.post(f"/v1/campaigns/{made.id}/submissions", content=content, headers=headers(made, KEYS[0], "00" * 32))
        assert answer.status_code == 413
    assert collector.http.post("/v1/campaigns", json={"manifest": "x" * 300_000}, headers=bearer(collector.operator)).status_code == 413
    assert collector.stored(made) == (0, 0)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
def test_compressed_bodies_are_refused_unread(collector: Running, encoding: str) -> None:
    made = world()
    collector.settle(made)
    assert collector.submit(made, KEYS[0], content_encoding=encoding).status_code == 415


def test_requests_are_rationed(start: Start) -> None:
    running = start(limits=Limits(rate=0.001, burst=3))
    statuses = [running.http.get("/healthz").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert int(running.http.get("/healthz").headers["retry-after"]) >= 1


def test_buckets_fill_again_and_do_not_remember_everybody() -> None:
    buckets = Buckets(rate=2.0, burst=2.0, most=10)
    assert [buckets.take("a", 0.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert buckets.take("a", 0.5) == 0.0 and buckets.take("a", 0.5) > 0
    for k in range(100):
        assert buckets.take(f"b{k}", 1.0) == 0.0
    assert len(buckets._levels) == 10


def test_a_slow_body_is_not_waited_for(start: Start) -> None:
    running = start(limits=Limits(rate=0, seconds=0.2))
    made = world()
    running.settle(made)
    sent: list[dict[str, Any]] = []

    async def slow() -> dict[str, Any]:
        await asyncio.sleep(30)
        return {}

    async def keep(message: Any) -> None:
        sent.append(message)

    head = [(k.encode(), v.encode()) for k, v in headers(made, KEYS[0], "00" * 32).items()]
    scope = {
        "type": "http", "method": "POST", "path": f"/v1/campaigns/{made.id}/submissions", "headers": head, "query_string": b"",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip

    async def ask() -> None:
        await asyncio.wait_for(running.http.app(scope, slow, keep), 10)

    asyncio.run(ask())
    assert sent[0]["status"] == 408


def test_other_origins_are_refused(collector: Running) -> None:
    made = world()
    collector.settle(made)
    assert collector.submit(made, KEYS[0], origin="https://evil.example").status_code == 403
    assert collector.submit(made, KEYS[0], origin="null").status_code == 403
    assert collector.submit(made, KEYS[0], origin="http://127.0.0.1").status_code == 201
    assert (
        "access-control-allow-origin"
        not in collector.http.get(f"/v1/campaigns/{made.id}", headers={"origin": "https://evil.example"}).headers
    )


# What it says


def test_html_in_a_campaign_stays_text(collector: Running) -> None:
    html = "<script>alert(1)</script>"
    made = world(title=html, purpose=html)
    collector.settle(made)
    answer = collector.http.get(f"/v1/campaigns/{made.id}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.json()["manifest"] == made.text


def test_pages_have_a_strict_policy_and_stay_in_their_folder(start: Start, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (pages / "static").mkdir(parents=True)
    (pages / "participant.html").write_text("<p>take part")
    (pages / "static" / "app.js").write_text("1")
    (tmp_path / "secret").write_text("secret")
    running = start(pages=pages)
    page = running.http.get(f"/c/{'0' * 32}")
    assert page.text == "<p>take part"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy and "'unsafe-eval'" not in policy
    assert running.http.get("/static/app.js").status_code == 200
    for path in ("/static/../../secret", "/static/%2e%2e/%2e%2e/secret", "/static/..%2f..%2fsecret", "/c/../../secret"):
        answer = running.http.get(path)
        assert "secret" not in answer.text


def test_without_pages_a_link_says_how_to_take_part(start: Start, tmp_path: Path) -> None:
    answer = start(pages=tmp_path / "none").http.get(f"/c/{'0' * 32}")
    assert answer.headers["content-type"].startswith("text/plain") and "privet share" in answer.text


def test_logs_and_metrics_hold_no_payload_token_or_address(collector: Running) -> None:
    made = world("open")
    owner = collector.settle(made)
    content = made.body(KEYS[0], made.record(), {"smiling": "yes"})
    collector.submit(made, KEYS[0], content, secret="cd" * 32)
    collector.submit(made, KEYS[1], b"\xff\xd8\xff\xe0 a raw photo")
    collector.http.get(f"/v1/campaigns/{made.id}/figures", headers=bearer(owner))
    metrics = collector.http.get("/metrics", headers=bearer(collector.operator)).text
    assert re.search(r"privet_records_stored_total [1-9]", metrics)
    said = collector.log.getvalue() + metrics
    assert '"status": 201' in said and '"status": 422' in said
    for word in ("smiling", "raw photo", owner, collector.operator, "cd" * 32, "testclient", "127.0.0.1", KEYS[0]):
        assert word not in said


def test_metrics_are_the_operators(collector: Running) -> None:
    assert collector.http.get("/metrics").status_code == 401


def test_the_document_describes_every_path(collector: Running) -> None:
    document = collector.http.get("/openapi.json").json()
    assert {path for path in document["paths"] if path.startswith("/v1/campaigns/{campaign}")} >= {
        "/v1/campaigns/{campaign}/submissions", "/v1/campaigns/{campaign}/records", "/v1/campaigns/{campaign}/tokens/{token}",
    }  # fmt: skip
    for path, verbs in document["paths"].items():
        for verb in verbs.values():
            assert verb.get("description") or verb.get("summary"), path


def test_an_error_does_not_repeat_what_was_sent(collector: Running) -> None:
    made = world()
    collector.settle(made)
    answer = collector.submit(made, KEYS[0], privet_person="my-name-is-Anna")
    assert answer.status_code == 422 and "Anna" not in answer.text


# When things break


def test_without_room_nothing_is_acknowledged_and_nothing_is_left(collector: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    collector.settle(made)

    def full(_handle: int, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("privet.exchange.blobs._write_all", full)
        answer = collector.submit(made, KEYS[0])
        assert answer.status_code == 507 and answer.headers["retry-after"]
        assert collector.stored(made) == (0, 0)
        assert not list((collector.folder / "blobs").glob("*/.*"))
    assert collector.submit(made, KEYS[0]).status_code == 201


def test_a_reserve_of_room_is_kept(start: Start) -> None:
    running = start()
    made = world()
    running.settle(made)
    assert isinstance(running.collector.blobs, Disk)
    running.collector.blobs.reserve = 2**62
    assert running.submit(made, KEYS[0]).status_code == 507
    assert running.http.get("/healthz").status_code == 503
    running.collector.blobs.reserve = 0
    assert running.submit(made, KEYS[0]).status_code == 201


def test_a_commit_that_fails_is_not_acknowledged_and_can_be_tried_again(collector: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())

    def away(_self: Any, _offers: Any) -> None:
        raise OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))

    with monkeypatch.context() as broken:
        broken.setattr("privet.exchange.commits.Commits._insert", away)
        answer = collector.submit(made, KEYS[0], content)
        assert answer.status_code == 503 and answer.headers["retry-after"]
    assert collector.stored(made) == (0, 1), "its blob stays: the commit may have happened"
    assert collector.submit(made, KEYS[0], content).status_code == 201
    parts = collector.collector
    assert sweep(parts.store, parts.blobs, parts.watch, older=0) == 1
    assert collector.stored(made) == (1, 1)


def test_one_bad_record_does_not_spoil_the_batch_of_another_server(collector: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that appears in the table between deciding and inserting, as with two servers on one database."""
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[0])
    commits = collector.collector.commits
    known = commits._known_answers
    calls = 0

    def late(offers: Any) -> Any:
        nonlocal calls
        calls += 1
        return [None] * len(offers) if calls == 1 else known(offers)

    monkeypatch.setattr(commits, "_known_answers", late)
    offers = []
    for key in KEYS[:3]:
        content = made.body(key, made.record(5))
        offers.append(Offer(made.id, key, "p", hashlib.sha256(content).hexdigest(), blob_name(content), "0" * 64, 1000, content))
        commits.blobs.write(Blob(made.id, offers[-1].blob), content)
    answers = commits.decide_and_store(offers)
    assert [getattr(answer, "status", 201) for answer in answers] == [409, 201, 201]
    assert collector.stored(made) == (3, 3)


def test_a_damaged_blob_is_noticed(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    collector.submit(made, KEYS[0])
    [path] = (collector.folder / "blobs" / made.id).glob("*")
    path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    page = collector.http.get(f"/v1/campaigns/{made.id}/records", headers=bearer(owner))
    assert b'"damaged": true' in page.content


def test_sqlite_syncs_every_commit_and_overwrites_what_it_deletes(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    with store.engine.connect() as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "secure_delete")}
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}


def test_blobs_and_folders_are_synced_before_a_row_is_committed(collector: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[1])
    events: list[str] = []
    fsync, rename, insert = os.fsync, Path.rename, collector.collector.commits._insert

    def synced(handle: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")  # noqa: PTH112
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        events.append("rename")
        return rename(self, target)

    def inserted(offers: Any) -> Any:
        events.append("row")
        return insert(offers)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(collector.collector.commits, "_insert", inserted)
    assert collector.submit(made, KEYS[0]).status_code == 201
    assert re.fullmatch("file rename folder row", " ".join(events))
