"""`privet campaign export`: fetch what came, open it here, write a table of released records and
labels, and say what is gone.

Records are fetched, opened and written a page at a time, so that a million take no more memory than
a thousand. A withdrawn record is not in the next export, and `manifest.json` names every record
that ever left: whoever copied an earlier table deletes those rows from it.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.core.files import replacing, results_folder
from privet.core.progress import Tick, bar
from privet.exchange.owner.campaigns import CampaignFolder, figures
from privet.exchange.owner.governance import deeds
from privet.exchange.protocol.checks import check_envelope
from privet.exchange.protocol.client import Client, Connect, Rejected
from privet.exchange.protocol.envelope import Envelope, unpack
from privet.exchange.protocol.messages import (
    FrameHeader,
    GoneAnswer,
    frame,
    read_frame_file,
    read_frames,
)
from privet.exchange.protocol.seal import unseal

TABLE, LIST = "export.parquet", "manifest.json"
# The column with the SHA-256 of what a participant agreed to.
CONSENT = "consent"
# Records and names of a page.
PAGE_RECORDS, PAGE_NAMES = 500, 1000
# Records and numbers of a part of the table that is held in memory.
GROUP_RECORDS, GROUP_NUMBERS = 2000, 2**22

Row = tuple[FrameHeader, Envelope]
Frames = Iterator[tuple[FrameHeader, bytes]]


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Parameters:
        table: The parquet file.
        records: How many are in it.
        refused: How many cannot be used, by the reason.
        gone: How many were withdrawn, or grew too old, since the last export.
    """

    table: Path
    records: int
    refused: dict[str, int]
    gone: int


@dataclass
class _Names:
    """Names of records that left, 16 bytes each, by the reason, and of those that are new."""

    by_reason: dict[str, bytearray] = field(default_factory=lambda: defaultdict(bytearray))
    new: bytearray = field(default_factory=bytearray)
    until: int = 0

    def add(self, one: GoneAnswer, seen: int) -> None:
        name = bytes.fromhex(one.id)
        self.by_reason[one.reason] += name
        if one.number > seen:
            self.new += name
        self.until = max(self.until, one.number)


def download(folder: CampaignFolder, file: Path, connect: Connect = Client) -> int:
    """Sealed records to one file, to be opened on a machine without a network; how many."""
    many = 0
    with (
        replacing(file) as temporary,
        temporary.open("wb") as target,
        _bar(folder, connect) as tick,
    ):
        for header, content in _fetch(folder, connect):
            target.write(frame(header, content))
            many += 1
            tick(many)
    return many


