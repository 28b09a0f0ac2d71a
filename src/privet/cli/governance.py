"""`privet campaign rotate | reissue | auditor | allow | log | withdrawals | erase | count`: how a
campaign is governed. One function per verb, no logic."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.campaign import Folder, extra, show
from privet.core.errors import PrivetError
from privet.core.home import home_folder

Identity = Annotated[
    Path | None, typer.Option(help="The owner's signing key, where it is not the usual one")
]


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at / 1000))


def rotate(folder: Folder) -> None:
    """Replace the owner's token; the old one ends."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        governance.rotate(campaigns.CampaignFolder.load(folder))
    show(f"{folder / 'owner.token'} is new; the old token is no longer valid.")


def reissue(folder: Folder, identity: Identity = None) -> None:
    """Get another owner's token with the key that signed the campaign; all others end."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        key = identity or home_folder() / "owner.key"
        governance.reissue(campaigns.CampaignFolder.load(folder), key)
    show(f"{folder / 'owner.token'} is new; every other token of the owner's has ended.")


def auditor(
    folder: Folder,
    days: Annotated[int, typer.Option(min=1, max=3650, help="For how long it is valid")] = 30,
) -> None:
    """Make a token that may read counts, the log and what is gone, but no records; shown once."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        show(governance.auditor(campaigns.CampaignFolder.load(folder), days))


def allow(
    folder: Folder,
    subject: Annotated[str, typer.Argument(help="Their name at the issuer: `sub` of their tokens")],
    role: Annotated[str, typer.Option(help="owner or auditor")] = "owner",
    remove: Annotated[bool, typer.Option("--remove", help="Take it back")] = False,
) -> None:
    """Let somebody who signs in elsewhere (OpenID Connect) act for the campaign."""
    if role not in ("owner", "auditor"):
        raise PrivetError("--role takes owner or auditor.")
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        campaign = campaigns.CampaignFolder.load(folder)
        if remove:
            governance.disallow(campaign, subject)
        else:
            governance.allow(campaign, subject, role)
    show(f"{subject} may {'no longer act' if remove else f'act as {role}'} for this campaign.")


def log(folder: Folder) -> None:
    """Who did what with the campaign: a chain of hashes, checked here."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        entries = governance.deeds(campaigns.CampaignFolder.load(folder))
    for deed in entries:
        about = ", ".join(f"{name} {value}" for name, value in deed.about.items())
        at = time.strftime("%Y-%m-%d %H:%M", time.gmtime(deed.at / 1000))
        show(f"{deed.place:>5}  {at}  {deed.who}  {deed.what}{about and f'  ({about})'}")
    show(f"The chain is whole. Its last hash:  {entries[-1].hash if entries else 'none'}")


def withdrawals(
    folder: Folder,
    file: Annotated[Path | None, typer.Option("--out", help="CSV file to write")] = None,
) -> None:
    """Every record that ever left the campaign: delete them from all copies."""
    with extra("A campaign"):
        from privet.core.files import replacing
        from privet.exchange.owner import campaigns, governance

        gone = governance.withdrawals(campaigns.CampaignFolder.load(folder))
    if file is None:
        for one in gone:
            show(f"{one.id}  {_day(one.at)}  {one.reason}")
    else:
        with replacing(file) as temporary, temporary.open("w", newline="") as lines:
            rows = csv.writer(lines)
            rows.writerow(["submission", "day", "reason"])
            rows.writerows([one.id, _day(one.at), one.reason] for one in gone)
    show(f"{len(gone)} records have left the campaign{f':  {file}' if file else '.'}")


def erase(
    folder: Folder,
    title: Annotated[str, typer.Option(help="The campaign's title, so that it is the right one")],
) -> None:
    """Delete every record at the collector and end the campaign. Its log stays."""
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        many = governance.erase(campaigns.CampaignFolder.load(folder), title)
    show(f"Erased: {many} records at the collector. Delete your exports too.")


def count(
    folder: Folder,
    label: Annotated[str, typer.Option(help="The question whose answers are counted")],
    epsilon: Annotated[
        float | None, typer.Option(min=0.01, max=100, help="How private: less is more private")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Count an export here instead of asking the collector")
    ] = None,
) -> None:
    """Count people by their answer, with noise that hides each of them.

    Of a campaign that gives counts only, the collector counts. Of an export, this machine does;
    where answers were changed at random on their way, the true shares are estimated.
    """
    with extra("A campaign"):
        from privet.exchange.owner import campaigns, governance

        campaign = campaigns.CampaignFolder.load(folder)
        if data is not None and epsilon is None:
            for one in governance.estimate(campaign, data, label):
                span = f"{100 * one.low:.1f} to {100 * one.high:.1f}"
                show(f"{one.value}: {100 * one.share:.1f} % ({span}), told by {one.told}")
            return
        if epsilon is None:
            raise PrivetError("Say how private the counts shall be, for example --epsilon 0.5.")
        answer = (
            governance.count(campaign, label, epsilon)
            if data is None
            else governance.count_export(data, label, epsilon)
        )
    for value, many in answer.counts.items():
        show(f"{value}: {many} (± {answer.half_width}, with 95 % confidence)")
    show(f"Everybody is counted once; private with epsilon {answer.epsilon:g}.")


def mount(app: typer.Typer) -> None:
    """Add the verbs to `privet campaign`."""
    app.command(epilog="Example:  privet campaign rotate smiles")(rotate)
    app.command(epilog="Example:  privet campaign reissue smiles")(reissue)
    app.command(epilog="Example:  privet campaign auditor smiles --days 30")(auditor)
    app.command(epilog="Example:  privet campaign allow smiles anna@example.org")(allow)
    app.command(epilog="Example:  privet campaign log smiles")(log)
    app.command(epilog="Example:  privet campaign withdrawals smiles --out gone.csv")(withdrawals)
    app.command(epilog="Example:  privet campaign erase smiles --title Smiles")(erase)
    app.command(
        epilog="Example:  privet campaign count smiles --label smiling --epsilon 0.5    "
        "(of an export: --data smiles-data/export.parquet)"
    )(count)
