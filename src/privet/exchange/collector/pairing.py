"""A database and its blobs know each other: each has a random name of its own, and the other's.

A server that is given a database and blobs that do not belong together does not start, and changes
nothing. So records are neither split between two places nor taken for orphans.
"""

from __future__ import annotations

import secrets

from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import PARTS, Blobs, Mark
from privet.exchange.collector.database import Database

PLACE = "blobs"


def pair(database: Database, blobs: Blobs) -> None:
    """Become the one writer of the database, bring its tables to the present layout, and check that
    the blobs are its own; new ones are marked.

    PrivetError where they belong to another database, or the database to other blobs.
    """
    mark = blobs.mark()
    if database.is_absent and (mark is not None or next(blobs.all(), None) is not None):
        raise _strange(database, blobs)
    database.writer.take()
    try:
        database.upgrade()
        _check(database, blobs, mark)
        database.writer.count()
    except BaseException:
        database.writer.give_back()
        database.engine.dispose()
        raise


def _check(database: Database, blobs: Blobs, mark: Mark | None) -> None:
    identity, place = database.identity(), database.state(PLACE)
    if mark is None:
        listed = next(blobs.all(), None) is not None
        if not listed and (place is not None or database.has_records()):
            raise PrivetError(
                f"The records of the database {database.address} are not in {blobs.address}, which "
                "is empty: give --blobs the place that they are in, or restore a backup into an "
                "empty place (nothing was changed)."
            )
        if listed and not _knows(database, blobs):
            raise _strange(database, blobs)
    elif mark.database != identity:
        raise _strange(database, blobs)
    elif place is not None and mark.place not in (place, None):
        raise PrivetError(
            f"The database {database.address} belongs to records in another place than "
            f"{blobs.address}: give --blobs the place that they are in (nothing was changed)."
        )
    if place is None:
        place = (mark.place if mark else None) or secrets.token_hex(16)
    # The mark first: a crash in between leaves a mark that the next start takes as it is.
    if mark != Mark(identity, place):
        blobs.identify(Mark(identity, place))
    database.set_state(PLACE, place)


def _strange(database: Database, blobs: Blobs) -> PrivetError:
    return PrivetError(
        f"The records in {blobs.address} do not belong to the database {database.address}, which "
        "is new or another one: put their own database back, or choose an empty place for records "
        "(nothing was deleted)."
    )


def _knows(database: Database, blobs: Blobs) -> bool:
    """Whether one of the campaigns that have blobs is in the database.

    Parts of a release count only where there is nothing else: another collector may have them too.
    """
    folders = set(blobs.folders())
    if folders <= {PARTS}:
        return not database.blob_names(PARTS).isdisjoint(name for name, _ in blobs.names(PARTS))
    return any(row.id in folders for row in database.campaigns())
