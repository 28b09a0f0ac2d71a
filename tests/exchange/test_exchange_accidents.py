"""Accidents of an operator: a database that is missing or old, a clock that is wrong, a second
server, lost files. Nothing is deleted by mistake, and what is lost is said."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from world import KEYS, Postgres, World, bearer, world

from conftest import Running, begin
from privet.core.errors import PrivetError
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import Blob, Disk
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.database import DAY_MS, Database
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.orphans import QUARANTINE_SECONDS, purge
from privet.exchange.collector.retention import confirm
from privet.exchange.collector.tokens import now, today
from privet.exchange.collector.writer import Superseded
from privet.exchange.protocol.messages import read_frames

MANY = 30


def filled(folder: Path, records: int = MANY, **words: str) -> tuple[Running, World, str]:
    """A running collector with so many records, its campaign, and the owner's token."""
    running, made = begin(folder, **words), world()
    owner = running.settle(made)
    for k in range(records):
        assert running.submit(made, f"{k:032x}").status_code == 201
    return running, made, owner


def stop(running: Running) -> None:
    running.http.__exit__(None, None, None)


def again(folder: Path, db: Path | None = None) -> Collector:
    return Collector(
        Database(f"sqlite:///{db or folder / 'collector.db'}"),
        Disk(folder / "blobs"),
        Monitor(io.StringIO()),
    )


def names(folder: Path, made: World) -> set[str]:
    return {path.name for path in (folder / "blobs" / made.id).glob("*")}


def copy_database(folder: Path, target: Path) -> None:
    """With its log, while nobody writes."""
    for end in ("", "-wal", "-shm"):
        if (folder / f"collector.db{end}").exists():
            shutil.copy(folder / f"collector.db{end}", f"{target}{end}")


def test_one_database_does_not_get_two_places_for_blobs(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 3)
    other = Collector(
        Database(f"sqlite:///{tmp_path / 'one' / 'collector.db'}"),
        Disk(tmp_path / "two"),
        Monitor(io.StringIO()),
    )
    with pytest.raises(PrivetError, match="Another server uses the database"):
        other.start()
    stop(running)
    with pytest.raises(PrivetError, match="give --blobs the place that they are in"):
        other.start()
    other.blobs.close()
    # Nor a place that another collector has marked, or a copy that has been given another name.
    shutil.copytree(tmp_path / "one" / "blobs", tmp_path / "copy")
    words = (tmp_path / "copy" / "identity").read_text().split()
    (tmp_path / "copy" / "identity").write_text(f"{words[0]} {'0' * 32}")
    third = Collector(other.database, Disk(tmp_path / "copy"), Monitor(io.StringIO()))
    with pytest.raises(PrivetError, match="belongs to records in another place"):
        third.start()
    third.blobs.close()
    last = again(tmp_path / "one")
    last.start()
    assert last.tidied.held == [] and last.tidied.lost == {}
    last.stop()
    assert len(names(tmp_path / "one", made)) == 3


@pytest.mark.system
def test_one_postgresql_has_one_writer(tmp_path: Path, database: Postgres) -> None:
    url = database.url
    running, made, _ = filled(tmp_path / "one", 3, db=url)
    other = Collector(Database(url), Disk(tmp_path / "two"), Monitor(io.StringIO()))
    with pytest.raises(PrivetError, match="Another server uses the database"):
        other.database.writer.take(wait=0.0)
    # The connection with the lock is lost, and another server takes it: the first stores no more.
    writer = running.collector.database.writer
    writer._close()
    other.database.writer.take(wait=5.0)
    other.database.writer.count()
    assert running.submit(made, KEYS[10]).status_code == 503
    assert not writer.keep() and running.http.get("/healthz").status_code == 503
    other.database.writer.give_back()
    other.blobs.close()
    stop(running)


def test_a_writer_that_was_superseded_stores_and_removes_nothing(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 3)
    Database(f"sqlite:///{tmp_path / 'one' / 'collector.db'}").writer.count()
    assert running.submit(made, KEYS[10]).status_code == 503
    with pytest.raises(Superseded):
        running.collector.database.remove(made.id, [KEYS[0]], "withdrawn")
    assert len(running.collector.database.submissions(made.id, 0, 10)) == 3
    stop(running)


def test_an_older_database_does_not_cost_the_records_that_came_later(tmp_path: Path) -> None:
    """Records without a row in the old copy are many: held. Confirmed, they are set aside; and when
    the newest database is back, so are they."""
    folder = tmp_path / "one"
    running, made, _ = filled(folder, 5)
    stop(running)
    copy_database(folder, tmp_path / "old.db")
    collector = again(folder)
    with TestClient(create_app(collector), base_url="http://127.0.0.1") as http:
        later = Running(http, collector, folder, io.StringIO(), "")
        for k in range(5, MANY):
            assert later.submit(made, f"{k:032x}").status_code == 201
    before = names(folder, made)
    copy_database(folder, tmp_path / "newest.db")
    old = again(folder, tmp_path / "old.db")
    old.start()
    assert "newest database" in old.tidied.held[0] and names(folder, made) == before
    confirm(old.database)
    old.tidy(older=0.0)
    assert old.tidied.held == [] and len(names(folder, made)) == 5
    old.stop()
    newest = again(folder, tmp_path / "newest.db")
    newest.start()
    assert newest.tidied.lost == {} and names(folder, made) == before
    newest.stop()


