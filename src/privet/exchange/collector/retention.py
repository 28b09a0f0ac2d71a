"""What must not stay: records older than their campaign keeps them, parts no campaign names, blobs
that no row points at."""

from __future__ import annotations

import json
import time
from itertools import groupby

from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import PARTS, Blob, Blobs
from privet.exchange.collector.database import CHUNK, DAY_MS, Database
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.tokens import now

# Seconds between rounds, and seconds after which a blob without a row is surely nobody's, while a
# server runs.
ROUND_SECONDS = 600.0
ORPHAN_SECONDS = 600.0


def pair(database: Database, blobs: Blobs) -> None:
    """Bring the tables to the present layout, and mark the blobs as this database's, if they are.

    Blobs without a row are swept, so a database that is new, or of another collector, would have
    every record deleted: PrivetError where the mark is not this database's, or where blobs without
    a mark (of a collector from before there were marks) are not known to it.
    """
    mark = blobs.identity()
    strange = PrivetError(
        f"The records in {blobs.address} do not belong to the database {database.address}, which "
        "is new or another one: put their own database back, or choose an empty place for records "
        "(nothing was deleted)."
    )
    if database.is_absent and (mark is not None or next(blobs.all(), None) is not None):
        raise strange
    database.upgrade()
    identity = database.identity()
    if mark is None and _knows(database, blobs):
        blobs.identify(identity)
    elif mark != identity:
        database.engine.dispose()
        raise strange


def _knows(database: Database, blobs: Blobs) -> bool:
    """Whether one of the campaigns that have blobs is in the database, or there are no blobs.

    Parts of a release count only where there is nothing else: another collector may have them too.
    """
    listed = [blob for blob, _ in blobs.all()]
    folders = {blob.campaign for blob in listed}
    if folders <= {PARTS}:
        return not listed or not database.blob_names(PARTS).isdisjoint(blob.name for blob in listed)
    return any(row.id in folders for row in database.campaigns())


def tidy(database: Database, blobs: Blobs, monitor: Monitor) -> int:
    """One round while the server runs; returns how many records grew too old."""
    deleted = expire(database, blobs, monitor, now())
    unused = database.unused_parts(now() - DAY_MS)
    if unused:
        database.remove_parts(unused)
        blobs.delete([Blob(PARTS, name) for name in unused])
    sweep(database, blobs, monitor, max(ORPHAN_SECONDS, blobs.grace))
    return deleted


def expire(database: Database, blobs: Blobs, monitor: Monitor, at: int) -> int:
    """Delete every record that its campaign's retention no longer allows."""
    deleted = 0
    for campaign in database.campaigns():
        before = at - DAY_MS * int(json.loads(campaign.manifest)["retention_days"])
        while names := database.expired(campaign.id, before):
            blobs.delete(database.remove(campaign.id, names, "retention"))
            deleted += len(names)
    if deleted:
        monitor.gone.labels("retention").inc(deleted)
        monitor.log("retention", records=deleted)
    return deleted


def sweep(database: Database, blobs: Blobs, monitor: Monitor, older: float) -> int:
    """Delete blobs older than so many seconds that no row points at: left by a crash between blob
    and row, or between row and blob.

    None is deleted where the blobs are not marked as this database's.
    """
    if blobs.identity() != database.identity():
        monitor.log("not swept", reason="the blobs belong to another database")
        return 0
    limit = time.time() - older
    old = sorted(blob for blob, written in blobs.all() if written <= limit)
    orphans: list[Blob] = []
    for campaign, group in groupby(old, key=lambda blob: blob.campaign):
        # Blobs are listed before rows: one that gets its row meanwhile is then seen to have one.
        known = database.blob_names(campaign)
        orphans.extend(blob for blob in group if blob.name not in known)
    for start in range(0, len(orphans), CHUNK):
        blobs.delete(orphans[start : start + CHUNK])
    if orphans:
        monitor.orphans.inc(len(orphans))
        monitor.log("swept", orphans=len(orphans))
    return len(orphans)
