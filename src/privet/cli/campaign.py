"""`privet campaign ...`: what an owner types. One function per verb, no logic. What a verb needs is
imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from privet.core.errors import EXTRAS, PrivetError, missing_extra
from privet.core.home import home_folder
from privet.core.terminal import plain_console

out = plain_console()

campaign_app = typer.Typer(
    no_args_is_help=True, help="Ask people for records, and fetch what they let through."
)

Server = Annotated[
    str, typer.Option("--server", envvar="PRIVET_SERVER", help="The collector's address")
]
Operator = Annotated[
    Path, typer.Option("--token", help="File with the operator's token, which  privet serve  wrote")
]
Folder = Annotated[
    Path, typer.Argument(metavar="CAMPAIGN", help="Folder that  privet campaign create  wrote")
]


def show(text: str) -> None:
    """Print text as it is: what others wrote is not markup."""
    out.print(text, markup=False)


@contextmanager
def extra(why: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package == "privet":
            raise
        raise missing_extra(package, EXTRAS.get(package, "exchange"), why) from None


@campaign_app.command(
    epilog=(
        "Example:  privet campaign create hedge --title 'Smiles' "
        "--purpose 'To learn what a smile looks like.' --who 'Lab X, x@example.org' "
        "--label smiling=yes,no --token privet-collector/operator.token --out smiles"
    )
)
def create(
    release: Annotated[Path, typer.Argument(help="Folder of the release")],
    title: Annotated[str, typer.Option(help="What participants see first")],
    purpose: Annotated[str, typer.Option(help="What it is for, in plain words")],
    who: Annotated[str, typer.Option(help="Who runs it, and how to reach them")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the campaign's keys")],
    token: Operator,
    server: Server = "http://127.0.0.1:8300",
    label: Annotated[
        list[str] | None,
        typer.Option(help="What to ask: name=value,value; name for a number; name! if needed"),
    ] = None,
    retention: Annotated[
        int, typer.Option(min=1, max=3650, help="Days after which a record is deleted")
    ] = 30,
    per_person: Annotated[int, typer.Option(min=1, help="Most records of one person")] = 10,
    open_: Annotated[
        bool,
        typer.Option(
            "--open", help="Not sealed: the collector's server can read and check the records"
        ),
    ] = False,
    invited: Annotated[
        bool, typer.Option("--invited", help="Only for those with an invitation")
    ] = False,
    decoder: Annotated[
        Path | None,
        typer.Option(
            help="ONNX graph that rebuilds records, for participants to see what is left; a veil "
            "of pictures has its own"
        ),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(help="audit.json of the release, or its folder, for participants to read"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the audit: attaches its figures, and a report of them without "
            "anybody's records"
        ),
    ] = None,
    identity: Annotated[
        Path | None, typer.Option(help="The owner's signing key; made if it is not there")
    ] = None,
    consent: Annotated[
        Path | None, typer.Option(help="Text file with what participants agree to")
    ] = None,
    consent_version: Annotated[str, typer.Option(help="The version of that text")] = "",
    least_people: Annotated[
        int, typer.Option(min=1, help="Give the owner nothing before so many have taken part")
    ] = 1,
    counts_only: Annotated[
        float | None,
        typer.Option(help="Give the owner only counts with noise, of this epsilon in all"),
    ] = None,
    randomise: Annotated[
        list[str] | None,
        typer.Option(help="Change answers at random before they leave: label=epsilon"),
    ] = None,
) -> None:
    """Open a campaign for a release at a collector."""
    with extra("A campaign"):
        from privet.core.key_text import fingerprint
        from privet.exchange.owner import campaigns

        terms = campaigns.Terms(
            title,
            purpose,
            who,
            label or [],
            retention,
            per_person,
            "open" if open_ else "sealed",
            "invited" if invited else "anyone",
            _text_of(consent),
            consent_version,
            least_people,
            counts_only,
            randomise or [],
        )
        created = campaigns.create(
            server,
            release,
            folder,
            terms,
            token_of(token),
            identity or home_folder() / "owner.key",
            decoder=decoder,
            audit=audit,
            report=report,
        )
    show(f"The campaign's link:  {created.link.text}")
    owner = fingerprint(created.manifest.signing_key)
    show(f"Your key's fingerprint, to tell participants:  {owner}")
    if created.manifest.mode == "sealed":
        show(f"Only {folder / 'sealing.key'} opens what comes: keep a copy. Nobody can replace it.")
    if invited:
        show(f"Invite people:  privet campaign invite {folder}")


@campaign_app.command(
    "decoder",
    epilog=(
        "Example:  privet campaign decoder hedge --data portraits --out decoder.onnx    "
        "then  privet campaign create hedge --decoder decoder.onnx ..."
    ),
)
def decoder_(
    release: Annotated[Path, typer.Argument(help="Folder of a release of pictures")],
    data: Annotated[
        str, typer.Option("--data", help="Pictures to learn from, as for  privet learn")
    ],
    file: Annotated[Path, typer.Option("--out", help="The ONNX file to write")],
    schema: Annotated[
        Path | None, typer.Option("--schema", help="TOML file that says what the columns are")
    ] = None,
    width: Annotated[
        float,
        typer.Option(
            min=0.01, max=4.0, help="Factor on the decoder's layers; less is faster and sees less"
        ),
    ] = 1.0,
    steps: Annotated[int, typer.Option(min=1, help="How long to learn")] = 1500,
    seed: Annotated[
        int, typer.Option(help="On one machine's CPU the same seed gives the same result")
    ] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto")] = "auto",
) -> None:
    """Learn to rebuild pictures from what a release lets through, for participants to see what
    could be rebuilt of theirs."""
    from privet.exchange.owner.decoder import learn_decoder

    rebuilt = learn_decoder(
        release, data, file, schema=schema, width=width, steps=steps, seed=seed, device=device
    )
    figure = next(iter(rebuilt.figures.values()))
    show(
        f"{rebuilt.measure} {figure.value:.2f} on people it has not seen; one picture for everyone "
        f"reaches {figure.chance:.2f}.  {file}"
    )


@campaign_app.command(
    "list", epilog="Example:  privet campaign list --token privet-collector/operator.token"
)
def list_(token: Operator, server: Server = "http://127.0.0.1:8300") -> None:
    """All campaigns of a collector, for its operator."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns

        for one in campaigns.list_campaigns(server, token_of(token)):
            state = "closed" if one.closed else "open"
            show(f"{one.campaign}  {state:<6}  {one.mode}, {one.access}  {one.title}")