def export(
    folder: CampaignFolder,
    out: Path,
    *,
    key: Path | None = None,
    source: Path | None = None,
    connect: Connect = Client,
) -> Exported:
    """Write the records of a campaign as a table.

    Parameters:
        folder: The campaign.
        out: Folder for the table and the list.
        key: The sealing key, where it is not in the campaign's folder.
        source: A file that `download` wrote; then nothing is asked of the collector.
        connect: From an address and a token to a client.
    """
    private_key = folder.sealing_key(key)
    last = _last_export(out, folder.link.campaign)
    refused: Counter[str] = Counter()
    days: Counter[str] = Counter()
    with results_folder(out), replacing(out / TABLE) as temporary:
        if source is None:
            with _bar(folder, connect) as tick:
                rows = _open(folder, _fetch(folder, connect), private_key, refused, tick)
                records = _write_table(folder, rows, temporary, days)
        else:
            rows = _open(folder, _read(source), private_key, refused)
            records = _write_table(folder, rows, temporary, days)
        if not records and not last:
            raise PrivetError(
                f"No record can be used: {next(iter(refused))}"
                if refused
                else "There is no record to export yet."
            )
        seen = int(last.get("gone_until", 0))
        names = _gone_before(last) if source is not None else _gone(folder, seen, connect)
        about = {
            "campaign": folder.link.campaign,
            "title": folder.manifest.title,
            "release": folder.manifest.release.hashes(),
            "records": records,
            "refused": dict(refused),
            "days": dict(sorted(days.items())),
            "gone_until": max(seen, names.until),
            "log": last.get("log") if source is not None else _log(folder, last, connect),
            "consent": _consent(folder),
        }
        with replacing(out / LIST) as listed, listed.open("w", encoding="utf-8") as file:
            _write_list(file, about, names)
    return Exported(out / TABLE, records, dict(refused), len(names.new) // 16)


def _bar(folder: CampaignFolder, connect: Connect) -> Any:
    return bar("export", figures(folder, connect).records)


def _fetch(folder: CampaignFolder, connect: Connect) -> Frames:
    """Every record as it was sent, page by page, with what the collector knows of it."""
    after: str | None = "0"
    with folder.client(connect) as client:
        while after is not None:
            params = {"after": after, "most": PAGE_RECORDS}
            page = client.request("GET", folder.address("records"), params=params)
            yield from read_frames(page.content)
            after = page.headers.get("privet-next")


def _read(source: Path) -> Frames:
    try:
        with source.open("rb") as file:
            yield from read_frame_file(file)
    except OSError as error:
        raise PrivetError(f"Cannot read {error.filename}: {error.strerror}.") from None


def _gone(folder: CampaignFolder, seen: int, connect: Connect) -> _Names:
    """Every record that ever left the campaign."""
    names = _Names()
    with folder.client(connect) as client:
        after: int | None = 0
        while after is not None:
            params = {"after": after, "most": PAGE_NAMES}
            page = client.ask(list[GoneAnswer], "GET", folder.address("gone"), params=params)
            for one in page:
                names.add(one, seen)
            after = page[-1].number if page else None
    return names


def _log(folder: CampaignFolder, last: dict[str, Any], connect: Connect) -> str | None:
    """The last hash of the campaign's log, after checking that it still holds the one that the last
    export wrote down; None where a collector of an earlier version has no log."""
    try:
        entries = deeds(folder, last.get("log"), connect)
    except Rejected as error:
        if error.status != 404 or last.get("log"):
            raise
        return None
    return entries[-1].hash if entries else None


def _consent(folder: CampaignFolder) -> dict[str, str] | None:
    """What participants agreed to: every record that is exported names this hash."""
    manifest = folder.manifest
    if manifest.consent_hash is None:
        return None
    about = {"version": manifest.consent_version, "sha256": manifest.consent_hash}
    return {**about, "text": manifest.consent}


def _gone_before(last: dict[str, Any]) -> _Names:
    """What the last export knew: without the collector there is nothing new."""
    names = _Names()
    for reason, key in REASONS.items():
        names.by_reason[reason] += b"".join(map(bytes.fromhex, last.get(key, [])))
    return names


# Under which name `manifest.json` lists what left, by the collector's reason.
REASONS = {"withdrawn": "withdrawn", "retention": "expired", "erased": "erased", "lost": "lost"}


def _write_list(file: IO[str], about: dict[str, Any], names: _Names) -> None:
    """JSON whose long lists are written one name at a time."""
    file.write(json.dumps(about, indent=1, ensure_ascii=False)[:-2])
    lists = {key: names.by_reason.get(reason, b"") for reason, key in REASONS.items()}
    for key, packed in {**lists, "since_last_export": names.new}.items():
        file.write(f',\n "{key}": [')
        for start in range(0, len(packed), 16):
            file.write(f'{"," if start else ""}\n  "{packed[start : start + 16].hex()}"')
        file.write("]")
    file.write("\n}\n")


def _open(
    folder: CampaignFolder,
    frames: Frames,
    private_key: str | None,
    refused: Counter[str],
    tick: Tick = lambda _done: None,
) -> Iterator[Row]:
    """Records that can be used; those that cannot are counted by the reason."""
    for many, (header, content) in enumerate(frames, 1):
        try:
            if header.damaged:
                state = "damaged" if content else "lost"
                raise PrivetError(f"The collector's copy is {state}.")
            envelope = unpack(content if private_key is None else unseal(content, private_key))
            check_envelope(folder.manifest, folder.link.campaign, header.id, envelope)
        except PrivetError as error:
            refused[str(error)] += 1
        else:
            yield header, envelope
        tick(many)


def _write_table(
    folder: CampaignFolder, rows: Iterator[Row], path: Path, days: Counter[str]
) -> int:
    """Write the table part by part; how many records are in it."""
    records = numbers = 0
    group: list[Row] = []
    with pq.ParquetWriter(path, _schema(folder)) as writer:
        for header, envelope in rows:
            group.append((header, envelope))
            days[time.strftime("%Y-%m-%d", time.gmtime(header.received / 1000))] += 1
            records, numbers = records + 1, numbers + envelope.z.size
            if len(group) >= GROUP_RECORDS or numbers >= GROUP_NUMBERS:
                writer.write_table(_table(folder, group))
                group, numbers = [], 0
        if group or not records:
            writer.write_table(_table(folder, group))
    return records


def _has_consent(folder: CampaignFolder) -> bool:
    """Whether the table has a column for it; a label of that name goes first."""
    labels = [label.name for label in folder.manifest.labels]
    return folder.manifest.consent_hash is not None and CONSENT not in labels


def _schema(folder: CampaignFolder) -> Any:
    manifest = folder.manifest
    size = -1 if None in manifest.expect.shape else manifest.expect.max_numbers
    about = {
        "method": manifest.method,
        "private": manifest.private,
        "shape": manifest.expect.shape,
        "campaign": folder.link.campaign,
        "sha256": {"graph": manifest.release.graph},
        "leaves": asdict(manifest.leaves),
    }
    columns = [
        pa.field("submission", pa.string()),
        pa.field("person", pa.string()),
        *(
            pa.field(label.name, pa.string() if label.values else pa.float64())
            for label in manifest.labels
        ),
        *([pa.field(CONSENT, pa.string())] if _has_consent(folder) else []),
        pa.field("z", pa.list_(pa.float32(), size)),
    ]
    return pa.schema(columns, {"privet": json.dumps(about)})


def _table(folder: CampaignFolder, rows: Sequence[Row]) -> Any:
    schema = _schema(folder)
    columns: dict[str, Any] = {
        "submission": [header.id for header, _ in rows],
        "person": [header.person[:16] for header, _ in rows],
    }
    for label in folder.manifest.labels:
        columns[label.name] = [envelope.labels.get(label.name) for _, envelope in rows]
    if _has_consent(folder):
        columns[CONSENT] = [envelope.consent for _, envelope in rows]
    arrays = [pa.array(columns[name], schema.field(name).type) for name in columns]
    flat = [np.ascontiguousarray(envelope.z, dtype=np.float32).ravel() for _, envelope in rows]
    values = pa.array(np.concatenate([np.empty(0, dtype=np.float32), *flat]))
    if None in folder.manifest.expect.shape:
        offsets = np.concatenate([[0], np.cumsum([len(z) for z in flat])]).astype(np.int32)
        arrays.append(pa.ListArray.from_arrays(pa.array(offsets), values))
    else:
        size = folder.manifest.expect.max_numbers
        arrays.append(pa.FixedSizeListArray.from_arrays(values, size))
    return pa.Table.from_arrays(arrays, schema=schema)


def _last_export(out: Path, campaign: str) -> dict[str, Any]:
    """What the last export to this folder wrote down."""
    try:
        last = json.loads((out / LIST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise PrivetError(f"{out / LIST} cannot be read: choose another --out.") from None
    if not isinstance(last, dict) or last.get("campaign") != campaign:
        raise PrivetError(f"{out} holds the export of another campaign: choose another --out.")
    return last
