"""What must not stay: records older than their campaign keeps them, parts no campaign names, blobs
that no row points at."""

from __future__ import annotations

import json
import time
from itertools import groupby

from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import Blob, Blobs
from privet.exchange.collector.store import CHUNK, DAY, PARTS, Store, now
from privet.exchange.collector.watch import Watch

EVERY = 600.0
"""Seconds between rounds."""
SETTLED = 600.0
"""Seconds after which a blob without a row is surely nobody's, while a server runs."""


def pair(store: Store, blobs: Blobs) -> None:
    """Bring the tables to the present layout, and mark the blobs as this database's, if they are.

    Blobs without a row are swept, so a database that is new, or of another collector, would have
    every record deleted: PrivetError where the mark is not this database's, or where blobs without
    a mark (of a collector from before there were marks) are not known to it.
    """
    mark = blobs.identity()
    if store.is_absent and (mark is not None or next(blobs.all(), None) is not None):
        raise _apart(store, blobs)
    store.upgrade()
    identity = store.identity()
    if mark is None and _knows(store, blobs):
        blobs.identify(identity)
    elif mark != identity:
        store.engine.dispose()
        raise _apart(store, blobs)


def _knows(store: Store, blobs: Blobs) -> bool:
    """Whether one of the campaigns that have blobs is in the database, or there are no blobs.

    Parts of a release count only where there is nothing else: another collector may have them too.
    """
    listed = [blob for blob, _ in blobs.all()]
    folders = {blob.campaign for blob in listed}
    if folders <= {PARTS}:
        return not listed or not store.blobs_of(PARTS).isdisjoint(blob.name for blob in listed)
    return any(row.id in folders for row in store.campaigns())


def _apart(store: Store, blobs: Blobs) -> PrivetError:
    return PrivetError(
        f"The records in {blobs.where} do not belong to the database {store.where}, which is new "
        "or another one: put their own database back, or choose an empty place for records "
        "(nothing was deleted)."
    )


def tidy(store: Store, blobs: Blobs, watch: Watch, at: int | None = None) -> int:
    """One round while the server runs; returns how many records grew too old."""
    deleted = expire(store, blobs, watch, now() if at is None else at)
    unused = store.unused_parts(now() - DAY)
    if unused:
        store.remove_parts(unused)
        blobs.delete([Blob(PARTS, name) for name in unused])
    sweep(store, blobs, watch, max(SETTLED, blobs.young))
    return deleted


def expire(store: Store, blobs: Blobs, watch: Watch, at: int) -> int:
    """Delete every record that its campaign's retention no longer allows."""
    deleted = 0
    for campaign in store.campaigns():
        before = at - DAY * int(json.loads(campaign.manifest)["retention_days"])
        while names := store.old(campaign.id, before):
            blobs.delete(store.remove(campaign.id, names, "retention"))
            deleted += len(names)
    if deleted:
        watch.gone.labels("retention").inc(deleted)
        watch.say("retention", records=deleted)
    return deleted


def sweep(store: Store, blobs: Blobs, watch: Watch, older: float) -> int:
    """Delete blobs older than so many seconds that no row points at: left by a crash between blob
    and row, or between row and blob.

    None is deleted where the blobs are not marked as this database's.
    """
    if blobs.identity() != store.identity():
        watch.say("not swept", reason="the blobs belong to another database")
        return 0
    limit = time.time() - older
    orphans: list[Blob] = []
    old = sorted(
        (blob for blob, written in blobs.all() if written <= limit), key=lambda blob: blob.campaign
    )
    for campaign, group in groupby(old, key=lambda blob: blob.campaign):
        # Listed before it is asked for: a blob that gets its row meanwhile is then seen to have
        # one.
        known = store.blobs_of(campaign)
        orphans.extend(blob for blob in group if blob.name not in known)
    for start in range(0, len(orphans), CHUNK):
        blobs.delete(orphans[start : start + CHUNK])
    if orphans:
        watch.orphans.inc(len(orphans))
        watch.say("swept", orphans=len(orphans))
    return len(orphans)
