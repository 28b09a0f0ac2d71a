"""A receipt: what withdraws a record, what was agreed to, and what became of it."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from privet.core.errors import PrivetError
from privet.exchange.participant.private_files import write_private
from privet.exchange.protocol.client import Client, Rejected
from privet.exchange.protocol.messages import (
    WITHDRAWN_HEADER,
    CampaignID,
    ReceiptAnswer,
    SubmissionID,
)

# stored: at the collector, as far as is known. withdrawn: the collector that stored it says it is
# deleted. gone: it, or something at its address, says so without proof. refused: never stored.
# unsure: refused after an answer was lost.
State = Literal["stored", "withdrawn", "gone", "refused", "unsure"]


class Receipt(BaseModel):
    """What withdraws a record, and while it waits, what sends it.

    Parameters:
        server, campaign, title: Where it goes.
        submission: Its name there.
        secret: Whoever has it can withdraw the record; the collector has only its hash. Empty once
            the record is withdrawn.
        secret_sha256: Its hash, which stays.
        sha256: Of the bytes that are sent.
        numbers: SHA-256 of the released numbers: the same record again is the same numbers.
        source: Which file it was, for its owner.
        received: When the collector stored it, in milliseconds since 1970; None while it waits.
        release: SHA-256 of the card of the release that made it.
        kind: Media type of the bytes.
        person: The participant's secret name in this campaign.
        invite: The token of an invitation.
        state: What became of the record.
        asked_back: When it was first asked to be deleted.
        manifest, signature: What the campaign's owner had signed when it was sent.
        consent, consent_version: What the participant agreed to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    campaign: CampaignID
    title: str
    submission: SubmissionID
    secret: str
    sha256: str
    source: str
    received: int | None = None
    release: str = ""
    kind: str = ""
    person: str = ""
    invite: str | None = None
    secret_sha256: str = ""
    numbers: str = ""
    state: State = "stored"
    asked_back: int | None = None
    manifest: str = ""
    signature: str = ""
    consent: str = ""
    consent_version: str = ""

    @staticmethod
    def read(path: Path) -> Receipt:
        try:
            return Receipt.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            raise PrivetError(f"{path} is not a receipt.") from None

    def write(self, folder: Path) -> None:
        path = folder / f"{self.submission}.json"
        write_private(path, self.model_dump_json(indent=1).encode())

    def send(self, content: bytes, client: Client) -> Receipt:
        """Send the record; returns the receipt to keep."""
        headers = {
            "content-type": self.kind,
            "idempotency-key": self.submission,
            "privet-release": self.release,
            "privet-withdraw": hashlib.sha256(bytes.fromhex(self.secret)).hexdigest(),
            "privet-person": self.person,
            **({"authorization": f"Bearer {self.invite}"} if self.invite else {}),
        }
        path = f"/v1/campaigns/{self.campaign}/submissions"
        stored = client.ask(ReceiptAnswer, "POST", path, content=content, headers=headers)
        if stored.submission != self.submission or stored.sha256 != self.sha256:
            raise PrivetError("The collector's receipt is for something else than what was sent.")
        update = {"received": stored.received, "invite": None, "person": ""}
        return self.model_copy(update=update)

    def asked(self) -> Receipt:
        """The receipt with the time of the first request to delete the record."""
        if self.state == "withdrawn" or not self.secret:
            raise PrivetError(f"{self.submission[:12]} was withdrawn before.")
        now = self.asked_back or int(time.time() * 1000)
        return self.model_copy(update={"asked_back": now})

    def ended(self, state: State) -> Receipt:
        """The receipt of a record that is not kept by the collector, or said not to be."""
        update: dict[str, object] = {"state": state, "invite": None, "person": ""}
        if state == "withdrawn":
            hashed = hashlib.sha256(bytes.fromhex(self.secret)).hexdigest()
            update |= {"secret": "", "secret_sha256": hashed}
        return self.model_copy(update=update)

    def withdraw(self, client: Client) -> Receipt:
        """Ask the collector to delete the record; returns the receipt to keep.

        Only who stored the record knows the hash of its bytes, which the request does not hold: an
        answer with it is the collector's. Anything else may come from a wrong or an empty server,
        and the receipt stays able to withdraw.
        """
        path = f"/v1/campaigns/{self.campaign}/submissions/{self.submission}"
        try:
            answer = client.request("DELETE", path, headers={"privet-withdraw": self.secret})
        except Rejected as error:
            if error.status == 404:
                return self
            if error.status == 410:
                return self.ended("gone")
            raise
        # Without it the answer is of an earlier Privet, or of something that is no collector.
        proof = answer.headers.get(WITHDRAWN_HEADER, "")
        return self.ended("withdrawn" if proof == self.sha256 else "gone")