@campaign_app.command("show", epilog="Example:  privet campaign show smiles")
def show_(folder: Folder) -> None:
    """What has come so far."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns

        campaign = campaigns.CampaignFolder.load(folder)
        figures = campaigns.figures(campaign)
        invited = [one for one in campaigns.tokens(campaign) if one.scope == "invite"]
    show(f"{figures.title} ({'closed' if figures.closed else 'open'}):  {campaign.link.text}")
    size = f"{figures.bytes / 1000:.1f} kB"
    show(figures.withheld or f"{figures.records} records of {figures.people} people, {size}")
    for day, many in figures.by_day.items():
        show(f"  {day}  {many}")
    for reason, many in figures.gone.items():
        show(f"{many} gone: {reason}")
    if figures.lost:
        show(f"{figures.lost} lost by the collector: its operator can run  privet collector verify")
    if invited:
        revoked = sum(one.revoked is not None for one in invited)
        show(f"{len(invited)} invitations, {revoked} of them revoked")


@campaign_app.command(epilog="Example:  privet campaign invite smiles --count 20 --days 14")
def invite(
    folder: Folder,
    count: Annotated[int, typer.Option(min=1, max=1000)] = 1,
    days: Annotated[int, typer.Option(min=1, max=3650, help="For how long they are valid")] = 30,
) -> None:
    """Make links for people to take part; each is shown once."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns

        for link in campaigns.invite(campaigns.CampaignFolder.load(folder), count, days):
            show(link)


@campaign_app.command(epilog="Example:  privet campaign revoke smiles 0123456789abcdef")
def revoke(
    folder: Folder,
    token: Annotated[str, typer.Argument(help="An invitation's link, a token, or a token's name")],
) -> None:
    """End an invitation or a token now."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns

        campaigns.revoke(campaigns.CampaignFolder.load(folder), token)
    show("Revoked.")


@campaign_app.command(epilog="Example:  privet campaign close smiles")
def close(folder: Folder) -> None:
    """Take no more records."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns

        campaigns.close(campaigns.CampaignFolder.load(folder))
    show("Closed. What came stays until it is withdrawn or its time is over.")


@campaign_app.command(epilog="Example:  privet campaign export smiles --out smiles-data")
def export(
    folder: Folder,
    target: Annotated[
        Path | None, typer.Option("--out", help="Folder for export.parquet and manifest.json")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The sealing key, where it is not in the campaign's folder")
    ] = None,
    sealed: Annotated[
        Path | None,
        typer.Option(
            help="Only fetch, sealed as it is, to this file; for a machine without a network"
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Open what --sealed fetched; nothing is asked of the collector"
        ),
    ] = None,
) -> None:
    """Fetch what came, open it here, and write a table of released records and labels."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns
        from privet.exchange.owner import export as exports

        campaign = campaigns.CampaignFolder.load(folder)
        if sealed is not None:
            show(f"{exports.download(campaign, sealed)} records, sealed, in {sealed}")
            return
        if target is None:
            raise PrivetError("Say where to write the table: --out FOLDER.")
        exported = exports.export(campaign, target, key=key, source=source)
    show(f"{exported.records} records:  {exported.table}")
    for why, many in exported.refused.items():
        show(f"{many} not used: {why}")
    if exported.gone:
        show(
            f"{exported.gone} gone since the last export, named in manifest.json: delete them "
            "from copies."
        )


def _text_of(path: Path | None) -> str:
    try:
        return "" if path is None else path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise PrivetError(f"The text {path} cannot be read.") from None


def token_of(path: Path) -> str:
    from privet.exchange.protocol.seal import read_secret

    return read_secret(path).strip()
