"""The collector as a server: who may do what, its limits, and what it says."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from world import KEYS, World, bearer, headers, world

from conftest import Running, Start
from privet.exchange.collector.limits import Buckets, Limits
from privet.exchange.collector.tokens import now

# Tokens


def test_invitations(collector: Running) -> None:
    made, other = world(access="invited", per_person=1), world(access="invited")
    owner, other_owner = collector.settle(made), collector.settle(other)
    path = f"/v1/campaigns/{made.id}/tokens"

    def invite(campaign: World, token: str) -> dict[str, str]:
        found = collector.http.post(
            f"/v1/campaigns/{campaign.id}/tokens",
            json={"scope": "invite", "days": 1},
            headers=bearer(token),
        ).json()
        return dict(found[0])

    def send(key: str, token: str | None) -> int:
        return int(
            collector.submit(
                made, key, authorization=None if token is None else f"Bearer {token}"
            ).status_code
        )

    good, revoked, expired, elsewhere = (
        invite(w, t) for w, t in ((made, owner), (made, owner), (made, owner), (other, other_owner))
    )
    assert (
        collector.http.delete(f"{path}/{revoked['id']}", headers=bearer(owner)).status_code == 204
    )
    assert (
        collector.http.delete(f"{path}/{revoked['id']}", headers=bearer(owner)).status_code == 404
    )
    with collector.collector.database.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE tokens SET expires = {now() - 1} WHERE id = '{expired['id']}'"
        )
    forged = good["token"][:-4] + "AAAA"
    for token in (
        None,
        revoked["token"],
        expired["token"],
        elsewhere["token"],
        forged,
        owner,
        collector.operator,
        "nonsense",
    ):
        assert send(KEYS[0], token) == 401
    assert collector.stored(made) == (0, 0)
    assert send(KEYS[0], good["token"]) == 201
    assert send(KEYS[1], good["token"]) == 403, "an invitation is for one person"


def test_nobody_sees_what_is_anothers(collector: Running) -> None:
    mine, other = world(), world()
    owner, thief = collector.settle(mine), collector.settle(other)
    collector.submit(mine, KEYS[0])
    asked = [
        ("GET", "figures", None),
        ("GET", "records", None),
        ("GET", "gone", None),
        ("GET", "tokens", None),
        ("POST", "close", None),
        ("POST", "tokens", {"scope": "owner"}),
        ("DELETE", f"tokens/{'0' * 16}", None),
    ]
    for method, what, body in asked:
        path = f"/v1/campaigns/{mine.id}/{what}"
        assert (
            collector.http.request(method, path, json=body, headers=bearer(thief)).status_code
            == 403
        )
        assert collector.http.request(method, path, json=body).status_code == 401
        assert (
            collector.http.request(
                method, path, json=body, headers=bearer(owner[:-3] + "xxx")
            ).status_code
            == 401
        )
    assert (
        collector.http.get(
            f"/v1/campaigns/{mine.id}/records", headers=bearer(collector.operator)
        ).status_code
        == 403
    )
    assert [
        one["campaign"] for one in collector.http.get("/v1/campaigns", headers=bearer(thief)).json()
    ] == [other.id]
    seen = {
        one["campaign"]
        for one in collector.http.get("/v1/campaigns", headers=bearer(collector.operator)).json()
    }
    assert seen >= {mine.id, other.id}
    assert (
        collector.http.get(f"/v1/campaigns/{mine.id}/figures", headers=bearer(owner)).json()[
            "records"
        ]
        == 1
    )


def test_a_closed_campaign_takes_nothing_more(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    content = made.body(KEYS[0], made.record())
    assert collector.submit(made, KEYS[0], content).status_code == 201
    assert (
        collector.http.post(f"/v1/campaigns/{made.id}/close", headers=bearer(owner)).status_code
        == 204
    )
    assert collector.submit(made, KEYS[1]).status_code == 403
    assert collector.submit(made, KEYS[0], content).status_code == 200, (
        "a receipt that was lost on the way is still given"
    )
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
    new = collector.collector.database.operator_token(replace=True)
    assert new and collector.collector.database.operator_token() is None
    assert (
        collector.http.get("/v1/campaigns", headers=bearer(collector.operator)).status_code == 401
    )
    assert collector.http.get("/v1/campaigns", headers=bearer(new)).status_code == 200


def test_campaigns_are_opened_by_the_operator_with_a_right_manifest(collector: Running) -> None:
    made = world()
    owner = collector.settle(made)
    new = world()
    right = {"manifest": new.text, "signature": new.signature}
    assert (
        collector.http.post("/v1/campaigns", json=right, headers=bearer(owner)).status_code == 403
    )
    assert collector.http.post("/v1/campaigns", json=right).status_code == 401
    for wrong in (
        {**right, "signature": made.signature},
        {**right, "manifest": "{}"},
        {"manifest": new.text},
    ):
        assert (
            collector.http.post(
                "/v1/campaigns", json=wrong, headers=bearer(collector.operator)
            ).status_code
            == 422
        )
    assert (
        collector.http.post(
            "/v1/campaigns",
            json={"manifest": made.text, "signature": made.signature},
            headers=bearer(collector.operator),
        ).status_code
        == 409
    )
    other = world(size=17)
    answer = collector.http.post(
        "/v1/campaigns",
        json={"manifest": other.text, "signature": other.signature},
        headers=bearer(collector.operator),
    )
    assert answer.status_code == 422 and "send it first" in answer.json()["error"]
    assert (
        collector.http.put(
            f"/v1/parts/{'0' * 64}", content=b"x", headers=bearer(collector.operator)
        ).status_code
        == 422
    )


# Limits


def test_bodies_are_limited_whatever_they_promise(collector: Running) -> None:
    made = world()
    collector.settle(made)

    def chunks() -> Any:
        for _ in range(100):
            yield os.urandom(1024)

    for content in (os.urandom(100_000), chunks()):
        answer = collector.http.post(
            f"/v1/campaigns/{made.id}/submissions",
            content=content,
            headers=headers(made, KEYS[0], "00" * 32),
        )
        assert answer.status_code == 413
    assert (
        collector.http.post(
            "/v1/campaigns", json={"manifest": "x" * 300_000}, headers=bearer(collector.operator)
        ).status_code
        == 413
    )
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
        await asyncio.sleep(600)
        return {}

    async def keep(message: Any) -> None:
        sent.append(message)

    head = [(k.encode(), v.encode()) for k, v in headers(made, KEYS[0], "00" * 32).items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/v1/campaigns/{made.id}/submissions",
        "headers": head,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }

    async def ask() -> None:
        await asyncio.wait_for(running.http.app(scope, slow, keep), 300)

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
        not in collector.http.get(
            f"/v1/campaigns/{made.id}", headers={"origin": "https://evil.example"}
        ).headers
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
    assert (
        "default-src 'none'" in policy
        and "unsafe-inline" not in policy
        and "'unsafe-eval'" not in policy
    )
    assert running.http.get("/static/app.js").status_code == 200
    for path in (
        "/static/../../secret",
        "/static/%2e%2e/%2e%2e/secret",
        "/static/..%2f..%2fsecret",
        "/c/../../secret",
    ):
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
    for word in (
        "smiling",
        "raw photo",
        owner,
        collector.operator,
        "cd" * 32,
        "testclient",
        "127.0.0.1",
        KEYS[0],
    ):
        assert word not in said


def test_metrics_are_the_operators(collector: Running) -> None:
    assert collector.http.get("/metrics").status_code == 401


def test_the_document_describes_every_path(collector: Running) -> None:
    document = collector.http.get("/openapi.json").json()
    assert {path for path in document["paths"] if path.startswith("/v1/campaigns/{campaign}")} >= {
        "/v1/campaigns/{campaign}/submissions",
        "/v1/campaigns/{campaign}/records",
        "/v1/campaigns/{campaign}/tokens/{token}",
    }
    for path, verbs in document["paths"].items():
        for verb in verbs.values():
            assert verb.get("description") or verb.get("summary"), path


def test_an_error_does_not_repeat_what_was_sent(collector: Running) -> None:
    made = world()
    collector.settle(made)
    answer = collector.submit(made, KEYS[0], privet_person="my-name-is-Anna")
    assert answer.status_code == 422 and "Anna" not in answer.text