def test_a_clock_40_days_ahead_deletes_nothing_until_it_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "one"
    running, made, _ = filled(folder)
    running.collector.blobs.put(made_orphan(made), b"nobody's")
    stop(running)
    with monkeypatch.context() as ahead:
        ahead.setattr("privet.exchange.collector.retention.now", lambda: now() + 40 * DAY_MS)
        ahead.setattr("privet.exchange.collector.orphans.time.time", lambda: now() / 1000 + 40e5)
        for _ in range(2):
            collector = again(folder)
            collector.start()
            assert "40 days ahead" in collector.tidied.held[0]
            collector.stop()
    assert len(names(folder, made)) == MANY
    collector = again(folder)
    collector.start()
    assert collector.tidied.held == [] and collector.database.count() == MANY
    # The clock was right: 40 days have passed, and an operator says so.
    monkeypatch.setattr("privet.exchange.collector.retention.now", lambda: now() + 40 * DAY_MS)
    confirm(collector.database)
    assert collector.tidy().expired == MANY and names(folder, made) == set()
    assert collector.tidy().held == [], "confirmed once is confirmed"
    collector.stop()


def made_orphan(made: World) -> Blob:
    return Blob(made.id, "f" * 64)


def test_many_records_expire_a_day_after_it_was_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, made, _ = filled(tmp_path / "one")
    collector = running.collector
    expired = []
    for day in (29.9, 30.1, 30.9, 31.2):
        at = today() + int(day * DAY_MS)
        monkeypatch.setattr("privet.exchange.collector.retention.now", lambda at=at: at)
        collector.database.set_state("clock", str(at - DAY_MS))
        tidied = collector.tidy()
        expired.append((tidied.expired, len(tidied.held)))
    assert expired == [(0, 0), (0, 1), (0, 1), (MANY, 0)]
    assert running.stored(made) == (0, 0)
    stop(running)


def test_few_records_expire_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, _, _ = filled(tmp_path / "one", 10)
    at = now() + 31 * DAY_MS
    running.collector.database.set_state("clock", str(at))
    monkeypatch.setattr("privet.exchange.collector.retention.now", lambda: at)
    assert running.collector.tidy().expired == 10
    stop(running)


def test_a_withdrawal_that_a_crash_cut_short_is_finished_and_not_set_aside(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "one"
    running, made, _ = filled(folder, 3)
    running.collector.database.remove(made.id, [KEYS[0]], "withdrawn")  # and then the power fails
    stop(running)
    assert len(names(folder, made)) == 3
    collector = again(folder)
    collector.start()
    assert len(names(folder, made)) == 2
    assert not list((folder / "blobs" / "quarantine").rglob("*"))
    collector.stop()


def test_what_was_set_aside_is_deleted_after_a_week(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 1)
    blobs, monitor = running.collector.blobs, running.collector.monitor
    blobs.put(made_orphan(made), b"nobody's")
    running.collector.tidy(older=0.0)
    aside = tmp_path / "one" / "blobs" / "quarantine" / made.id / ("f" * 64)
    assert aside.is_file() and purge(blobs, monitor) == 0
    week_ago = aside.stat().st_mtime - QUARANTINE_SECONDS - 1
    os.utime(aside, (week_ago, week_ago))
    assert purge(blobs, monitor) == 1 and not aside.exists()
    stop(running)


def test_lost_blobs_are_an_error_everywhere(tmp_path: Path) -> None:
    running, made, owner = filled(tmp_path / "one", 3)
    assert running.http.get("/healthz").status_code == 200
    [row, *_] = running.collector.database.submissions(made.id, 0, 10)
    (tmp_path / "one" / "blobs" / made.id / row.blob).unlink()
    page = running.http.get(f"/v1/campaigns/{made.id}/records", headers=bearer(owner)).content
    frames = list(read_frames(page))
    assert [(header.damaged, len(content) > 0) for header, content in frames] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    running.collector.tidy()
    running.collector._health = (float("-inf"), {})
    figures = running.http.get(f"/v1/campaigns/{made.id}/figures", headers=bearer(owner)).json()
    assert figures["records"] == 3 and figures["lost"] == 1
    health = running.http.get("/healthz")
    assert health.status_code == 503 and health.json()["records"] is False
    (tmp_path / "one" / "blobs" / "parts" / made.manifest.release.graph).unlink()
    lost = running.http.get(f"/v1/parts/{made.manifest.release.graph}")
    assert lost.status_code == 500 and "lost" in lost.json()["error"]
    stop(running)


def test_healthz_fails_where_nothing_can_be_stored(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 1)
    collector = running.collector
    with collector.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")  # this connection goes back to the pool
    assert running.http.get("/healthz").status_code == 503
    assert running.submit(made, KEYS[9]).status_code == 503
    stop(running)


def test_rows_and_records_are_their_owners_alone(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    folder = tmp_path / "one"
    running, _, _ = filled(folder, 1)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.glob("collector.db*")}
    assert modes and set(modes.values()) == {0o600}, modes
    assert {path.stat().st_mode & 0o777 for path in (folder / "blobs").rglob("*")} <= {0o600, 0o700}
    assert (folder / "blobs").stat().st_mode & 0o777 == 0o700
    stop(running)
    (folder / "collector.db").chmod(0o644)
    collector = again(folder)
    collector.start()
    assert (folder / "collector.db").stat().st_mode & 0o777 == 0o600, "of an earlier version too"
    collector.stop()
    os.umask(umask)
