"""`privet collector ...`: what an operator does with a collector's data. One function per verb, no
logic. What a verb needs is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.campaign import extra, show

collector_app = typer.Typer(
    no_args_is_help=True, help="Look after a collector's data: verify, back up, restore, sweep."
)

Data = Annotated[Path, typer.Option("--data", help="Folder of  privet serve --data")]
Db = Annotated[str | None, typer.Option("--db", help="As of  privet serve --db")]
BlobsAt = Annotated[str | None, typer.Option("--blobs", help="As of  privet serve --blobs")]

DEFAULT = Path("privet-collector")


@collector_app.command(epilog="Example:  privet collector verify --data collector")
def verify(
    folder: Data = DEFAULT,
    db: Db = None,
    blobs: BlobsAt = None,
    forget_lost: Annotated[
        bool,
        typer.Option(
            "--forget-lost",
            help="Count records whose bytes are lost as gone; stop the server first",
        ),
    ] = False,
) -> None:
    """Read every record and compare it with its row: what is missing or damaged is named. Exit code
    1 where something is."""
    with extra("A collector"):
        from privet.exchange.collector import backup as backups
        from privet.exchange.collector.operating import places

        with places(folder, db, blobs) as (database, place):
            if forget_lost:
                database.writer.take(wait=0.0)
            verified = backups.verify(database, place)
            if forget_lost:
                backups.forget_lost(database, place, verified.missing)
    for kind, names in (("missing", verified.missing), ("damaged", verified.damaged)):
        for blob in names:
            show(f"{kind}  {blob.campaign}  {blob.name}")
    show(
        f"{verified.records} records and {verified.parts} parts of releases: "
        f"{len(verified.missing)} missing, {len(verified.damaged)} damaged"
    )
    if not verified.is_whole:
        raise typer.Exit(1)


@collector_app.command(epilog="Example:  privet collector backup --data collector --to 2026-11-16")
def backup(
    target: Annotated[Path, typer.Option("--to", help="A new folder for the backup")],
    folder: Data = DEFAULT,
    db: Db = None,
    blobs: BlobsAt = None,
) -> None:
    """Copy rows and records to a folder, also while the server runs."""
    with extra("A collector"):
        from privet.exchange.collector import backup as backups
        from privet.exchange.collector.operating import places

        with places(folder, db, blobs) as both:
            about = backups.backup(*both, target)
    show(f"{about['records']} records, {about['bytes'] / 1000:.1f} kB:  {target}")
    if about["lost"]:
        show(f"{about['lost']} are missing or damaged:  privet collector verify")
        raise typer.Exit(1)


@collector_app.command(epilog="Example:  privet collector restore 2026-11-16 --data collector")
def restore(
    source: Annotated[Path, typer.Argument(help="Folder that  privet collector backup  wrote")],
    folder: Data = DEFAULT,
    db: Db = None,
    blobs: BlobsAt = None,
    withdrawn: Annotated[
        list[Path] | None,
        typer.Option(
            help="manifest.json of an export that is newer than the backup: what it names as gone "
            "does not come back; repeatable"
        ),
    ] = None,
) -> None:
    """Write a backup into a database and a place for records that are empty."""
    with extra("A collector"):
        from privet.exchange.collector import backup as backups
        from privet.exchange.collector.operating import places

        with places(folder, db, blobs, new=True) as both:
            about = backups.restore(source, *both, withdrawn or ())
    show(f"{about['records']} records of {about['made']}:  {folder}")
    show("Records that were withdrawn since then are back, unless --withdrawn named them.")
    if about["lost"]:
        show(f"{about['lost']} are missing or damaged in the backup.")
        raise typer.Exit(1)


@collector_app.command(epilog="Example:  privet collector sweep --data collector --confirm")
def sweep(
    folder: Data = DEFAULT,
    db: Db = None,
    blobs: BlobsAt = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm", help="The clock is right and the database the newest: do what waits"
        ),
    ] = False,
) -> None:
    """Say what the collector did not delete without asking; with --confirm, do it."""
    with extra("A collector"):
        from privet.exchange.collector.operating import sweep_now

        for sentence in sweep_now(folder, db, blobs, confirm):
            show(sentence)


@collector_app.command(
    epilog="Example:  privet collector token --data collector --holder 'Lab X' --out lab-x.token"
)
def token(
    holder: Annotated[str, typer.Option(help="Who gets it; they see the campaigns they opened")],
    file: Annotated[Path, typer.Option("--out", help="File to write it to, for its holder alone")],
    folder: Data = DEFAULT,
    db: Db = None,
    blobs: BlobsAt = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="End the token that the holder has already")
    ] = False,
) -> None:
    """Make an operator's token for somebody who may open campaigns."""
    with extra("A collector"):
        from privet.exchange.collector.operating import new_operator_token

        new_operator_token(folder, db, blobs, holder, file, replace)
    show(f"{holder} may open campaigns with {file}.")
