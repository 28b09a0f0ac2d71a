"""The participant's half: check what a campaign is, run its release here, say what leaves, and send
it if its owner agrees.

Nothing is believed because a server says so: the link pins the manifest, the manifest its release
and its owner's key, and what does not fit is refused before a file is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.cell_text import class_text
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema
from privet.data.stream import Rows, stream_file, stream_pictures
from privet.exchange.participant.metadata import metadata
from privet.exchange.participant.outbox import Outbox, Receipt
from privet.exchange.protocol import manifest as manifests
from privet.exchange.protocol.checks import check_envelope
from privet.exchange.protocol.client import Client, Link, Offline, Rejected
from privet.exchange.protocol.envelope import MEDIA_TYPES, Envelope, Labels
from privet.exchange.protocol.manifest import Manifest
from privet.exchange.protocol.seal import fingerprint, seal
from privet.release.apply import PICTURES, expand
from privet.release.runtime import Runnable, session

BATCH = 64
AT_ONCE = 8
"""Records on their way at the same time."""
Batch = tuple[Array, pd.DataFrame, list[str]]


@dataclass(frozen=True)
class Campaign:
    """A campaign whose manifest, release and owner's key fit together."""

    link: Link
    manifest: Manifest
    card: dict[str, Any]
    graph: bytes
    open: bool

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.manifest.signing_key)


@dataclass(frozen=True, eq=False)
class Record:
    """One record, ready to leave: what is in it, and the bytes that would be sent."""

    source: str
    z: Array
    labels: Labels
    submission: str
    content: bytes
    stays: dict[str, str] = field(default_factory=dict)
    """What the raw file says beside the picture, which does not leave."""


@dataclass(frozen=True)
class Sent:
    receipts: list[Receipt]
    refused: list[str]
    """The collector's sentences."""
    waiting: int
    """Records that are in the outbox still."""
    why: str = ""


def fetch(
    link: Link, client: Client, known: Path | None = None, pinned: str | None = None
) -> Campaign:
    """The campaign at the end of a link, checked. `pinned` is the fingerprint that its owner's key
    must have.

    What was fetched before is kept in the folder `known`, for when there is no network: the link
    says whether it is still the same.
    """
    given = _signed(link, client, None if known is None else known / f"{link.campaign}.json")
    try:
        text, signature, is_open = (
            str(given["manifest"]),
            str(given["signature"]),
            bool(given["open"]),
        )
    except (KeyError, TypeError):
        raise PrivetError("The collector did not send a campaign.") from None
    manifest = manifests.read(text, signature, link.campaign)
    if pinned is not None and _bare(pinned) != _bare(fingerprint(manifest.signing_key)):
        raise PrivetError(
            f"The owner's key is {fingerprint(manifest.signing_key)}, not the one you expect. Do not take part."
        )
    card_bytes, graph = (
        _part(client, sha256, known) for sha256 in (manifest.release.card, manifest.release.graph)
    )
    try:
        card = json.loads(card_bytes)
        Runnable.from_card(card)
    except (ValueError, KeyError, TypeError):
        raise PrivetError("The card of the campaign's release cannot be read.") from None
    manifests.check_card(manifest, card)
    return Campaign(link, manifest, card, graph, is_open)


def is_known(campaign: Campaign, home: Path) -> bool:
    """Whether this owner's key was seen before; from now on it was."""
    path = home / "owners.json"
    try:
        seen = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        seen = {}
    before = campaign.manifest.signing_key in seen
    if not before:
        seen[campaign.manifest.signing_key] = campaign.manifest.who
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return before


def prepare(
    campaign: Campaign, files: Sequence[Path], labels: Sequence[str] = (), column: str | None = None
) -> list[Record]:
    """Run the release on every record of the files, with noise from the operating system, and pack
    what it gives."""
    manifest, release = campaign.manifest, Runnable.from_card(campaign.card)
    for_all = _answers(manifest, labels)
    try:
        run = session(campaign.graph)
    except PrivetError:
        raise
    except Exception:  # whatever the runtime says about a file that is no graph
        raise PrivetError("The graph of the campaign's release cannot be run.") from None
    records: list[Record] = []
    for encoded, beside, sources in _read(release.schema, files, manifest, column):
        z, x = release.release(run, encoded)
        for k, source in enumerate(sources):
            own = z[k, : int((x[k] != PAD).sum())] if None in manifest.expect.shape else z[k]
            records.append(
                _pack(campaign, own, {**for_all, **_labels_of(manifest, beside, k)}, source)
            )
    if not records:
        raise PrivetError("There are no records in these files.")
    if len(records) > manifest.records_per_person:
        raise PrivetError(
            f"The campaign takes {manifest.records_per_person} records from one person, and these are {len(records)}."
        )
    return records


def send(campaign: Campaign, records: Sequence[Record], outbox: Outbox, client: Client) -> Sent:
    """Put the records into the outbox and send them."""
    person = outbox.person(campaign.link.campaign)
    for record in records:
        receipt = Receipt(
            campaign.link.server,
            campaign.link.campaign,
            campaign.manifest.title,
            record.submission,
            secrets.token_hex(32),
            hashlib.sha256(record.content).hexdigest(),
            record.source,
            None,
            campaign.manifest.release.card,
            MEDIA_TYPES[campaign.manifest.mode],
            person,
            campaign.link.invite,
        )
        outbox.put(receipt, record.content)
    return flush(outbox, lambda server: client, only={record.submission for record in records})


