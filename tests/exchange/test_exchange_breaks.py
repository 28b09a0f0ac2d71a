"""The collector when things break: nothing is acknowledged that is not durable."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from world import KEYS, bearer, world

from conftest import Running, Start
from privet.exchange.collector.blobs import Blob, Disk, blob_name
from privet.exchange.collector.commits import Offer
from privet.exchange.collector.database import Database
from privet.exchange.collector.orphans import sweep
from privet.exchange.protocol.messages import read_frames


def test_without_room_nothing_is_acknowledged_and_nothing_is_left(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world()
    collector.settle(made)

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
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


def test_a_commit_that_fails_is_not_acknowledged_and_can_be_tried_again(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world()
    collector.settle(made)
    content = made.body(KEYS[0], made.record())

    def away(*_: Any) -> None:
        raise OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))

    with monkeypatch.context() as broken:
        broken.setattr("privet.exchange.collector.commits.Commits._insert", away)
        answer = collector.submit(made, KEYS[0], content)
        assert answer.status_code == 503 and answer.headers["retry-after"]
    assert collector.stored(made) == (0, 1), "its blob stays: the commit may have happened"
    assert collector.submit(made, KEYS[0], content).status_code == 201
    parts = collector.collector
    assert sweep(parts.database, parts.blobs, parts.monitor, older=0).moved == 1
    assert collector.stored(made) == (1, 1)


def test_one_bad_record_does_not_spoil_the_batch_of_another_server(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that appears in the table between deciding and inserting, as with two servers on one
    database."""
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[0])
    commits = collector.collector.commits
    decide = commits._decide
    calls = 0

    def late(offers: Any, new: Any) -> Any:
        nonlocal calls
        calls += 1
        return [new] * len(offers) if calls == 1 else decide(offers, new)

    monkeypatch.setattr(commits, "_decide", late)
    offers = []
    for key in KEYS[:3]:
        content = made.body(key, made.record(5))
        offers.append(
            Offer(
                made.id,
                key,
                "p",
                hashlib.sha256(content).hexdigest(),
                blob_name(content),
                "0" * 64,
                1000,
                content,
            )
        )
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
    [(header, _)] = read_frames(page.content)
    assert header.damaged


def test_sqlite_syncs_every_commit_and_overwrites_what_it_deletes(tmp_path: Path) -> None:
    store = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with store.engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "secure_delete")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}


def test_blobs_and_folders_are_synced_before_a_row_is_committed(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    def inserted(offers: Any, received: int) -> None:
        events.append("row")
        insert(offers, received)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(collector.collector.commits, "_insert", inserted)
    assert collector.submit(made, KEYS[0]).status_code == 201
    assert re.fullmatch("file rename folder row", " ".join(events))
