"""`privet campaign export`: fetch what came, open it here, write a table of released records and
labels, and say what is gone.

A withdrawn record is not in the next export, and `manifest.json` names every one that left since
the last: whoever copied an earlier table deletes those rows from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.core.files import replacing, writable_folder, write_bytes, write_text
from privet.exchange.owner.campaigns import Folder, Opener
from privet.exchange.protocol.checks import check_envelope
from privet.exchange.protocol.client import Client
from privet.exchange.protocol.envelope import Envelope, unpack
from privet.exchange.protocol.seal import unseal

TABLE, LIST = "export.parquet", "manifest.json"


@dataclass(frozen=True)
class Exported:
    table: Path
    records: int
    refused: dict[str, int]
    """Records that cannot be used, by the reason."""
    gone: list[dict[str, Any]]
    """What was withdrawn, or grew too old, since the last export."""


def fetch(folder: Folder, client: Opener = Client) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Every record as it was sent, page by page, with what the collector knows of it."""
    after: int | None = 0
    with client(folder.link.server, folder.token) as speak:
        while after is not None:
            page = speak.ask(
                "GET", f"/v1/campaigns/{folder.link.campaign}/records", after=after, most=500
            )
            yield from frames(page.content)
            after = int(page.headers["privet-next"]) if "privet-next" in page.headers else None


def frames(content: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    at = 0
    try:
        while at < len(content):
            size = int.from_bytes(content[at : at + 4], "little")
            about = json.loads(content[at + 4 : at + 4 + size])
            start = at + 4 + size
            at = start + int(about["size"])
            if at > len(content) or at <= start - 4:
                raise ValueError
            yield about, content[start:at]
    except (ValueError, KeyError, TypeError):
        raise PrivetError("What the collector sent is cut off: export again.") from None


def download(folder: Folder, file: Path, client: Opener = Client) -> int:
    """Sealed records to one file, to be opened on a machine without a network: `--from`."""
    parts, many = [], 0
    for about, content in fetch(folder, client):
        header = json.dumps(about).encode()
        parts += [len(header).to_bytes(4, "little"), header, content]
        many += 1
    write_bytes(file, b"".join(parts))
    return many


def export(
    folder: Folder,
    out: Path,
    *,
    key: Path | None = None,
    source: Path | None = None,
    client: Opener = Client,
) -> Exported:
    """Write the campaign's records to `out`. `source` is a file that `download` wrote; then nothing
    is asked of the collector."""
    private = folder.sealing_key(key)
    before = _before(out, folder.link.campaign)
    undo = writable_folder(out)
    try:
        came = fetch(folder, client) if source is None else frames(source.read_bytes())
        rows: list[tuple[dict[str, Any], Envelope]] = []
        refused: Counter[str] = Counter()
        for about, content in came:
            try:
                if about["damaged"]:
                    raise PrivetError("The collector's copy is damaged.")
                envelope = unpack(content if private is None else unseal(content, private))
                check_envelope(folder.manifest, folder.link.campaign, about["id"], envelope)
            except PrivetError as error:
                refused[str(error)] += 1
                continue
            rows.append((about, envelope))
        if not rows and not before:
            raise PrivetError(
                "There is no record to export yet."
                if not refused
                else f"No record can be used: {next(iter(refused))}"
            )
        gone = [] if source is not None else _gone(folder, int(before.get("gone_until", 0)), client)
        table = out / TABLE
        with replacing(table) as temporary:
            pq.write_table(_table(folder, rows), temporary)
        until = max([int(before.get("gone_until", 0)), *(int(one["number"]) for one in gone)])
        listed = {
            "campaign": folder.link.campaign,
            "title": folder.manifest.title,
            "release": folder.manifest.release.all(),
            "records": len(rows),
            "refused": dict(refused),
            "gone_until": until,
            "withdrawn": [one["id"] for one in gone if one["reason"] == "withdrawn"],
            "expired": [one["id"] for one in gone if one["reason"] != "withdrawn"],
            "received": {about["id"]: about["received"] for about, _ in rows},
        }
        write_text(out / LIST, json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
    except BaseException:
        undo()
        raise
    return Exported(table, len(rows), dict(refused), gone)


def _table(folder: Folder, rows: list[tuple[dict[str, Any], Envelope]]) -> Any:
    manifest = folder.manifest
    columns: dict[str, Any] = {
        "submission": pa.array([about["id"] for about, _ in rows]),
        "person": pa.array([about["person"][:16] for about, _ in rows]),
    }
    for label in manifest.labels:
        given = [envelope.labels.get(label.name) for _, envelope in rows]
        columns[label.name] = pa.array(given, pa.string() if label.values else pa.float64())
    flat = [np.ascontiguousarray(envelope.z, dtype=np.float32).ravel() for _, envelope in rows]
    values = np.concatenate([np.empty(0, dtype=np.float32), *flat])
    if None in manifest.expect.shape:
        offsets = np.concatenate([[0], np.cumsum([len(z) for z in flat])]).astype(np.int32)
        columns["z"] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
    else:
        columns["z"] = pa.FixedSizeListArray.from_arrays(pa.array(values), manifest.expect.most)
    about = {
        "method": manifest.method,
        "private": manifest.private,
        "shape": manifest.expect.shape,
        "campaign": folder.link.campaign,
        "sha256": {"graph": manifest.release.graph},
    }
    return pa.table(columns).replace_schema_metadata({"privet": json.dumps(about)})


def _gone(folder: Folder, after: int, client: Opener) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with client(folder.link.server, folder.token) as speak:
        while page := speak.ask(
            "GET", f"/v1/campaigns/{folder.link.campaign}/gone", after=after, most=1000
        ).json():
            found += page
            after = int(page[-1]["number"])
    return found


def _before(out: Path, campaign: str) -> dict[str, Any]:
    """What the last export to this folder wrote down."""
    try:
        before = json.loads((out / LIST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise PrivetError(f"{out / LIST} cannot be read: choose another --out.") from None
    if not isinstance(before, dict) or before.get("campaign") != campaign:
        raise PrivetError(f"{out} holds the export of another campaign: choose another --out.")
    return before