def flush(outbox: Outbox, client: Callable[[str], Client], only: set[str] | None = None) -> Sent:
    """Send what waits. Where a collector cannot be reached, the rest stays for the next time."""
    receipts: list[Receipt] = []
    refused: list[str] = []
    offline: list[str] = []

    def one(waiting: tuple[Receipt, bytes]) -> None:
        if offline:
            return
        receipt, content = waiting
        try:
            receipts.append(outbox.send(receipt, content, client(receipt.server)))
        except Rejected as error:
            refused.append(f"{receipt.source}: {error}")
        except Offline as error:
            offline.append(str(error))

    queue = [
        waiting for waiting in outbox.queued() if only is None or waiting[0].submission in only
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, queue))
    return Sent(
        receipts, refused, len(queue) - len(receipts) - len(refused), next(iter(offline), "")
    )


def _signed(link: Link, client: Client, kept: Path | None) -> Any:
    try:
        content = client.ask("GET", f"/v1/campaigns/{link.campaign}").content
    except Offline:
        if kept is None or not kept.is_file():
            raise
        content = kept.read_bytes()
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        raise PrivetError("The collector did not send a campaign.") from None
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept.write_bytes(content)
    return given


def _part(client: Client, sha256: str, known: Path | None) -> bytes:
    """A part of a release, from the last time or from the collector, and in both cases the one that
    the manifest names."""
    kept = None if known is None else known / sha256
    if kept is not None and kept.is_file():
        content = kept.read_bytes()
        if hashlib.sha256(content).hexdigest() == sha256:
            return content
    content = client.ask("GET", f"/v1/parts/{sha256}").content
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PrivetError(
            "A part of the release is not the one that the campaign's owner signed. Do not take part."
        )
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    return content


def _pack(campaign: Campaign, z: Array, labels: Labels, source: str) -> Record:
    manifest, submission = campaign.manifest, secrets.token_hex(16)
    envelope = Envelope(campaign.link.campaign, manifest.release.card, submission, labels, z)
    check_envelope(manifest, campaign.link.campaign, submission, envelope)
    content = envelope.pack(manifest.expect)
    if manifest.sealing_key is not None:
        content = seal(content, manifest.sealing_key)
    path = Path(source)
    stays = metadata(path) if path.suffix.lower() in PICTURES and path.is_file() else {}
    return Record(source, z, labels, submission, content, stays)


def _read(
    schema: Schema, files: Sequence[Path], manifest: Manifest, column: str | None
) -> Iterator[Batch]:
    """Batches of encoded records, the labels beside them, and where each is from."""
    paths = [path for file in files for path in expand(file)]
    if pictures := [path for path in paths if path.suffix.lower() in PICTURES]:
        if len(pictures) < len(paths):
            raise PrivetError("Give pictures, or one parquet or CSV file, or texts; not both.")
        for x, beside in stream_pictures(schema, pictures, BATCH):
            yield x, pd.DataFrame(), list(beside["file"])
        return
    for path in paths:
        if path.suffix.lower() == ".txt" and schema.modality == "text":
            yield (
                schema.encode([path.read_text(encoding="utf-8", errors="replace")]),
                pd.DataFrame(),
                [str(path)],
            )
            continue
        for start, (x, beside) in enumerate(_table(schema, path, manifest, column)):
            yield x, beside, [f"{path}, row {start * BATCH + k + 1}" for k in range(len(x))]


def _table(schema: Schema, path: Path, manifest: Manifest, column: str | None) -> Iterator[Rows]:
    """The labels that the campaign asks for are taken from columns of that name, where there are
    any."""
    names = _columns(path)
    keep = [label.name for label in manifest.labels if label.name in names]
    yield from stream_file(schema, path, keep, column, BATCH)


def _columns(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == ".csv":
            return [str(name) for name in pd.read_csv(path, nrows=0).columns]
        return list(pq.read_schema(path).names)
    except (OSError, ValueError):
        raise PrivetError(f"{path} cannot be read as parquet or CSV.") from None


def _answers(manifest: Manifest, words: Sequence[str]) -> Labels:
    answers: Labels = {}
    asked = {label.name: label for label in manifest.labels}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise PrivetError(f"--label takes name=value, and '{word}' has no '='.")
        if name in asked and not asked[name].values:
            answers[name] = _number(name, value)
        else:
            answers[name] = value
    return answers


def _labels_of(manifest: Manifest, beside: pd.DataFrame, row: int) -> Labels:
    found: Labels = {}
    for label in manifest.labels:
        if label.name in beside.columns and not pd.isna(value := beside[label.name].iloc[row]):
            found[label.name] = (
                class_text(value, label.values) if label.values else _number(label.name, value)
            )
    return found


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise PrivetError(f"The answer to '{name}' is a number, not '{value}'.") from None


def _bare(text: str) -> str:
    return re.sub(r"[\s:]", "", text).lower()
