"""What a participant keeps: records that wait to be sent, receipts of those that were, and a secret
per campaign. Never a raw record.

A record is written here before it is sent, with its idempotency key and the secret that withdraws
it, so neither a broken connection nor `kill -9` can lose a receipt or send a record twice. A
receipt is never removed: what became of the record is written into it. Its secret is replaced by
its hash once the collector that stored the record has said that it is deleted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.secret_files import write_secret
from privet.exchange.participant.private_files import write_private
from privet.exchange.participant.receipts import Receipt
from privet.exchange.protocol.client import Client, Offline, Rejected

__all__ = ["Outbox", "Receipt", "Sent"]

# Records on their way at the same time.
AT_ONCE = 8


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
        write_private(self.waiting / f"{receipt.submission}.bin", content)
        receipt.write(self.waiting)

    def queued(self) -> Iterator[tuple[Receipt, bytes]]:
        for path in sorted(self.waiting.glob("*.json")):
            yield Receipt.read(path), path.with_suffix(".bin").read_bytes()

    def send(
        self, receipt: Receipt, content: bytes, client: Client, is_first: bool = True
    ) -> Receipt:
        """Send a record that waits; its receipt is on disk before it leaves the outbox.

        Parameters:
            receipt, content: Of the record.
            client: Connected to its collector.
            is_first: Whether it was never tried before. A refusal then says that the record is not
                stored; later, an answer that was lost may have said that it is.
        """
        try:
            stored = receipt.send(content, client)
        except Rejected:
            receipt.ended("refused" if is_first else "unsure").write(self.sent)
            self._drop(receipt.submission)
            raise
        stored.write(self.sent)
        self._drop(receipt.submission)
        return stored

    def send_all(
        self, connect: Callable[[str], Client] | None = None, only: set[str] | None = None
    ) -> Sent:
        """Send what waits. Where a collector cannot be reached, the rest stays for the next time.

        Parameters:
            connect: From a server's address to a client.
            only: Names of submissions that are sent for the first time; without, all that wait.
        """
        connect = connect or cache(Client)
        receipts: list[Receipt] = []
        refused: list[str] = []
        offline: list[str] = []

        def one(waiting: tuple[Receipt, bytes]) -> None:
            receipt, content = waiting
            try:
                if not offline:
                    client = connect(receipt.server)
                    receipts.append(self.send(receipt, content, client, only is not None))
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
        """Of everything that was sent, in that order, withdrawn or not."""
        receipts = map(Receipt.read, self.sent.glob("*.json"))
        return sorted(receipts, key=lambda receipt: (receipt.received or 0, receipt.submission))

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

    def withdraw(self, receipt: Receipt, client: Client) -> Receipt:
        """Ask for a record to be deleted; the receipt says what came of it, and is on disk before
        and after."""
        asked = receipt.asked()
        asked.write(self.sent)
        answered = asked.withdraw(client)
        answered.write(self.sent)
        return answered

    def _drop(self, submission: str) -> None:
        # First what makes it count as waiting.
        for kind in ("json", "bin"):
            (self.waiting / f"{submission}.{kind}").unlink(missing_ok=True)
