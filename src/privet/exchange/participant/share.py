"""`privet share` and `privet withdraw`: check what a campaign is, run its release here, say what
leaves, send it if its owner agrees, and take it back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.home import home_folder
from privet.exchange.participant import sentences
from privet.exchange.participant.campaign import Campaign, fetch_campaign, is_known_owner
from privet.exchange.participant.outbox import Outbox, Receipt, Sent
from privet.exchange.participant.records import Record, prepare
from privet.exchange.protocol.client import Client, Link
from privet.exchange.protocol.envelope import MEDIA_TYPES


def share(
    link: str,
    files: Sequence[Path],
    labels: Sequence[str] = (),
    *,
    confirm: Callable[[], bool],
    show: Callable[[str], object] = lambda text: None,
    column: str | None = None,
    fingerprint: str | None = None,
    dry_run: bool = False,
    home: Path | None = None,
) -> Sent | None:
    """Take part in a campaign: run its release here, show what leaves, and send only that.

    Parameters:
        link: The campaign's link.
        files: Pictures, folders of pictures, texts, or a parquet or CSV file.
        labels: Answers to what the campaign asks, as `name=value`.
        confirm: Asked after everything was shown; nothing is sent unless it says True.
        show: Gets what a participant should read, before `confirm` is asked.
        column: The column that holds the picture, text or window.
        fingerprint: That the owner's key must have.
        dry_run: Show what would leave, and send nothing.
        home: Where receipts are kept; `privet.core.home.home_folder()` unless another is given.

    Returns:
        What became of the records, or None where nothing was sent.
    """
    home, address = home or home_folder(), Link.parse(link)
    outbox = Outbox(home)
    with Client(address.server) as client:
        campaign = fetch_campaign(address, client, home / "known", fingerprint)
        show(sentences.about(campaign, is_known_owner(campaign, home)))
        records = prepare(campaign, files, labels, column, home)
        show(sentences.leaves(campaign, records))
        if dry_run:
            return None
        if not campaign.open:
            raise PrivetError("The campaign is closed: it takes no more records.")
        return send(campaign, records, outbox, client) if confirm() else None


def send(campaign: Campaign, records: Sequence[Record], outbox: Outbox, client: Client) -> Sent:
    """Put the records into the outbox and send them."""
    person = outbox.person(campaign.link.campaign)
    for record in records:
        receipt = Receipt(
            server=campaign.link.server,
            campaign=campaign.link.campaign,
            title=campaign.manifest.title,
            submission=record.submission,
            secret=secrets.token_hex(32),
            sha256=hashlib.sha256(record.content).hexdigest(),
            source=record.source,
            release=campaign.manifest.release.card,
            kind=MEDIA_TYPES[campaign.manifest.mode],
            person=person,
            invite=campaign.link.invite,
        )
        outbox.put(receipt, record.content)
    return outbox.send_all(lambda server: client, {record.submission for record in records})


def withdraw(
    receipts: Sequence[str] = (),
    *,
    campaign: str | None = None,
    everything: bool = False,
    home: Path | None = None,
    show: Callable[[str], object] = lambda text: None,
) -> dict[Receipt, bool]:
    """Take back what was sent: the collector deletes it at once.

    Parameters:
        receipts: Files of receipts, or the beginnings of their names.
        campaign: Take back everything that was sent to the campaign with this link.
        everything: Take back everything that was ever sent from here.
        home: Where receipts are kept.
        show: Gets a line about each record when it is deleted.

    Returns:
        For each receipt, whether its record was there still.
    """
    outbox = Outbox(home or home_folder())
    chosen = [outbox.find(word) for word in receipts]
    if everything or campaign is not None:
        name = None if campaign is None else Link.parse(campaign).campaign
        chosen += [one for one in outbox.receipts() if name in (None, one.campaign)]
    if not chosen:
        raise PrivetError("Name receipts, --campaign LINK or --all; see them with --list.")
    deleted = {}
    for receipt in chosen:
        with Client(receipt.server) as client:
            deleted[receipt] = receipt.withdraw(client)
        outbox.forget(receipt)
        show(sentences.withdrawn(receipt, deleted[receipt]))
    return deleted
