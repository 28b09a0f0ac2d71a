"""The exchange on the command line: one function per verb, no logic. What a verb needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privet.errors import PrivetError, missing_extra

out = Console(soft_wrap=True, highlight=False)

campaign_app = typer.Typer(no_args_is_help=True, help="Ask people for records, and fetch what they let through.")

Server = Annotated[str, typer.Option("--server", envvar="PRIVET_SERVER", help="The collector's address")]
Operator = Annotated[Path, typer.Option("--token", help="File with the operator's token, which  privet serve  wrote")]
CampaignFolder = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Folder that  privet campaign create  wrote")]


@contextmanager
def _extra(why: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("privet"):
            raise
        raise missing_extra(str(error.name), "exchange", why) from None


def serve(
    folder: Annotated[Path, typer.Option("--data", help="Folder for rows and records")] = Path("privet-collector"),
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is for use with TLS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8300,
    db: Annotated[str | None, typer.Option(help="postgresql+psycopg://USER:PASSWORD@HOST/NAME instead of SQLite in --data")] = None,
    blobs: Annotated[str | None, typer.Option(help="Folder or s3://BUCKET/PREFIX for records instead of --data")] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM)")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM)")] = None,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second from one address or token; 0 for no limit")] = 50.0,
    burst: Annotated[float, typer.Option(min=1, help="How many of them may come at once")] = 200.0,
    body: Annotated[int, typer.Option(min=1024, help="Most bytes of a request")] = 16 * 2**20,
    seconds: Annotated[float, typer.Option(min=0.1, help="Within which a request must have come")] = 30.0,
    reserve: Annotated[int, typer.Option(min=0, help="Bytes of disk to leave free")] = 64 * 2**20,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="Believe the addresses that a proxy in front names")] = False,
    open_metrics: Annotated[bool, typer.Option("--open-metrics", help="Show /metrics to everybody, not to the operator alone")] = False,
    new_token: Annotated[bool, typer.Option("--new-token", help="Revoke the operator's token and make another")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No log line per request")] = False,
) -> None:
    """Run a collector: take records that a release let through, and give them back to who withdraws."""
    with _extra("A collector"):
        from privet.exchange.limits import Limits
        from privet.exchange.serve import serve as run

        limits = Limits(body=body, seconds=seconds, rate=rate, burst=burst)
        run(
            folder, host, port, db=db, blobs=blobs, limits=limits, reserve=reserve, certificate=certificate, key=key,
            behind_proxy=behind_proxy, open_metrics=open_metrics, new_token=new_token, quiet=quiet,
        )  # fmt: skip


@campaign_app.command(
    epilog="Example:  privet campaign create hedge --title 'Smiles' --purpose 'To learn what a smile looks like.' "
    "--who 'Lab X, x@example.org' --label smiling=yes,no --token privet-collector/operator.token --out smiles"
)
def create(
    release: Annotated[Path, typer.Argument(help="Folder of the release")],
    title: Annotated[str, typer.Option(help="What participants see first")],
    purpose: Annotated[str, typer.Option(help="What it is for, in plain words")],
    who: Annotated[str, typer.Option(help="Who runs it, and how to reach them")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the campaign's keys")],
    token: Operator,
    server: Server = "http://127.0.0.1:8300",
    label: Annotated[list[str] | None, typer.Option(help="What to ask: name=value,value; name for a number; name! if needed")] = None,
    retention: Annotated[int, typer.Option(min=1, max=3650, help="Days after which a record is deleted")] = 30,
    per_person: Annotated[int, typer.Option(min=1, help="Most records of one person")] = 10,
    open_: Annotated[bool, typer.Option("--open", help="Not sealed: the collector's server can read and check the records")] = False,
    invited: Annotated[bool, typer.Option("--invited", help="Only for those with an invitation")] = False,
    decoder: Annotated[Path | None, typer.Option(help="ONNX graph that rebuilds records, for participants to see what is left")] = None,
    audit: Annotated[Path | None, typer.Option(help="audit.json of the release, or its folder, for participants to read")] = None,
    identity: Annotated[Path | None, typer.Option(help="The owner's signing key; made if it is not there")] = None,
) -> None:
    """Open a campaign for a release at a collector."""
    with _extra("A campaign"):
        from privet.exchange import campaigns
        from privet.exchange.seal import fingerprint

        wishes = campaigns.Wishes(
            title, purpose, who, label or [], retention, per_person, "open" if open_ else "sealed", "invited" if invited else "anyone"
        )
        made = campaigns.create(
            server, release, folder, wishes, _token(token), identity or campaigns.home() / "owner.key", decoder=decoder, audit=audit
        )
    out.print(f"The campaign's link:  {made.link.text}", markup=False)
    out.print(f"Your key's fingerprint, to tell participants:  {fingerprint(made.manifest.signing_key)}", markup=False)
    if made.manifest.mode == "sealed":
        out.print(f"Only {folder / 'sealing.key'} opens what comes: keep a copy. Nobody can replace it.", markup=False)
    if invited:
        out.print(f"Invite people:  privet campaign invite {folder}", markup=False)


@campaign_app.command("list", epilog="Example:  privet campaign list --token privet-collector/operator.token")
def list_(token: Operator, server: Server = "http://127.0.0.1:8300") -> None:
    """All campaigns of a collector, for its operator."""
    with _extra("A campaign"):
        from privet.exchange import campaigns

        for one in campaigns.listing(server, _token(token)):
            state = "closed" if one["closed"] else "open"
            out.print(f"{one['campaign']}  {state:<6}  {one['mode']}, {one['access']}  {one['title']}", markup=False)


@campaign_app.command(epilog="Example:  privet campaign show smiles")
def show(folder: CampaignFolder) -> None:
    """What has come so far."""
    with _extra("A campaign"):
        from privet.exchange import campaigns

        campaign = campaigns.Folder.load(folder)
        found = campaigns.figures(campaign)
        tokens = campaigns.tokens(campaign)
    out.print(f"{found['title']} ({'closed' if found['closed'] else 'open'}):  {campaign.link.text}", markup=False)
    out.print(f"{found['records']} records of {found['people']} people, {found['bytes'] / 1000:.1f} kB", markup=False)
    for day, many in found["by_day"].items():
        out.print(f"  {day}  {many}", markup=False)
    for reason, many in found["gone"].items():
        out.print(f"{many} gone: {reason}", markup=False)
    invited = [one for one in tokens if one["scope"] == "invite"]
    if invited:
        out.print(f"{len(invited)} invitations, {sum(one['revoked'] is not None for one in invited)} of them revoked", markup=False)


@campaign_app.command(epilog="Example:  privet campaign invite smiles --count 20 --days 14")
def invite(
    folder: CampaignFolder,
    count: Annotated[int, typer.Option(min=1, max=1000)] = 1,
    days: Annotated[int, typer.Option(min=1, max=3650, help="For how long they are valid")] = 30,
) -> None:
    """Make links for people to take part; each is shown once."""
    with _extra("A campaign"):
        from privet.exchange import campaigns

        for link in campaigns.invite(campaigns.Folder.load(folder), count, days):
            out.print(link, markup=False)


@campaign_app.command(epilog="Example:  privet campaign revoke smiles 0123456789abcdef")
def revoke(folder: CampaignFolder, token: Annotated[str, typer.Argument(help="An invitation's link, a token, or a token's name")]) -> None:
    """End an invitation or a token now."""
    with _extra("A campaign"):
        from privet.exchange import campaigns

        campaigns.revoke(campaigns.Folder.load(folder), token)
    out.print("Revoked.")


@campaign_app.command(epilog="Example:  privet campaign close smiles")
def close(folder: CampaignFolder) -> None:
    """Take no more records."""
    with _extra("A campaign"):
        from privet.exchange import campaigns

        campaigns.close(campaigns.Folder.load(folder))
    out.print("Closed. What came stays until it is withdrawn or its time is over.")


@campaign_app.command(epilog="Example:  privet campaign export smiles --out smiles-data")
def export(
    folder: CampaignFolder,
    target: Annotated[Path | None, typer.Option("--out", help="Folder for export.parquet and manifest.json")] = None,
    key: Annotated[Path | None, typer.Option(help="The sealing key, where it is not in the campaign's folder")] = None,
    sealed: Annotated[Path | None, typer.Option(help="Only fetch, sealed as it is, to this file; for a machine without a network")] = None,
    source: Annotated[Path | None, typer.Option("--from", help="Open what --sealed fetched; nothing is asked of the collector")] = None,
) -> None:
    """Fetch what came, open it here, and write a table of released records and labels."""
    with _extra("A campaign"):
        from privet.exchange import campaigns
        from privet.exchange import export as exports

        campaign = campaigns.Folder.load(folder)
        if sealed is not None:
            out.print(f"{exports.download(campaign, sealed)} records, sealed, in {sealed}", markup=False)
            return
        if target is None:
            raise PrivetError("Say where to write the table: --out FOLDER.")
        found = exports.export(campaign, target, key=key, source=source)
    out.print(f"{found.records} records:  {found.table}", markup=False)
    for why, many in found.refused.items():
        out.print(f"{many} not used: {why}", markup=False)
    if found.gone:
        out.print(f"{len(found.gone)} gone since the last export, named in manifest.json: delete them from copies.", markup=False)


def share(
    link: Annotated[str | None, typer.Argument(help="The campaign's link")] = None,
    files: Annotated[list[Path] | None, typer.Argument(help="Pictures, folders of pictures, texts, or a parquet or CSV file")] = None,
    label: Annotated[list[str] | None, typer.Option(help="An answer to what the campaign asks: name=value; repeatable")] = None,
    column: Annotated[str | None, typer.Option(help="The column that holds the picture, text or window")] = None,
    fingerprint: Annotated[str | None, typer.Option(help="Fingerprint that the owner's key must have")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would leave, and send nothing")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Send what waits from before")] = False,
) -> None:
    """Take part in a campaign: run its release here, see what leaves, and send only that."""
    with _extra("Taking part"):
        from privet.exchange import words
        from privet.exchange.campaigns import home
        from privet.exchange.client import Client, Link
        from privet.exchange.outbox import Outbox
        from privet.exchange.share import fetch, flush, is_known, prepare, send

        outbox = Outbox(home())
        if retry:
            out.print(words.sent(flush(outbox, cache(Client)), home()), markup=False)
            return
        if link is None or not files:
            raise PrivetError("Give a campaign's link and files to take part with, or --retry.")
        where = Link.parse(link)
        with Client(where.server) as client:
            campaign = fetch(where, client, home() / "known", fingerprint)
            out.print(words.about(campaign, is_known(campaign, home())), markup=False)
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
    out.print(words.sent(result, home()), markup=False)
    if result.refused or result.waiting:
        raise typer.Exit(1)


def withdraw(
    receipts: Annotated[list[str] | None, typer.Argument(help="Receipts: files, or the beginnings of their names")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything that was ever sent from here")] = False,
    campaign: Annotated[str | None, typer.Option(help="Everything that was sent to the campaign with this link")] = None,
    show_: Annotated[bool, typer.Option("--list", help="Show what was sent, and withdraw nothing")] = False,
) -> None:
    """Take back what was sent: the collector deletes it at once."""
    with _extra("Withdrawing"):
        from privet.exchange import words
        from privet.exchange.campaigns import home
        from privet.exchange.client import Client, Link
        from privet.exchange.outbox import Outbox
        from privet.exchange.outbox import withdraw as take_back

        outbox = Outbox(home())
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
            out.print(f"{one.submission[:12]}  {'deleted' if deleted else 'was gone already'}  {one.source}", markup=False)


def task(
    data: Annotated[Path, typer.Option("--data", help="export.parquet of a campaign")],
    label: Annotated[str, typer.Option(help="The label to learn")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for model.onnx and task.json")],
    seed: Annotated[int, typer.Option(help="The same seed on the same machine gives the same result")] = 0,
) -> None:
    """Train the collector's model on what participants let through, count it on people it has not seen, and keep it."""
    with _extra("A task"):
        from privet.exchange.task import train

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
    app.command(epilog="Example:  privet share https://example.org/c/0123... photo.jpg --label smiling=yes")(share)
    app.command(epilog="Example:  privet withdraw --campaign https://example.org/c/0123...")(withdraw)
    app.command(epilog="Example:  privet task --data smiles-data/export.parquet --label smiling --out smiles-model")(task)


def _token(path: Path) -> str:
    from privet.exchange.seal import read_secret

    return read_secret(path).strip()
