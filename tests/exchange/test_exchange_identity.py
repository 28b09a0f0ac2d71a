"""A collector deletes no blob because its database is missing, new, or another one."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from world import KEYS, World, bearer, downgrade, port, world

from conftest import begin
from privet.core.errors import PrivetError
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import Disk
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.database import Database
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.orphans import sweep
from privet.exchange.collector.retention import tidy
from privet.exchange.collector.serve import Address, serve


@dataclass(frozen=True)
class Stopped:
    """A collector that has taken three records and stopped."""

    folder: Path
    made: World
    owner: str
    contents: list[bytes]

    @property
    def db(self) -> Path:
        return self.folder / "collector.db"

    def files(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in (self.folder / "blobs").rglob("*")
            if path.is_file()
        }

    def collector(self, db: str | None = None) -> Collector:
        return Collector(
            Database(db or f"sqlite:///{self.db}"),
            Disk(self.folder / "blobs"),
            Monitor(io.StringIO()),
        )

    def gives_all(self, db: str | None = None) -> bool:
        """Whether it starts, and its owner gets every record."""
        with TestClient(create_app(self.collector(db)), base_url="http://127.0.0.1") as http:
            page = http.get(
                f"/v1/campaigns/{self.made.id}/records", headers=bearer(self.owner)
            ).content
        return all(content in page for content in self.contents)


def _stopped(folder: Path, db: str | None = None) -> Stopped:
    running, made = begin(folder, db), world()
    owner = running.settle(made)
    contents = [made.body(key, made.record(k)) for k, key in enumerate(KEYS[:3])]
    assert [
        running.submit(made, *pair).status_code for pair in zip(KEYS, contents, strict=False)
    ] == [201] * 3
    running.http.__exit__(None, None, None)
    return Stopped(folder, made, owner, contents)


def test_without_its_database_a_collector_does_not_start_and_deletes_nothing(
    tmp_path: Path,
) -> None:
    stopped = _stopped(tmp_path / "collector")
    files = stopped.files()
    stopped.db.rename(tmp_path / "aside.db")
    with pytest.raises(PrivetError, match="nothing was deleted"):
        serve(stopped.folder, Address(port=port()))
    assert not stopped.db.exists() and not (stopped.folder / "operator.token").exists(), (
        "nothing is made, too"
    )
    new = Database(f"sqlite:///{stopped.db}")
    new.upgrade()
    new.engine.dispose()
    collector = stopped.collector()
    with pytest.raises(PrivetError, match="do not belong to the database"):
        collector.start()
    collector.blobs.close()
    assert stopped.files() == files and not list(stopped.folder.glob("collector.db-*")), (
        "no log that another database would read"
    )
    (tmp_path / "aside.db").rename(stopped.db)
    assert stopped.gives_all() and stopped.files() == files


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def test_the_database_of_another_collector_sweeps_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stopped = _stopped(tmp_path / "one")
    files = stopped.files()
    other = (
        f"sqlite:///{tmp_path / 'other.db'}"
        if kind == "sqlite"
        else request.getfixturevalue("database").url
    )
    Database(other).upgrade()
    (stopped.folder / "blobs" / "identity").unlink()
    for _ in range(2):
        collector = stopped.collector(other)
        with pytest.raises(PrivetError, match="do not belong to the database"):
            collector.start()
        tidy(collector.database, collector.blobs, collector.monitor)
        assert sweep(collector.database, collector.blobs, collector.monitor, older=0).moved == 0
        collector.blobs.close()
    assert stopped.gives_all() and len(stopped.files()) == len(files)


def test_a_collector_from_before_there_were_identities_starts(tmp_path: Path) -> None:
    stopped = _stopped(tmp_path / "collector")
    (stopped.folder / "blobs" / "identity").unlink()
    store = Database(f"sqlite:///{stopped.db}")
    downgrade(store, "0001")
    store.engine.dispose()
    orphan = stopped.folder / "blobs" / stopped.made.id / ("f" * 64)
    orphan.write_bytes(b"left by a crash")
    assert stopped.gives_all() and not orphan.exists()
    assert (stopped.folder / "blobs" / "identity").read_text().split()[0] == store.identity()
