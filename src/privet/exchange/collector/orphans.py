"""Blobs without a row, and rows without a blob.

A crash between blob and row leaves an orphan. It may also be a record whose row is in another,
newer database; so it is set aside, put back when a row asks for it, and deleted after a week. Where
more than a few per cent of all blobs are orphans, none is moved until an operator confirms.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from privet.exchange.collector.blobs import Blob, Blobs
from privet.exchange.collector.database import CHUNK, Database
from privet.exchange.collector.monitor import Monitor

# Seconds after which a blob without a row is surely nobody's, while a server runs.
ORPHAN_SECONDS = 600.0
# Seconds for which orphans are set aside before they are deleted.
QUARANTINE_SECONDS = 7 * 86_400.0


class Swept(NamedTuple):
    """What a sweep found.

    Parameters:
        moved: Orphans that were set aside.
        held: Orphans that were left where they are, because they are many.
        blobs: All blobs.
        lost: Rows without a blob, by their campaign.
    """

    moved: int
    held: int
    blobs: int
    lost: dict[str, int]


def sweep(
    database: Database,
    blobs: Blobs,
    monitor: Monitor,
    older: float,
    is_many: Callable[[int, int], bool] | None = None,
) -> Swept:
    """Put back what a row asks for, and set aside blobs that no row points at.

    Parameters:
        database, blobs: They must belong together, or nothing is done.
        monitor: Gets what was done.
        older: Seconds for which a blob may be waiting for its row.
        is_many: Of a number of orphans and of all blobs, whether that is too many to be moved
            without asking; None where an operator has confirmed.
    """
    if not belong_together(database, blobs):
        monitor.log("not swept", reason="the blobs belong to another database")
        return Swept(0, 0, 0, {})
    _put_back(database, blobs, monitor)
    orphans, total, lost = find(database, blobs, older)
    if lost:
        monitor.log("lost", records=sum(lost.values()))
    if orphans and is_many is not None and is_many(len(orphans), total):
        return Swept(0, len(orphans), total, lost)
    for start in range(0, len(orphans), CHUNK):
        blobs.set_aside(orphans[start : start + CHUNK])
    if orphans:
        monitor.orphans.inc(len(orphans))
        monitor.log("swept", orphans=len(orphans))
    return Swept(len(orphans), 0, total, lost)


def find(database: Database, blobs: Blobs, older: float) -> tuple[list[Blob], int, dict[str, int]]:
    """Blobs without a row that are older than so many seconds, the number of all blobs, and rows
    without a blob by their campaign."""
    orphans: list[Blob] = []
    total = 0
    lost: dict[str, int] = {}
    for folder in sorted({*blobs.folders(), *(row.id for row in database.campaigns())}):
        strays, many, without = _compare(database, blobs, folder, older)
        orphans += strays
        total += many
        if without:
            lost[folder] = without
    return orphans, total, lost


def belong_together(database: Database, blobs: Blobs) -> bool:
    """Whether the blobs are marked as this database's."""
    mark = blobs.mark()
    return mark is not None and mark.database == database.identity()


def purge(blobs: Blobs, monitor: Monitor, older: float = QUARANTINE_SECONDS) -> int:
    """Delete what was set aside so many seconds ago."""
    limit = time.time() - older
    deleted = 0
    for folder in blobs.folders(aside=True):
        old = [Blob(folder, name) for name, since in blobs.names(folder, True) if since <= limit]
        blobs.purge(old)
        deleted += len(old)
    if deleted:
        monitor.log("purged", orphans=deleted)
    return deleted


def _put_back(database: Database, blobs: Blobs, monitor: Monitor) -> None:
    for folder in blobs.folders(aside=True):
        names = [name for name, _ in blobs.names(folder, aside=True)]
        known = _known(database, folder, names)
        if known:
            blobs.put_back([Blob(folder, name) for name in known])
            monitor.log("put back", blobs=len(known))


def _compare(
    database: Database, blobs: Blobs, folder: str, older: float
) -> tuple[list[Blob], int, int]:
    """Orphans of a campaign, how many blobs it has, and how many rows have none.

    Names are compared by their first 64 bits, so that a million take a few megabytes; what differs
    is then looked at by its whole name.
    """
    limit = time.time() - older
    # Blobs are listed before rows: one that gets its row meanwhile is then seen to have one.
    stored = _prefixes(name for name, _ in blobs.names(folder))
    rows = _prefixes(database.stream_blobs(folder))
    strange = set(np.setdiff1d(stored, rows).tolist())
    absent = set(np.setdiff1d(rows, stored).tolist())
    orphans: list[str] = []
    if strange:
        old = (name for name, written in blobs.names(folder) if written <= limit)
        names = [name for name in old if int(name[:16], 16) in strange]
        orphans = sorted(set(names) - _known(database, folder, names))
    lost = 0
    if absent:
        candidates = [
            name for name in database.stream_blobs(folder) if int(name[:16], 16) in absent
        ]
        gone = [name for name in candidates if not blobs.exists(Blob(folder, name))]
        lost = len(_known(database, folder, gone))  # not what was withdrawn meanwhile
    return [Blob(folder, name) for name in orphans], len(stored), lost


def _prefixes(names: Iterable[str]) -> Any:
    return np.fromiter((int(name[:16], 16) for name in names), dtype=np.uint64)


def _known(database: Database, folder: str, names: list[str]) -> set[str]:
    """Those that a row points at."""
    known: set[str] = set()
    for start in range(0, len(names), CHUNK):
        rows = database.rows_of(folder, names[start : start + CHUNK])
        known.update(row._mapping.get("blob") or row._mapping["sha256"] for row in rows)
    return known
