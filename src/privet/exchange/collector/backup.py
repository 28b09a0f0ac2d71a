"""`privet collector verify | backup | restore`: what an operator does with a collector's data.

A backup is a folder: rows as one SQLite file, whatever the database is, and the blobs that they
point at. It is made while the server runs: rows are read in one transaction, and what is withdrawn
while the blobs are copied is removed from the copy too. `backup.json` is written last; without it a
backup is not whole.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.core.errors import PrivetError, first_line
from privet.core.files import write_text
from privet.core.progress import bar
from privet.exchange.collector.blobs import PARTS, Blob, Blobs, Disk, Missing
from privet.exchange.collector.database import BACKUP, Database
from privet.exchange.collector.pairing import pair
from privet.exchange.collector.retention import CLOCK, remove
from privet.exchange.collector.tables import identity, metadata, parts, state

ABOUT, DATABASE, BLOBS = "backup.json", "collector.db", "blobs"
# Rows read and written at once.
ROWS = 1000


@dataclass(frozen=True)
class Verified:
    """What is there of what the rows say.

    Parameters:
        records, parts: How many rows were looked at.
        missing: Campaign (or `parts`) and name of each whose bytes are not there.
        damaged: The same of those whose bytes are not what was sent.
    """

    records: int
    parts: int
    missing: list[Blob] = field(default_factory=list)
    damaged: list[Blob] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not self.missing and not self.damaged


def verify(database: Database, blobs: Blobs, show_progress: bool = True) -> Verified:
    """Read every blob and compare its SHA-256 with its row; also while a server runs."""
    counts: Counter[str] = Counter()
    missing: list[Blob] = []
    damaged: list[Blob] = []
    try:
        with bar("verify", database.count(), show_progress) as tick:
            for place, named, sha256 in _rows(database):
                counts["parts" if place.campaign == PARTS else "records"] += 1
                problem = _problem(database, blobs, place, sha256)
                if problem is not None:
                    (missing if problem == "missing" else damaged).append(Blob(place[0], named))
                tick(counts["records"])
    except SQLAlchemyError as error:
        raise _unusable(database, error) from None
    return Verified(counts["records"], counts["parts"], missing, damaged)


def forget_lost(database: Database, blobs: Blobs, lost: Sequence[Blob]) -> None:
    """Turn records whose bytes are lost into names of what is gone, so that the collector is whole
    again; its server must not run."""
    for blob in lost:
        if blob.campaign != PARTS:
            remove(database, blobs, blob.campaign, [blob.name], "lost")


def backup(
    database: Database, blobs: Blobs, target: Path, show_progress: bool = True
) -> dict[str, Any]:
    """Copy rows and blobs to a new folder; returns what `backup.json` says.

    Parameters:
        database, blobs: Of the collector, whose server may run.
        target: A folder that is not there yet, or is empty.
        show_progress: Whether a bar is drawn.
    """
    if target.exists() and any(target.iterdir()):
        raise PrivetError(f"{target} is not empty: a backup gets a folder of its own.")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy = Database(f"sqlite:///{target / DATABASE}")
    copy.upgrade()
    try:
        with database.engine.connect() as connection:
            _copy_rows(_snapshot(connection), copy, leave_out=())
    except SQLAlchemyError as error:
        raise _unusable(database, error) from None
    there = Disk(target / BLOBS)
    lost, size = _copy_blobs(copy, blobs, there, database, show_progress)
    there.close()
    about = {
        "version": 1,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "identity": copy.identity(),
        "records": copy.count(),
        "bytes": size,
        "lost": len(lost),
    }
    copy.engine.dispose()
    write_text(target / ABOUT, json.dumps(about, indent=1) + "\n")
    database.set_state(BACKUP, str(about["made"]))
    return about


def restore(
    source: Path,
    database: Database,
    blobs: Blobs,
    withdrawn: Sequence[Path] = (),
    show_progress: bool = True,
) -> dict[str, Any]:
    """Write a backup into an empty database and an empty place for blobs; they get a new identity.

    Parameters:
        source: The folder that `backup` wrote.
        database, blobs: Where to; both must be empty.
        withdrawn: `manifest.json` of exports that are newer than the backup: what they name as gone
            is removed, so that a withdrawn record does not come back.
        show_progress: Whether a bar is drawn.
    """
    about = _read_about(source)
    if not database.is_absent and sa.inspect(database.engine).get_table_names():
        raise PrivetError(f"The database {database.address} is not empty: restore into a new one.")
    if blobs.mark() is not None or next(blobs.all(), None) is not None:
        raise PrivetError(f"{blobs.address} is not empty: restore into an empty place.")
    pair(database, blobs)
    copy = Database(f"sqlite:///{source / DATABASE}")
    copy.upgrade()  # of an earlier version
    with copy.engine.connect() as connection:
        _copy_rows(connection, database, leave_out=(identity, state))
    _count_on(database)
    # The time of the backup: records that have grown too old since are not deleted without asking.
    database.set_state(CLOCK, copy.state(CLOCK))
    for file in withdrawn:
        _withdraw_again(database, file)
    saved = Blobs(str(source / BLOBS))
    lost, size = _copy_blobs(database, saved, blobs, None, show_progress)
    saved.close()
    copy.engine.dispose()
    return {**about, "records": database.count(), "bytes": size, "lost": len(lost)}


def _rows(database: Database) -> Iterator[tuple[Blob, str, str]]:
    """Every blob that a row points at, the name that people know it by, and its SHA-256."""
    with database.engine.connect() as connection:
        for [sha256] in connection.execute(sa.select(parts.c.sha256)).all():
            yield Blob(PARTS, sha256), sha256, sha256
    for campaign in database.campaigns():
        after = 0
        while page := database.submissions(campaign.id, after, ROWS):
            for row in page:
                after = row.number
                yield Blob(campaign.id, row.blob), row.id, row.sha256


def _problem(database: Database, blobs: Blobs, place: Blob, sha256: str) -> str | None:
    """None also where the row was removed meanwhile."""
    try:
        problem = None if _hash(blobs.get(place)) == sha256 else "damaged"
    except Missing:
        problem = "missing"
    if problem and not database.rows_of(place.campaign, [place.name]):
        return None
    return problem


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _snapshot(connection: sa.Connection) -> sa.Connection:
    """One state of all tables, whatever is written meanwhile."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
        return connection
    return connection.execution_options(isolation_level="REPEATABLE READ")


