"""What a participant keeps: records that wait to be sent, receipts of those that were, and a secret
per campaign. Never a raw record.

A record is written here before it is sent, with its idempotency key and the secret that withdraws
it, so neither a broken connection nor `kill -9` can lose a receipt or send a record twice.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.files import replacing
from privet.exchange.protocol.client import Client, Rejected
from privet.exchange.protocol.seal import write_secret

NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Receipt:
    """What withdraws a record."""

    server: str
    campaign: str
    title: str
    submission: str
    secret: str
    """Whoever has it can withdraw the record; the collector has only its hash."""
    sha256: str
    source: str
    """Which file it was, for its owner."""
    received: int | None = None
    """When the collector stored it, in milliseconds since 1970; None while it waits."""
    release: str = ""
    kind: str = ""
    person: str = ""
    invite: str | None = None


class Outbox:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.waiting, self.receipts = home / "outbox", home / "receipts"
        try:
            for folder in (home, self.waiting, self.receipts, home / "people"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise PrivetError(
                f"Cannot write to {home}: {error.strerror}; set PRIVET_HOME to another folder."
            ) from None

    def person(self, campaign: str) -> str:
        """A secret name of this participant in one campaign: it ties their records there together,
        and to nothing elsewhere."""
        path = self.home / "people" / campaign
        if not path.exists():
            write_secret(path, secrets.token_hex(32))
        return path.read_text(encoding="utf-8").strip()

    def put(self, receipt: Receipt, content: bytes) -> None:
        _write(self.waiting / f"{receipt.submission}.bin", content)
        _write(self.waiting / f"{receipt.submission}.json", json.dumps(asdict(receipt)).encode())

    def queued(self) -> Iterator[tuple[Receipt, bytes]]:
        for path in sorted(self.waiting.glob("*.json")):
            yield _read(path), path.with_suffix(".bin").read_bytes()

    def send(self, receipt: Receipt, content: bytes, client: Client) -> Receipt:
        """Send a record that waits; its receipt is on disk before it leaves the outbox."""
        headers = {
            "content-type": receipt.kind,
            "idempotency-key": receipt.submission,
            "privet-release": receipt.release,
            "privet-withdraw": hashlib.sha256(bytes.fromhex(receipt.secret)).hexdigest(),
            "privet-person": receipt.person,
        }
        if receipt.invite:
            headers["authorization"] = f"Bearer {receipt.invite}"
        try:
            answer = client.ask(
                "POST",
                f"/v1/campaigns/{receipt.campaign}/submissions",
                content=content,
                headers=headers,
            ).json()
        except Rejected:
            self._drop(receipt.submission)
            raise
        if answer["submission"] != receipt.submission or answer["sha256"] != receipt.sha256:
            raise PrivetError("The collector's receipt is for something else than what was sent.")
        given = Receipt(
            **{**asdict(receipt), "received": int(answer["received"]), "invite": None, "person": ""}
        )
        _write(
            self.receipts / f"{receipt.submission}.json",
            json.dumps(asdict(given), indent=1).encode(),
        )
        self._drop(receipt.submission)
        return given

    def kept(self) -> list[Receipt]:
        return sorted(
            (_read(path) for path in self.receipts.glob("*.json")),
            key=lambda receipt: receipt.received or 0,
        )

    def find(self, word: str) -> Receipt:
        """A receipt by its file, its submission, or the beginning of that."""
        path = Path(word)
        if path.suffix == ".json" and path.is_file():
            return _read(path)
        found = (
            [receipt for receipt in self.kept() if receipt.submission.startswith(word)]
            if re.fullmatch(r"[0-9a-f]{4,32}", word)
            else []
        )
        if len(found) != 1:
            raise PrivetError(
                f"There is {'no' if not found else 'more than one'} receipt '{word}': see  privet withdraw --list."
            )
        return found[0]

    def forget(self, receipt: Receipt) -> None:
        (self.receipts / f"{receipt.submission}.json").unlink(missing_ok=True)

    def _drop(self, submission: str) -> None:
        # First what makes it count as waiting.
        (self.waiting / f"{submission}.json").unlink(missing_ok=True)
        (self.waiting / f"{submission}.bin").unlink(missing_ok=True)


def withdraw(receipt: Receipt, client: Client) -> bool:
    """Ask the collector to delete a record; False where it was gone already."""
    try:
        client.ask(
            "DELETE",
            f"/v1/campaigns/{receipt.campaign}/submissions/{receipt.submission}",
            headers={"privet-withdraw": receipt.secret},
        )
    except Rejected as error:
        if error.status in (404, 410):
            return False
        raise
    return True


def _read(path: Path) -> Receipt:
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        receipt = Receipt(**about)
        if not (NAME.fullmatch(receipt.submission) and NAME.fullmatch(receipt.campaign)):
            raise ValueError
    except (OSError, ValueError, TypeError):
        raise PrivetError(f"{path} is not a receipt.") from None
    return receipt


def _write(path: Path, content: bytes) -> None:
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        path.chmod(0o600)
    except OSError as error:
        raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None
