"""The exchange on the command line: one function per verb, no logic. What a verb needs is imported
when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli import governance
from privet.cli.campaign import campaign_app, extra, show
from privet.cli.collector import collector_app
from privet.core.errors import PrivetError
from privet.core.home import home_folder


def serve(
    folder: Annotated[Path, typer.Option("--data", help="Folder for rows and records")] = Path(
        "privet-collector"
    ),
    host: Annotated[
        str, typer.Option(help="Address to listen on; another than this machine's needs TLS")
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
    address_bytes: Annotated[
        int, typer.Option(min=0, help="Most bytes an hour from one address; 0 for no limit")
    ] = 4 * 2**30,
    campaign_records: Annotated[
        int, typer.Option(min=0, help="Most records of one campaign; 0 for no limit")
    ] = 10_000_000,
    campaign_bytes: Annotated[
        int, typer.Option(min=0, help="Most bytes of one campaign; 0 for no limit")
    ] = 2**40,
    connections: Annotated[
        int, typer.Option(min=16, help="Most connections; then the longest silent one is closed")
    ] = 12_000,
    behind_proxy: Annotated[
        int,
        typer.Option(
            min=0, help="How many proxies are in front: their entries of X-Forwarded-For count"
        ),
    ] = 0,
    insecure_public: Annotated[
        bool,
        typer.Option("--insecure-public", help="Listen to other machines without TLS or a proxy"),
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
    issuer: Annotated[
        str | None, typer.Option(help="OpenID Connect: whose ID tokens owners may sign in with")
    ] = None,
    audience: Annotated[
        str | None, typer.Option(help="The name by which the issuer knows this collector")
    ] = None,
) -> None:
    """Run a collector: take records that a release let through, and give them back to who
    withdraws."""
    with extra("A collector"):
        from privet.exchange.collector.limits import Limits
        from privet.exchange.collector.serve import Address
        from privet.exchange.collector.serve import serve as run
        from privet.exchange.collector.sign_in import SignIn

        if bool(issuer) != bool(audience):
            raise PrivetError("Signing in elsewhere takes both --issuer and --audience.")
        run(
            folder,
            Address(host, port, certificate, key, behind_proxy, insecure_public),
            db=db,
            blobs=blobs,
            limits=Limits(
                body=body,
                seconds=seconds,
                rate=rate,
                burst=burst,
                reserve=reserve,
                address_bytes=address_bytes,
                campaign_records=campaign_records,
                campaign_bytes=campaign_bytes,
                connections=connections,
            ),
            open_metrics=open_metrics,
            new_token=new_token,
            quiet=quiet,
            sign_in=SignIn(issuer, audience) if issuer and audience else None,
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
    accept_new_key: Annotated[
        str | None,
        typer.Option(help="Fingerprint of a new key of an owner whose name you know; ask them"),
    ] = None,
    beyond_certificate: Annotated[
        bool,
        typer.Option(
            "--beyond-certificate",
            help="Send more records that belong together than a bound covers; --yes does not",
        ),
    ] = False,
) -> None:
    """Take part in a campaign: run its release here, see what leaves, and send only that."""
    with extra("Taking part"):
        from privet.exchange.participant import sentences
        from privet.exchange.participant.outbox import Outbox, Sent
        from privet.exchange.participant.share import Allowed
        from privet.exchange.participant.share import share as run

        sent: Sent | None
        if retry:
            sent = Outbox(home_folder()).send_all()
        elif link is None or not files:
            raise PrivetError("Give a campaign's link and files to take part with, or --retry.")
        else:
            sent = run(
                link,
                files,
                label or [],
                confirm=lambda: yes or typer.confirm("Send this?"),
                show=show,
                column=column,
                fingerprint=fingerprint,
                dry_run=dry_run,
                allowed=Allowed(accept_new_key, beyond_certificate),
            )
        show(sentences.sent(sent, home_folder()))
    if sent is not None and not retry and (sent.refused or sent.waiting):
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
    """Take back what was sent: the collector deletes it at once. Receipts are kept."""
    with extra("Withdrawing"):
        from privet.exchange.participant import sentences
        from privet.exchange.participant.outbox import Outbox
        from privet.exchange.participant.share import withdraw as run

        if show_:
            for one in Outbox(home_folder()).receipts():
                if one.state not in ("withdrawn", "refused"):
                    show(sentences.receipt(one))
            return
        answered = run(receipts or [], campaign=campaign, everything=all_, show=show)
        if not answered:
            show("Nothing is there to withdraw.")
    if any(one.state in ("stored", "unsure") for one in answered):
        raise typer.Exit(1)


def ledger() -> None:
    """What you sent where and when, and what is certified at that number of records."""
    with extra("The ledger"):
        from privet.exchange.participant.ledger import entries
        from privet.exchange.participant.ledger_lines import ledger as lines
        from privet.exchange.participant.outbox import Outbox

        show(lines(entries(Outbox(home_folder()))))


def trust(
    fingerprint: Annotated[
        str | None, typer.Argument(help="Fingerprint of an auditor's key, as the auditor says it")
    ] = None,
    name: Annotated[str, typer.Option(help="What you call the auditor")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Trust the key no longer")] = False,
) -> None:
    """Trust an auditor's key: what it signed about a release counts as checked. Without a
    fingerprint, list the keys."""
    with extra("Trusting an auditor"):
        from privet.core.terminal import escaped
        from privet.exchange.participant.claims import trust as keep
        from privet.exchange.participant.claims import trusted_auditors

        if fingerprint is None:
            for key, who in trusted_auditors(home_folder()).items():
                show(f"{key}  {escaped(who)}")
            return
        if remove == bool(name.strip()):
            raise PrivetError("Say what you call the auditor with --name, or --remove.")
        key = keep(fingerprint, "" if remove else name, home_folder())
    show(f"{key} is {'not trusted any more' if remove else f'trusted as {escaped(name)}'}.")


def task(
    data: Annotated[
        Path,
        typer.Option(
            "--data", help="export.parquet of a campaign, or what privet apply --keep LABEL wrote"
        ),
    ],
    label: Annotated[str, typer.Option(help="The label to learn")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for model.onnx and task.json")],
    seed: Annotated[
        int, typer.Option(help="On one machine's CPU the same seed gives the same result")
    ] = 0,
) -> None:
    """Train the collector's model on what participants let through, count it on people it has not
    seen, and keep it."""
    with extra("A task"):
        from privet.exchange.owner.task import train_task

        trained = train_task(data, label, folder, seed)
    score = trained.score
    show(
        f"{label}: {score.measure} {score.value:.3f} ({score.low:.3f} to {score.high:.3f}, chance "
        f"{score.chance:.3f}) on {trained.records['test']} records of other people, by "
        f"{trained.model}.  {folder / 'model.onnx'}"
    )


def mount(app: typer.Typer) -> None:
    """Add the exchange's verbs to the command line."""
    governance.mount(campaign_app)
    app.add_typer(campaign_app, name="campaign")
    app.add_typer(collector_app, name="collector")
    app.command(epilog="Example:  privet serve --data collector")(serve)
    app.command(
        epilog="Example:  privet share https://example.org/c/0123... photo.jpg --label smiling=yes"
    )(share)
    app.command(epilog="Example:  privet withdraw --campaign https://example.org/c/0123...")(
        withdraw
    )
    app.command(epilog="Example:  privet ledger")(ledger)
    app.command(
        epilog="Example:  privet trust '0123 4567 89ab cdef 0123 4567 89ab cdef' --name 'Ada L.'"
    )(trust)
    app.command(
        epilog=(
            "Example:  privet task --data smiles-data/export.parquet --label smiling "
            "--out smiles-model"
        )
    )(task)
