"""What must not stay: records older than their campaign keeps them, and parts no campaign names.

Deleting cannot be undone, so it waits where it may be a mistake. Where the clock is days ahead of
the time that the server last saw, nothing expires until an operator has confirmed the time. Where
many records are due at once, that is announced, and they are deleted a day later or when it is
confirmed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from privet.exchange.collector.blobs import PARTS, Blob, Blobs
from privet.exchange.collector.database import DAY_MS, Database
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.orphans import (
    ORPHAN_SECONDS,
    belong_together,
    purge,
    sweep,
)
from privet.exchange.collector.tokens import now

# Seconds between rounds.
ROUND_SECONDS = 600.0
# How far the clock may be ahead of the time that was last seen: a server may be off for a weekend.
JUMP_MS = 3 * DAY_MS
# How long the deletion of many records is announced before.
NOTICE_MS = DAY_MS
# A part of all records, and a number, above which they are many.
MANY_PART, MANY = 0.05, 10

CLOCK, ANNOUNCED, CONFIRMED = "clock", "expiry_announced", "confirmed"
HOW = "privet collector sweep --confirm"


class Tidied(NamedTuple):
    """What one round did.

    Parameters:
        expired: Records that grew too old and were deleted.
        held: Sentences about what was not done and waits for an operator.
        lost: How many records' bytes are not there, by their campaign.
    """

    expired: int
    held: list[str]
    lost: dict[str, int]


def is_many(count: int, of: int) -> bool:
    """
    >>> is_many(10, 20), is_many(11, 20), is_many(11, 1000)
    (False, True, False)
    """
    return count > MANY and count > MANY_PART * of


def confirm(database: Database) -> None:
    """An operator's word that the clock is right, and that what waits may be done; the next round
    does it."""
    database.set_state(CLOCK, str(now()))
    database.set_state(CONFIRMED, str(now()))


def tidy(
    database: Database, blobs: Blobs, monitor: Monitor, older: float = ORPHAN_SECONDS
) -> Tidied:
    """One round.

    Parameters:
        database, blobs: What is tidied.
        monitor: Gets what was done.
        older: Seconds after which a blob without a row is surely nobody's.
    """
    if not belong_together(database, blobs):
        monitor.log("not tidied", reason="the blobs belong to another database")
        return Tidied(0, [], {})
    confirmed = database.state(CONFIRMED) is not None
    finish_deletions(database, blobs)
    expired, held = 0, []
    doubt = clock_doubt(database)
    if doubt is None:
        expired, waiting = _expire_or_announce(database, blobs, monitor, confirmed)
        held += waiting
        unused = database.unused_parts(now() - DAY_MS)
        if unused:
            database.remove_parts(unused)
            blobs.delete([Blob(PARTS, name) for name in unused])
        purge(blobs, monitor)
        database.set_state(CLOCK, str(now()))
    else:
        held.append(doubt)
    swept = sweep(database, blobs, monitor, older, None if confirmed else is_many)
    if swept.held:
        held.append(
            f"{swept.held} of {swept.blobs} blobs have no row: is this the newest database of "
            f"these records? If it is:  {HOW}"
        )
    if confirmed:
        database.set_state(CONFIRMED, None)
    for sentence in held:
        monitor.log("held", reason=sentence)
    monitor.held.set(len(held))
    monitor.lost.set(sum(swept.lost.values()))
    return Tidied(expired, held, swept.lost)


def clock_doubt(database: Database) -> str | None:
    """Why the time of day is not to be believed; None where it may be."""
    last = int(database.state(CLOCK) or now())
    if now() - last <= JUMP_MS:
        return None
    days = (now() - last) / DAY_MS
    return (
        f"The clock is {days:.0f} days ahead of the time that this collector last saw: nothing "
        f"expires until it is confirmed. If the clock is right:  {HOW}"
    )


def count_due(database: Database) -> int:
    """Records that are kept as long as they may be."""
    return sum(
        database.count_expired(campaign, before) for campaign, before in _limits(database, now())
    )


def _expire_or_announce(
    database: Database, blobs: Blobs, monitor: Monitor, confirmed: bool
) -> tuple[int, list[str]]:
    due = count_due(database)
    if not due:
        database.set_state(ANNOUNCED, None)
        return 0, []
    since = int(database.state(ANNOUNCED) or now())
    if is_many(due, database.count()) and not confirmed and now() - since < NOTICE_MS:
        database.set_state(ANNOUNCED, str(since))
        return 0, [
            f"{due} of {database.count()} records are kept as long as they may be, and will be "
            f"deleted within a day. To delete them now:  {HOW}"
        ]
    expired = expire(database, blobs, monitor, now())
    database.set_state(ANNOUNCED, None)
    return expired, []


def _limits(database: Database, at: int) -> list[tuple[str, int]]:
    """Per campaign, the time before which records are too old."""
    return [
        (row.id, at - DAY_MS * int(json.loads(row.manifest)["retention_days"]))
        for row in database.campaigns()
    ]


def expire(database: Database, blobs: Blobs, monitor: Monitor, at: int) -> int:
    """Delete every record that its campaign's retention no longer allows at that time."""
    deleted = 0
    for campaign, before in _limits(database, at):
        while names := database.expired(campaign, before):
            remove(database, blobs, campaign, names, "retention")
            deleted += len(names)
    if deleted:
        monitor.gone.labels("retention").inc(deleted)
        monitor.log("retention", records=deleted)
    return deleted


def remove(
    database: Database, blobs: Blobs, campaign: str, names: Sequence[str], reason: str
) -> None:
    """Delete records, rows and blobs, and leave their names."""
    gone = database.remove(campaign, names, reason)
    blobs.delete(gone)
    database.deleted(gone)


def finish_deletions(database: Database, blobs: Blobs) -> None:
    """Delete blobs whose rows were removed before a crash."""
    while left := database.deletions():
        blobs.delete(left)
        blobs.purge(left)
        database.deleted(left)
