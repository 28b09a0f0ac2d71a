"""A collector's data as an operator names it, beside a server that may run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.secret_files import write_secret
from privet.exchange.collector.blobs import Blobs, open_blobs
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.database import Database
from privet.exchange.collector.governance import Governance
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.orphans import ORPHAN_SECONDS, find
from privet.exchange.collector.retention import HOW, clock_doubt, confirm, count_due


@contextmanager
def places(
    folder: Path, db: str | None, blobs: str | None, new: bool = False
) -> Iterator[tuple[Database, Blobs]]:
    """Database and blobs of a collector, to be read beside its server.

    Parameters:
        folder: As of `privet serve --data`.
        db, blobs: The same as of `privet serve`, where they are not in the folder.
        new: Whether they are to be made, for this process alone.
    """
    if new:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(db or f"sqlite:///{folder.resolve() / 'collector.db'}")
    if not new and database.is_absent:
        raise PrivetError(f"There is no collector in {folder}: it has no collector.db.")
    address = blobs or str(folder / "blobs")
    place = open_blobs(address) if new else Blobs(address)
    try:
        yield database, place
    finally:
        place.close()
        database.writer.give_back()
        database.engine.dispose()


def sweep_now(folder: Path, db: str | None, blobs: str | None, confirmed: bool) -> list[str]:
    """Say what waits for an operator; do it where that is confirmed, or let the running server do
    it.

    Parameters:
        folder, db, blobs: As of `places`.
        confirmed: The operator's word that the clock and the database are right.
    """
    with places(folder, db, blobs) as (database, place):
        if not confirmed:
            return _waiting(database, place)
        try:
            database.writer.take(wait=0.0)
        except PrivetError:
            confirm(database)
            return ["Confirmed: the running server does it within a few seconds."]
        collector = Collector(database, open_blobs(place.address), Monitor(quiet=True))
        try:
            collector.open()
            confirm(database)
            tidied = collector.tidy(older=0.0)
        finally:
            collector.stop()
    return [f"{tidied.expired} records were deleted; blobs without a row were set aside."]


def new_operator_token(
    folder: Path, db: str | None, blobs: str | None, holder: str, file: Path, replace: bool
) -> None:
    """Make a token for an operator, in a file that only its owner may read.

    Parameters:
        folder, db, blobs: As of `places`.
        holder: Whose it is: they see the campaigns that they opened, also with a later token.
        file: To be written.
        replace: Whether the token that the holder has already ends.
    """
    if not holder.isprintable() or not 1 <= len(holder) <= 64:
        raise PrivetError("A holder's name has 1 to 64 characters that can be printed.")
    if file.exists():
        raise PrivetError(f"{file} is there already: choose another --out.")
    with places(folder, db, blobs) as (database, _):
        text = database.operator_token(replace, holder)
        if text is None:
            raise PrivetError(f"'{holder}' has a token already: end it with --replace.")
        Governance(database).write("", "operator", "token made", holder=holder, replaced=replace)
        write_secret(file, text + "\n")


def _waiting(database: Database, blobs: Blobs) -> list[str]:
    orphans, total, lost = find(database, blobs, ORPHAN_SECONDS)
    sentences = [
        clock_doubt(database),
        f"{len(orphans)} of {total} blobs have no row." if orphans else None,
        f"{sum(lost.values())} records are lost:  privet collector verify" if lost else None,
        f"{due} of {database.count()} records are kept as long as they may be."
        if (due := count_due(database))
        else None,
    ]
    said = [sentence for sentence in sentences if sentence]
    return [*said, f"To go on:  {HOW}"] if said else ["Nothing waits."]
