"""What a participant keeps: records that wait to be sent, receipts of those that were, and a secret
per campaign. Never a raw record.

A record is written here before it is sent, with its idempotency key and the secret that withdraws
it, so neither a broken connection nor `kill -9` can lose a receipt or send a record twice.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from privet.core.errors import PrivetError
from privet.core.files import replacing
from privet.core.secret_files import write_secret
from privet.exchange.protocol.client import Client, Offline, Rejected
from privet.exchange.protocol.messages import CampaignID, ReceiptAnswer, SubmissionID

# Records on their way at the same time.
AT_ONCE = 8


class Receipt(BaseModel):
    """What withdraws a record, and while it waits, what sends it.

    Parameters:
        server, campaign, title: Where it goes.
        submission: Its name there.
        secret: Whoever has it can withdraw the record; the collector has only its hash.
        sha256: Of the bytes that are sent.
        source: Which file it was, for its owner.
        received: When the collector stored it, in milliseconds since 1970; None while it waits.
        release: SHA-256 of the card of the release that made it.
        kind: Media type of the bytes.
        person: The participant's secret name in this campaign.
        invite: The token of an invitation.
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

    @staticmethod
    def read(path: Path) -> Receipt:
        try:
            return Receipt.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            raise PrivetError(f"{path} is not a receipt.") from None

    def write(self, folder: Path) -> None:
        _write(folder / f"{self.submission}.json", self.model_dump_json(indent=1).encode())

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

    def withdraw(self, client: Client) -> bool:
        """Ask the collector to delete the record; False where it was gone already."""
        path = f"/v1/campaigns/{self.campaign}/submissions/{self.submission}"
        try:
            client.request("DELETE", path, headers={"privet-withdraw": self.secret})
        except Rejected as error:
            if error.status in (404, 410):
                return False
            raise
        return True


@dataclass(frozen=True)
class Sent:
    """What became of records.

    Parameters:
        receipts: Of those that were stored.
        refused: The collector's sentences about those that it does not take.
        waiting: How many are in the outbox still.
        why: Why they wait.
    """

    receipts: list[Receipt]
    refused: list[str]
    waiting: int
    why: str = ""


class Outbox:
    """A participant's folder.

    Parameters:
        home: Made where it is not there, for its owner alone.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.waiting, self.sent, self.people = (
            home / name for name in ("outbox", "receipts", "people")
        )
        try:
            for folder in (home, self.waiting, self.sent, self.people):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise PrivetError(
                f"Cannot write to {home}: {error.strerror}; set PRIVET_HOME to another folder."
            ) from None

    def person(self, campaign: str) -> str:
        """A secret name of this participant in one campaign: it ties their records there together,
        and to nothing elsewhere."""
        path = self.people / campaign
        if not path.exists():
            write_secret(path, secrets.token_hex(32))
        return path.read_text(encoding="utf-8").strip()

    def put(self, receipt: Receipt, content: bytes) -> None:
        _write(self.waiting / f"{receipt.submission}.bin", content)
        receipt.write(self.waiting)

    def queued(self) -> Iterator[tuple[Receipt, bytes]]:
        for path in sorted(self.waiting.glob("*.json")):
            yield Receipt.read(path), path.with_suffix(".bin").read_bytes()

    def send(self, receipt: Receipt, content: bytes, client: Client) -> Receipt:
        """Send a record that waits; its receipt is on disk before it leaves the outbox."""
        try:
            stored = receipt.send(content, client)
            stored.write(self.sent)
        except Rejected:
            self._drop(receipt.submission)
            raise
        self._drop(receipt.submission)
        return stored

    def send_all(
        self, connect: Callable[[str], Client] | None = None, only: set[str] | None = None
    ) -> Sent:
        """Send what waits. Where a collector cannot be reached, the rest stays for the next time.

        Parameters:
            connect: From a server's address to a client.
            only: Names of submissions, where not all shall be sent.
        """
        connect = connect or cache(Client)
        receipts: list[Receipt] = []
        refused: list[str] = []
        offline: list[str] = []

        def one(waiting: tuple[Receipt, bytes]) -> None:
            receipt, content = waiting
            try:
                if not offline:
                    receipts.append(self.send(receipt, content, connect(receipt.server)))
            except Rejected as error:
                refused.append(f"{receipt.source}: {error}")
            except Offline as error:
                offline.append(str(error))

        queue = [pair for pair in self.queued() if only is None or pair[0].submission in only]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, queue))
        waiting = len(queue) - len(receipts) - len(refused)
        return Sent(receipts, refused, waiting, next(iter(offline), ""))

    def receipts(self) -> list[Receipt]:
        """Of what was sent, in that order."""
        receipts = map(Receipt.read, self.sent.glob("*.json"))
        return sorted(receipts, key=lambda receipt: receipt.received or 0)

    def find(self, word: str) -> Receipt:
        """A receipt by its file, its submission, or the beginning of that."""
        path = Path(word)
        if path.suffix == ".json" and path.is_file():
            return Receipt.read(path)
        known = self.receipts() if re.fullmatch(r"[0-9a-f]{4,32}", word) else []
        matching = [receipt for receipt in known if receipt.submission.startswith(word)]
        if len(matching) != 1:
            raise PrivetError(
                f"There is {'more than one' if matching else 'no'} receipt '{word}': "
                "see  privet withdraw --list."
            )
        return matching[0]

    def forget(self, receipt: Receipt) -> None:
        (self.sent / f"{receipt.submission}.json").unlink(missing_ok=True)

    def _drop(self, submission: str) -> None:
        # First what makes it count as waiting.
        for kind in ("json", "bin"):
            (self.waiting / f"{submission}.{kind}").unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        path.chmod(0o600)
    except OSError as error:
        raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None
