"""The exchange on the command line: one function per verb, no logic. What a verb needs is imported
when it runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.campaign import campaign_app, extra, out
from privet.core.errors import PrivetError
from privet.core.home import home_folder


def serve(
    folder: Annotated[Path, typer.Option("--data", help="Folder for rows and records")] = Path(
        "privet-collector"
    ),
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is for use with TLS")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8300,
    db: Annotated[
        str | None,
        typer.Option(
            help="postgresql+psycopg://USER:PASSWORD@HOST/NAME instead of SQLite in --data"
        ),
    ] = None,
    blobs: Annotated[
        str | None, typer.Option(help="Folder or s3://BUCKET/PREFIX for records instead of --data")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM)")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM)")] = None,
    rate: Annotated[
        float,
        typer.Option(min=0, help="Requests a second from one address or token; 0 for no limit"),
    ] = 50.0,
    burst: Annotated[float, typer.Option(min=1, help="How many of them may come at once")] = 200.0,
    body: Annotated[int, typer.Option(min=1024, help="Most bytes of a request")] = 16 * 2**20,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Within which a request must have come")
    ] = 30.0,
    reserve: Annotated[int, typer.Option(min=0, help="Bytes of disk to leave free")] = 64 * 2**20,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="Believe the addresses that a proxy in front names"),
    ] = False,
    open_metrics: Annotated[
        bool,
        typer.Option(
            "--open-metrics", help="Show /metrics to everybody, not to the operator alone"
        ),
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Revoke the operator's token and make another")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No log line per request")] = False,
) -> None:
    """Run a collector: take records that a release let through, and give them back to who
    withdraws."""
    with extra("A collector"):
        from privet.exchange.collector.limits import Limits
        from privet.exchange.collector.serve import serve as run

        limits = Limits(body=body, seconds=seconds, rate=rate, burst=burst)
        run(
            folder,
            host,
            port,
            db=db,
            blobs=blobs,
            limits=limits,
            reserve=reserve,
            certificate=certificate,
            key=key,
            behind_proxy=behind_proxy,
            open_metrics=open_metrics,
            new_token=new_token,
            quiet=quiet,
        )


def share(
    link: Annotated[str | None, typer.Argument(help="The campaign's link")] = None,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Pictures, folders of pictures, texts, or a parquet or CSV file"),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="An answer to what the campaign asks: name=value; repeatable"),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column that holds the picture, text or window")
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option(help="Fingerprint that the owner's key must have")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would leave, and send nothing")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Send what waits from before")] = False,
) -> None:
    """Take part in a campaign: run its release here, see what leaves, and send only that."""
    with extra("Taking part"):
        from privet.exchange.participant import sentences as words
        from privet.exchange.participant.outbox import Outbox
        from privet.exchange.participant.share import fetch, flush, is_known, prepare, send
        from privet.exchange.protocol.client import Client, Link

        outbox = Outbox(home_folder())
        if retry:
            out.print(words.sent(flush(outbox, cache(Client)), home_folder()), markup=False)
            return
        if link is None or not files:
            raise PrivetError("Give a campaign's link and files to take part with, or --retry.")
        where = Link.parse(link)
        with Client(where.server) as client:
            campaign = fetch(where, client, home_folder() / "known", fingerprint)
            out.print(words.about(campaign, is_known(campaign, home_folder())), markup=False)
            records = prepare(campaign, files, label or [], column)
            out.print(words.leaves(campaign, records), markup=False)
            if dry_run:
                out.print("Nothing was sent.")
                return
            if not campaign.open:
                raise PrivetError("The campaign is closed: it takes no more records.")
            if not yes and not typer.confirm("Send this?"):
                out.print("Nothing was sent.")
                return
            result = send(campaign, records, outbox, client)
    out.print(words.sent(result, home_folder()), markup=False)
    if result.refused or result.waiting:
        raise typer.Exit(1)


def withdraw(
    receipts: Annotated[
        list[str] | None, typer.Argument(help="Receipts: files, or the beginnings of their names")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Everything that was ever sent from here")
    ] = False,
    campaign: Annotated[
        str | None, typer.Option(help="Everything that was sent to the campaign with this link")
    ] = None,
    show_: Annotated[
        bool, typer.Option("--list", help="Show what was sent, and withdraw nothing")
    ] = False,
) -> None:
    """Take back what was sent: the collector deletes it at once."""
    with extra("Withdrawing"):
        from privet.exchange.participant import sentences as words
        from privet.exchange.participant.outbox import Outbox
        from privet.exchange.participant.outbox import withdraw as take_back
        from privet.exchange.protocol.client import Client, Link

        outbox = Outbox(home_folder())
        if show_:
            for one in outbox.kept():
                out.print(words.receipt(one), markup=False)
            return
        chosen = [outbox.find(word) for word in receipts or []]
        if all_ or campaign is not None:
            name = None if campaign is None else Link.parse(campaign).campaign
            chosen += [one for one in outbox.kept() if name is None or one.campaign == name]
        if not chosen:
            raise PrivetError("Name receipts, --campaign LINK or --all; see them with --list.")
        for one in chosen:
            with Client(one.server) as client:
                deleted = take_back(one, client)
            outbox.forget(one)
            out.print(
                f"{one.submission[:12]}  {'deleted' if deleted else 'was gone already'}  {one.source}",
                markup=False,
            )


def task(
    data: Annotated[Path, typer.Option("--data", help="export.parquet of a campaign")],
    label: Annotated[str, typer.Option(help="The label to learn")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for model.onnx and task.json")],
    seed: Annotated[
        int, typer.Option(help="On one machine's CPU the same seed gives the same result")
    ] = 0,
) -> None:
    """Train the collector's model on what participants let through, count it on people it has not
    seen, and keep it."""
    with extra("A task"):
        from privet.exchange.owner.task import train

        found = train(data, label, folder, seed)
    score = found.score
    out.print(
        f"{label}: {score.measure} {score.value:.3f} ({score.low:.3f} to {score.high:.3f}, chance {score.chance:.3f}) "
        f"on {found.records['test']} records of other people, by {found.model}.  {folder / 'model.onnx'}",
        markup=False,
    )


def mount(app: typer.Typer) -> None:
    """Add the exchange's verbs to the command line."""
    app.add_typer(campaign_app, name="campaign")
    app.command(epilog="Example:  privet serve --data collector")(serve)
    app.command(
        epilog="Example:  privet share https://example.org/c/0123... photo.jpg --label smiling=yes"
    )(share)
    app.command(epilog="Example:  privet withdraw --campaign https://example.org/c/0123...")(
        withdraw
    )
    app.command(
        epilog="Example:  privet task --data smiles-data/export.parquet --label smiling --out smiles-model"
    )(task)
