"""`privet collector verify | backup | restore | sweep`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_exchange_accidents import again, filled, names, stop
from typer.testing import CliRunner
from world import KEYS, Postgres, bearer

from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.exchange.collector import backup as backups
from privet.exchange.collector.blobs import Blobs, Disk
from privet.exchange.collector.database import DAY_MS, Database
from privet.exchange.collector.retention import CLOCK
from privet.exchange.collector.tokens import now


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["collector", *map(str, words)])
    if isinstance(result.exception, PrivetError):
        return 2, str(result.exception)
    return result.exit_code, result.output


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def test_a_backup_of_a_running_collector_is_restored_whole(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster: Postgres | None = request.getfixturevalue("database") if kind == "postgresql" else None
    db = () if cluster is None else ("--db", cluster.url)
    running, made, owner = filled(tmp_path / "one", 12, **({"db": db[1]} if db else {}))
    path = f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}"
    assert running.http.delete(path, headers={"privet-withdraw": "ab" * 32}).status_code == 204
    code, said = run("backup", "--data", tmp_path / "one", *db, "--to", tmp_path / "saved")
    assert code == 0 and "11 records" in said
    assert (tmp_path / "saved").stat().st_mode & 0o077 == 0
    running.submit(made, KEYS[40])
    page = running.http.get(f"/v1/campaigns/{made.id}/records", headers=bearer(owner)).content
    stop(running)
    to = () if cluster is None else ("--db", cluster.fresh().url)
    code, said = run("restore", tmp_path / "saved", "--data", tmp_path / "two", *to)
    assert code == 0 and "11 records" in said
    code, said = run("verify", "--data", tmp_path / "two", *to)
    assert code == 0 and "11 records" in said
    store = Database(to[1] if to else f"sqlite:///{tmp_path / 'two' / 'collector.db'}")
    rows = store.submissions(made.id, 0, 100)
    assert [row.id for row in rows] == [f"{k:032x}" for k in range(1, 12)]
    saved = Blobs(str(tmp_path / "two" / "blobs"))
    assert all(saved.get(backups.Blob(made.id, row.blob)) in page for row in rows)
    # It goes on counting where it was, and is a collector of its own.
    from privet.exchange.collector.collector import Collector
    from privet.exchange.collector.monitor import Monitor

    collector = Collector(store, Disk(tmp_path / "two" / "blobs"), Monitor(quiet=True))
    collector.start()
    assert collector.tidied.lost == {} and collector.tidied.held == []
    assert [one.id for one in store.gone(made.id, 0, 10)] == [KEYS[0]]
    store.remove(made.id, [KEYS[1]], "withdrawn")
    assert [one.id for one in store.gone(made.id, 0, 10)] == KEYS[:2]
    collector.stop()
    code, said = run("restore", tmp_path / "saved", "--data", tmp_path / "two", *to)
    assert code == 2 and "not empty" in said


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 4)
    rows = running.collector.database.submissions(made.id, 0, 10)
    place = tmp_path / "one" / "blobs" / made.id
    (place / rows[0].blob).unlink()
    (place / rows[1].blob).write_bytes(b"something else")
    code, said = run("verify", "--data", tmp_path / "one")
    assert code == 1 and f"missing  {made.id}  {KEYS[0]}" in said
    assert f"damaged  {made.id}  {KEYS[1]}" in said and "4 records" in said
    code, said = run("backup", "--data", tmp_path / "one", "--to", tmp_path / "saved")
    assert code == 1 and "2 are missing or damaged" in said
    code, said = run("verify", "--data", tmp_path / "one", "--forget-lost")
    assert code == 2 and "Another server" in said
    stop(running)
    assert run("verify", "--data", tmp_path / "one", "--forget-lost")[0] == 1
    collector = again(tmp_path / "one")
    collector.start()
    assert collector.tidied.lost == {}
    assert [one.reason for one in collector.database.gone(made.id, 0, 10)] == ["lost"]
    collector.stop()


def test_a_backup_that_is_not_whole_or_not_there_is_not_restored(tmp_path: Path) -> None:
    running, _, _ = filled(tmp_path / "one", 1)
    stop(running)
    assert run("backup", "--data", tmp_path / "one", "--to", tmp_path / "saved")[0] == 0
    assert run("backup", "--data", tmp_path / "one", "--to", tmp_path / "saved")[0] == 2
    (tmp_path / "saved" / "backup.json").unlink()
    code, said = run("restore", tmp_path / "saved", "--data", tmp_path / "two")
    assert code == 2 and "not a whole backup" in said
    assert run("verify", "--data", tmp_path / "nowhere")[0] == 2
    assert not (tmp_path / "nowhere").exists()


def test_what_was_withdrawn_after_the_backup_does_not_come_back(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 3)
    stop(running)
    assert run("backup", "--data", tmp_path / "one", "--to", tmp_path / "saved")[0] == 0
    export = tmp_path / "manifest.json"
    export.write_text(
        json.dumps({"campaign": made.id, "withdrawn": [KEYS[1]], "expired": [KEYS[2]]})
    )
    code, said = run(
        "restore", tmp_path / "saved", "--data", tmp_path / "two", "--withdrawn", export
    )
    assert code == 0 and "1 records" in said
    assert len(names(tmp_path / "two", made)) == 1


def test_what_waits_is_said_and_confirmed(tmp_path: Path) -> None:
    running, made, _ = filled(tmp_path / "one", 3)
    folder = tmp_path / "one"
    assert run("sweep", "--data", folder) == (0, "Nothing waits.\n")
    running.collector.database.set_state(CLOCK, str(now() - 40 * DAY_MS))
    assert "40 days ahead" in run("sweep", "--data", folder)[1]
    assert "running server" in run("sweep", "--data", folder, "--confirm")[1]
    assert running.collector.tidy().held == []
    stop(running)
    (folder / "blobs" / made.id / ("e" * 64)).write_bytes(b"nobody's")
    assert run("sweep", "--data", folder, "--confirm")[0] == 0
    assert len(names(folder, made)) == 3
