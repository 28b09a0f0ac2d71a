"""Records at the collector: which it takes, and how they leave again."""

from __future__ import annotations

import hashlib
import os
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
from world import KEYS, bearer, headers, world

from conftest import Running
from privet.exchange.collector.blobs import Blob, Disk
from privet.exchange.collector.database import DAY_MS
from privet.exchange.collector.orphans import sweep
from privet.exchange.collector.retention import JUMP_MS, expire, tidy
from privet.exchange.collector.tokens import now, today

# Submissions


@pytest.mark.parametrize("mode", ["sealed", "open"])
def test_a_record_is_on_disk_and_in_a_row_when_it_is_acknowledged(
    collector: Running, mode: str
) -> None:
    made = world(mode)
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    answer = collector.submit(made, KEYS[0], content)
    assert answer.status_code == 201
    assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest()
    [row] = collector.collector.database.submissions(made.id, 0, 10)
    assert row.id == KEYS[0]
    assert (collector.folder / "blobs" / made.id / row.blob).read_bytes() == content


def test_the_same_request_again_gets_the_same_receipt_and_stores_nothing(
    collector: Running,
) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())
    first, second = (
        collector.submit(made, KEYS[0], content),
        collector.submit(made, KEYS[0], content),
    )
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
    answer = collector.http.post(
        f"/v1/campaigns/{other.id}/submissions",
        content=content,
        headers=headers(other, KEYS[0], "00" * 32),
    )
    assert answer.status_code == 422 and "another campaign" in answer.json()["error"]
    assert (
        collector.http.post(
            f"/v1/campaigns/{'0' * 32}/submissions",
            content=content,
            headers=headers(mine, KEYS[0], "00" * 32),
        ).status_code
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
    assert (
        collector.submit(
            made, KEYS[0], plain, content_type="application/vnd.privet.record"
        ).status_code
        == 415
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("idempotency-key", "short"),
        ("idempotency-key", "../../../etc/passwd"),
        ("idempotency-key", "G" * 32),
        ("idempotency-key", None),
        ("privet-release", "x"),
        ("privet-withdraw", "x"),
        ("privet-withdraw", None),
        ("privet-person", "x"),
        ("privet-person", None),
    ],
)
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
    wrong = collector.http.delete(
        f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}", headers={"privet-withdraw": "00" * 32}
    )
    never = collector.http.delete(
        f"/v1/campaigns/{made.id}/submissions/{KEYS[1]}", headers={"privet-withdraw": "00" * 32}
    )
    assert (wrong.status_code, wrong.text) == (never.status_code, never.text)


def test_records_leave_when_their_time_is_over_and_not_before(collector: Running) -> None:
    made = world(retention_days=3)
    owner = collector.settle(made)
    collector.submit(made, KEYS[0])
    parts = collector.collector
    for minutes, many in ((-1, 0), (1, 1)):
        at = today() + 3 * DAY_MS + minutes * 60_000
        assert expire(parts.database, parts.blobs, parts.monitor, at) == many
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
    assert sweep(parts.database, parts.blobs, parts.monitor, older=3600).moved == 0
    assert sweep(parts.database, parts.blobs, parts.monitor, older=0).moved == 2
    assert collector.stored(made) == (1, 1)
    assert (collector.folder / "blobs" / "quarantine" / made.id / ("f" * 64)).is_file()
    assert (
        collector.http.get(f"/v1/parts/{made.manifest.release.graph}").content
        == made.parts["graph"]
    )


def test_parts_that_no_campaign_names_are_deleted_after_a_day(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world()
    collector.settle(made)
    name = hashlib.sha256(b"unused").hexdigest()
    assert (
        collector.http.put(
            f"/v1/parts/{name}", content=b"unused", headers=bearer(collector.operator)
        ).status_code
        == 201
    )
    parts = collector.collector
    tidy(parts.database, parts.blobs, parts.monitor)
    assert collector.http.get(f"/v1/parts/{name}").status_code == 200
    monkeypatch.setattr("privet.exchange.collector.retention.now", lambda: now() + JUMP_MS - 1000)
    tidy(parts.database, parts.blobs, parts.monitor)
    assert collector.http.get(f"/v1/parts/{name}").status_code == 404
    assert collector.http.get(f"/v1/parts/{made.manifest.release.card}").status_code == 200


def test_two_servers_cannot_use_one_folder(collector: Running) -> None:
    with pytest.raises(Exception, match="Another server uses"):
        Disk(collector.folder / "blobs")
