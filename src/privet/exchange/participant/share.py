"""`privet share` and `privet withdraw`: check what a campaign is, run its release here, say what
leaves, send it if its owner agrees, and take it back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.home import home_folder
from privet.exchange.participant import owners, sentences
from privet.exchange.participant.campaign import Campaign, fetch_campaign
from privet.exchange.participant.claims import trusted_auditors
from privet.exchange.participant.ledger import Account, covered, remember, seen_after
from privet.exchange.participant.local_tests import local_tests, open_release
from privet.exchange.participant.outbox import Outbox, Sent
from privet.exchange.participant.receipts import Receipt
from privet.exchange.participant.records import Record, prepare
from privet.exchange.protocol.client import Client, Link, Offline
from privet.exchange.protocol.envelope import MEDIA_TYPES

# What a participant agrees to where the campaign has no text of its own.
CONSENT = (
    "I agree that what is shown as leaving, and my answers, are sent to the people named above. I "
    "can take them back."
)


@dataclass(frozen=True)
class Allowed:
    """What a participant allows beside what is usual.

    Parameters:
        new_key: Fingerprint of a key that is to be accepted although its owner's name was used
            with another one.
        beyond: Send more records that belong together than any bound covers.
    """

    new_key: str | None = None
    beyond: bool = False


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
    allowed: Allowed | None = None,
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
        allowed: What is allowed beside what is usual; nothing, unless given.

    Returns:
        What became of the records, or None where nothing was sent.
    """
    home, address, allowed = home or home_folder(), Link.parse(link), allowed or Allowed()
    outbox = Outbox(home)
    with Client(address.server) as client:
        trusted = trusted_auditors(home)
        campaign = fetch_campaign(address, client, home / "known", fingerprint, trusted)
        show(sentences.about(campaign, owners.standing(campaign.manifest, home)))
        if not dry_run:
            owners.accept(campaign.manifest, home, allowed.new_key)
        run = open_release(campaign, home)
        show(local_tests(campaign, run))
        records = prepare(campaign, files, labels, column, home, run, show)
        show(sentences.leaves(campaign, records))
        too_many = several(campaign, records, outbox)
        if too_many:
            show(too_many)
        if dry_run:
            return None
        if not campaign.open:
            raise PrivetError("The campaign is closed: it takes no more records.")
        if too_many and not allowed.beyond:
            raise PrivetError(
                "Nothing was sent: no bound covers so many records. Send fewer, or all of them with"
                "  --beyond-certificate."
            )
        return send(campaign, records, outbox, client) if confirm() else None


def several(campaign: Campaign, records: Sequence[Record], outbox: Outbox) -> str:
    """A sentence where the campaign would have more records of this person that belong together
    than any bound covers; empty where it would not. One record is what every figure is about."""
    account = Account.of(campaign)
    certified = covered(account.bounds, account.private)
    seen = seen_after(account.campaign, outbox, records)
    return "" if seen <= max(certified, 1) else sentences.beyond(len(records), certified, seen)


def send(campaign: Campaign, records: Sequence[Record], outbox: Outbox, client: Client) -> Sent:
    """Put the records into the outbox and send them. From now on the owner's key is a used one."""
    person = outbox.person(campaign.link.campaign)
    owners.keep(campaign.manifest, outbox.home)
    remember(campaign, outbox.home)
    signed = campaign.signed
    for record in records:
        receipt = Receipt(
            server=campaign.link.server,
            campaign=campaign.link.campaign,
            title=campaign.manifest.title,
            submission=record.submission,
            secret=secrets.token_hex(32),
            sha256=hashlib.sha256(record.content).hexdigest(),
            numbers=record.numbers,
            source=record.source,
            release=campaign.manifest.release.card,
            kind=MEDIA_TYPES[campaign.manifest.mode],
            person=person,
            invite=campaign.link.invite,
            manifest=signed.manifest if signed else "",
            signature=signed.signature if signed else "",
            consent=campaign.manifest.consent or CONSENT,
            consent_version=campaign.manifest.consent_version,
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
) -> list[Receipt]:
    """Take back what was sent: the collector deletes it at once. Receipts are kept, and say what
    came of it.

    Parameters:
        receipts: Files of receipts, or the beginnings of their names.
        campaign: Take back everything that was sent to the campaign with this link.
        everything: Take back everything that was ever sent from here.
        home: Where receipts are kept.
        show: Gets a line about each record when it is answered.

    Returns:
        The receipts as they are now, `withdrawn` only where the collector that had stored the
        record says that it is deleted.
    """
    outbox = Outbox(home or home_folder())
    chosen = [outbox.find(word) for word in receipts]
    if everything or campaign is not None:
        name = None if campaign is None else Link.parse(campaign).campaign
        there = [one for one in outbox.receipts() if one.state not in ("withdrawn", "refused")]
        chosen += [one for one in there if name in (None, one.campaign) and one not in chosen]
    elif not chosen:
        raise PrivetError("Name receipts, --campaign LINK or --all; see them with --list.")
    answered = []
    for receipt in chosen:
        try:
            with Client(receipt.server) as client:
                answered.append(outbox.withdraw(receipt, client))
        except Offline as error:
            answered.append(receipt)
            show(f"{receipt.submission[:12]}  NOT deleted: {error}  Receipt kept.")
        else:
            show(sentences.withdrawn(answered[-1]))
    return answered
