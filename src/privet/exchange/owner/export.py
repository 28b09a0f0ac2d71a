"""`privet campaign export`: fetch what came, open it here, write a table of released records and
labels, and say what is gone.

A withdrawn record is not in the next export, and `manifest.json` names every one that left since
the last: whoever copied an earlier table deletes those rows from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.core.files import replacing, results_folder, write_bytes, write_text
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.owner.published import read_file
from privet.exchange.protocol.checks import check_envelope
from privet.exchange.protocol.client import Client, Connect
from privet.exchange.protocol.envelope import Envelope, unpack
from privet.exchange.protocol.messages import FrameHeader, GoneAnswer, frame, read_frames
from privet.exchange.protocol.seal import unseal

TABLE, LIST = "export.parquet", "manifest.json"
# Records and names of a page.
PAGE_RECORDS, PAGE_NAMES = 500, 1000

Row = tuple[FrameHeader, Envelope]


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Parameters:
        table: The parquet file.
        records: How many are in it.
        refused: How many cannot be used, by the reason.
        gone: What was withdrawn, or grew too old, since the last export.
    """

    table: Path
    records: int
    refused: dict[str, int]
    gone: list[GoneAnswer]


def download(folder: CampaignFolder, file: Path, connect: Connect = Client) -> int:
    """Sealed records to one file, to be opened on a machine without a network; how many."""
    frames = [frame(header, content) for header, content in _fetch(folder, connect)]
    write_bytes(file, b"".join(frames))
    return len(frames)


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
    with results_folder(out):
        frames = _fetch(folder, connect) if source is None else read_frames(read_file(source))
        rows, refused = _open(folder, frames, private_key)
        if not rows and not last:
            raise PrivetError(
                f"No record can be used: {next(iter(refused))}"
                if refused
                else "There is no record to export yet."
            )
        seen = int(last.get("gone_until", 0))
        gone = _fetch_gone(folder, seen, connect) if source is None else []
        with replacing(out / TABLE) as temporary:
            pq.write_table(_table(folder, rows), temporary)
        about = {
            "campaign": folder.link.campaign,
            "title": folder.manifest.title,
            "release": folder.manifest.release.hashes(),
            "records": len(rows),
            "refused": refused,
            "gone_until": max([seen, *(one.number for one in gone)]),
            "withdrawn": [one.id for one in gone if one.reason == "withdrawn"],
            "expired": [one.id for one in gone if one.reason != "withdrawn"],
            "received": {header.id: header.received for header, _ in rows},
        }
        write_text(out / LIST, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return Exported(out / TABLE, len(rows), refused, gone)


def _fetch(folder: CampaignFolder, connect: Connect) -> Iterator[tuple[FrameHeader, bytes]]:
    """Every record as it was sent, page by page, with what the collector knows of it."""
    after: str | None = "0"
    with folder.client(connect) as client:
        while after is not None:
            params = {"after": after, "most": PAGE_RECORDS}
            page = client.request("GET", folder.address("records"), params=params)
            yield from read_frames(page.content)
            after = page.headers.get("privet-next")


def _fetch_gone(folder: CampaignFolder, after: int, connect: Connect) -> list[GoneAnswer]:
    gone: list[GoneAnswer] = []
    page = None
    with folder.client(connect) as client:
        while page != []:
            params = {"after": gone[-1].number if gone else after, "most": PAGE_NAMES}
            page = client.ask(list[GoneAnswer], "GET", folder.address("gone"), params=params)
            gone += page
    return gone


def _open(
    folder: CampaignFolder, frames: Iterator[tuple[FrameHeader, bytes]], private_key: str | None
) -> tuple[list[Row], dict[str, int]]:
    """Records that can be used, and how many cannot, by the reason."""
    rows: list[Row] = []
    refused: Counter[str] = Counter()
    for header, content in frames:
        try:
            if header.damaged:
                raise PrivetError("The collector's copy is damaged.")
            envelope = unpack(content if private_key is None else unseal(content, private_key))
            check_envelope(folder.manifest, folder.link.campaign, header.id, envelope)
        except PrivetError as error:
            refused[str(error)] += 1
        else:
            rows.append((header, envelope))
    return rows, dict(refused)


def _table(folder: CampaignFolder, rows: list[Row]) -> Any:
    manifest = folder.manifest
    columns: dict[str, Any] = {
        "submission": pa.array([header.id for header, _ in rows]),
        "person": pa.array([header.person[:16] for header, _ in rows]),
    }
    for label in manifest.labels:
        answers = [envelope.labels.get(label.name) for _, envelope in rows]
        columns[label.name] = pa.array(answers, pa.string() if label.values else pa.float64())
    flat = [np.ascontiguousarray(envelope.z, dtype=np.float32).ravel() for _, envelope in rows]
    values = pa.array(np.concatenate([np.empty(0, dtype=np.float32), *flat]))
    if None in manifest.expect.shape:
        offsets = np.concatenate([[0], np.cumsum([len(z) for z in flat])]).astype(np.int32)
        columns["z"] = pa.ListArray.from_arrays(pa.array(offsets), values)
    else:
        columns["z"] = pa.FixedSizeListArray.from_arrays(values, manifest.expect.max_numbers)
    about = {
        "method": manifest.method,
        "private": manifest.private,
        "shape": manifest.expect.shape,
        "campaign": folder.link.campaign,
        "sha256": {"graph": manifest.release.graph},
        "leaves": asdict(manifest.leaves),
    }
    return pa.table(columns).replace_schema_metadata({"privet": json.dumps(about)})


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
