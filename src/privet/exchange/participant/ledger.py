"""A participant's ledger: what was sent where and when, and what is certified at the number of
records sent so far.

A record counts once it may have left: stored, waiting, or taken back since (who had it may have
read it). The same numbers sent again count once. A bound for m records of a person holds for fewer
as well, since who sees m sees those; for more, and for records of two campaigns together, nothing
follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from privet.core.errors import PrivetError
from privet.evidence.figures import Audit
from privet.exchange.participant.campaign import Campaign
from privet.exchange.participant.claims import Claim, Kind
from privet.exchange.participant.outbox import Outbox
from privet.exchange.participant.private_files import write_private
from privet.exchange.participant.receipts import Receipt
from privet.exchange.participant.records import Record
from privet.exchange.protocol.messages import CampaignID

FOLDER = "campaigns"


class Bound(BaseModel):
    """What no adversary who sees so many records of a person is to beat.

    Parameters:
        attribute: The private attribute.
        records: How many records.
        bound: Balanced accuracy.
        blind: Balanced accuracy of guessing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attribute: str
    records: int
    bound: float
    blind: float


class Account(BaseModel):
    """A campaign that something was sent to, as it was then.

    Parameters:
        campaign, server, title, who: Which one it is.
        owner: The owner's public key.
        private: What its release hides.
        bounds: From the audit that its owner attached.
        claim, auditor, key: Who stood for them, and with which key.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    campaign: CampaignID
    server: str
    title: str
    who: str
    owner: str
    private: list[str]
    bounds: list[Bound] = []
    claim: Kind = "owner"
    auditor: str = ""
    key: str = ""

    @staticmethod
    def of(campaign: Campaign) -> Account:
        manifest, claim = campaign.manifest, campaign.claim
        return Account(
            campaign=campaign.link.campaign,
            server=campaign.link.server,
            title=manifest.title,
            who=manifest.who,
            owner=manifest.signing_key,
            private=manifest.private,
            bounds=bounds(campaign.audit, manifest.private),
            claim=claim.kind,
            auditor=claim.name,
            key=claim.key,
        )

    @property
    def says(self) -> Claim:
        return Claim(self.claim, self.auditor, self.key)

    def covering(self, attribute: str, records: int) -> Bound | None:
        """The lowest bound that holds for so many records of a person."""
        holding = [b for b in self.bounds if b.attribute == attribute and b.records >= records]
        return min(holding, key=lambda b: b.bound, default=None)


@dataclass(frozen=True)
class Entry:
    """What was sent to one campaign.

    Parameters:
        account: The campaign.
        receipts: Of what was sent, withdrawn or not.
        waiting: Records in the outbox.
        seen: How many different records may have been seen.
    """

    account: Account
    receipts: tuple[Receipt, ...]
    waiting: int
    seen: int


def bounds(audit: Audit | None, private: Iterable[str]) -> list[Bound]:
    """What an audit says of several records of a person who is known by nothing else; one release
    made of several records is another thing."""
    names = set(private)
    return [
        Bound(attribute=c.attribute, records=c.records, bound=c.bound, blind=c.chance)
        for c in (audit.certificates if audit else ())
        if c.attribute in names
        and c.bound is not None
        and c.releases == 1
        and c.per == "record"
        and c.weighing == "people"
        and not c.given
    ]


def covered(known: Sequence[Bound], private: Iterable[str]) -> int:
    """For how many records of a person there is a bound for every private attribute."""
    most = [max((b.records for b in known if b.attribute == name), default=0) for name in private]
    return min(most, default=0)


def remember(campaign: Campaign, home: Path) -> None:
    """Write down the campaign before anything is sent to it."""
    account = Account.of(campaign)
    path = home / FOLDER / f"{account.campaign}.json"
    write_private(path, account.model_dump_json(indent=1).encode())


def seen_after(campaign: str, outbox: Outbox, records: Sequence[Record]) -> int:
    """How many different records a campaign may have seen once these are sent as well."""
    receipts = [*outbox.receipts(), *(receipt for receipt, _ in outbox.queued())]
    sent = {_name(receipt) for receipt in receipts if _counts(receipt, campaign)}
    return len(sent | {record.numbers for record in records})


def entries(outbox: Outbox) -> list[Entry]:
    """What was sent, campaign by campaign, those of one owner beside each other."""
    receipts, queued = outbox.receipts(), [receipt for receipt, _ in outbox.queued()]
    campaigns = dict.fromkeys(receipt.campaign for receipt in (*receipts, *queued))
    made = [
        Entry(
            _account(outbox.home, name, [*receipts, *queued]),
            tuple(receipt for receipt in receipts if receipt.campaign == name),
            sum(receipt.campaign == name for receipt in queued),
            len({_name(one) for one in (*receipts, *queued) if _counts(one, name)}),
        )
        for name in campaigns
    ]
    owners = list(dict.fromkeys(entry.account.owner for entry in made))
    return sorted(made, key=lambda entry: owners.index(entry.account.owner))


def _counts(receipt: Receipt, campaign: str) -> bool:
    return receipt.campaign == campaign and receipt.state != "refused"


def _name(receipt: Receipt) -> str:
    return receipt.numbers or receipt.submission


def _account(home: Path, campaign: str, receipts: Sequence[Receipt]) -> Account:
    path = home / FOLDER / f"{campaign}.json"
    try:
        return Account.model_validate_json(path.read_bytes())
    except FileNotFoundError:  # sent by an earlier Privet
        one = next(receipt for receipt in receipts if receipt.campaign == campaign)
        return Account(
            campaign=campaign,
            server=one.server,
            title=one.title,
            who="",
            owner=campaign,
            private=[],
        )
    except (OSError, ValidationError):
        raise PrivetError(f"{path} cannot be read.") from None