def _copy_rows(source: sa.Connection, target: Database, leave_out: Sequence[sa.Table]) -> None:
    with target.engine.begin() as connection:
        for table in metadata.sorted_tables:
            if table in leave_out:
                continue
            if table in (identity, state):  # which are made with the tables
                connection.execute(sa.delete(table))
            rows = source.execution_options(yield_per=ROWS).execute(sa.select(table)).mappings()
            for page in rows.partitions(ROWS):
                connection.execute(sa.insert(table), [dict(row) for row in page])


def _copy_blobs(
    rows: Database, source: Blobs, target: Blobs, live: Database | None, show_progress: bool
) -> tuple[list[Blob], int]:
    """What could not be copied, and how many bytes were.

    Parameters:
        rows: Whose blobs; what the live database has removed meanwhile is removed from it.
        source, target: From where, and where to.
        live: The database of a server that may run.
        show_progress: Whether a bar is drawn.
    """
    lost: list[Blob] = []
    size = done = 0
    folders: set[str] = set()
    with bar("copy", rows.count(), show_progress) as tick:
        for place, named, sha256 in _rows(rows):
            try:
                content = source.get(place)
            except Missing:
                if live is not None and not live.rows_of(place.campaign, [place.name]):
                    rows.deleted(rows.remove(place.campaign, [named], "withdrawn"))
                else:
                    lost.append(Blob(place.campaign, named))
                continue
            if _hash(content) != sha256:
                lost.append(Blob(place.campaign, named))
            target.write(place, content)
            folders.add(place.campaign)
            size, done = size + len(content), done + (place.campaign != PARTS)
            tick(done)
    target.sync([Blob(folder, "") for folder in folders])
    return lost, size


def _count_on(database: Database) -> None:
    """PostgreSQL counts on after the numbers that were written."""
    if database.engine.dialect.name != "postgresql":
        return
    with database.engine.begin() as connection:
        for table in metadata.sorted_tables:
            if "number" in table.c and connection.scalar(sa.select(sa.func.max(table.c.number))):
                connection.execute(
                    sa.text(
                        f"SELECT setval(pg_get_serial_sequence('{table.name}', 'number'), "
                        f"(SELECT max(number) FROM {table.name}))"
                    )
                )


def _withdraw_again(database: Database, file: Path) -> None:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        names = [*about["withdrawn"], *about["expired"]]
        campaign = str(about["campaign"])
    except (OSError, ValueError, KeyError, TypeError):
        raise PrivetError(f"{file} is not the manifest.json of an export.") from None
    for start in range(0, len(names), ROWS):
        chosen = [str(name) for name in names[start : start + ROWS]]
        database.deleted(database.remove(campaign, chosen, "withdrawn"))


def _read_about(source: Path) -> dict[str, Any]:
    try:
        about = json.loads((source / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise PrivetError(f"{source} is not a whole backup: it has no {ABOUT}.") from None
    if not isinstance(about, dict) or about.get("version") != 1:
        raise PrivetError(f"{source / ABOUT} is not of a backup that this version can read.")
    return about


def _unusable(database: Database, error: Exception) -> PrivetError:
    reason = first_line(getattr(error, "orig", None) or error)
    return PrivetError(f"The database {database.address} cannot be read ({reason}).")
