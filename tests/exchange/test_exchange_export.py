"""An owner's export: whole every time, a page at a time, with the names of all that ever left."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from world import KEYS, World, world

from conftest import Running
from privet.core.errors import PrivetError
from privet.exchange.owner import export as exports
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.protocol.client import Link
from privet.exchange.protocol.envelope import Envelope
from privet.exchange.protocol.seal import seal


def owned(collector: Running, made: World, folder: Path, records: int) -> CampaignFolder:
    """A campaign with so many records, as its owner has it."""
    folder.mkdir()
    token = collector.settle(made)
    for name, secret in (("owner.token", token), ("sealing.key", made.private)):
        (folder / name).touch(0o600)
        (folder / name).write_text(secret)
    for key in KEYS[:records]:
        assert collector.submit(made, key).status_code == 201
    link = Link("http://127.0.0.1", made.id)
    return CampaignFolder(folder, link, made.manifest, made.text, made.signature)


def withdraw(collector: Running, made: World, key: str) -> None:
    path = f"/v1/campaigns/{made.id}/submissions/{key}"
    assert collector.http.delete(path, headers={"privet-withdraw": "ab" * 32}).status_code == 204


def test_the_manifest_names_every_record_that_ever_left(collector: Running, tmp_path: Path) -> None:
    made = world()
    folder = owned(collector, made, tmp_path / "campaign", 6)
    listed = []
    for key in KEYS[:3]:
        withdraw(collector, made, key)
        exported = exports.export(folder, tmp_path / "out", connect=collector.client)
        about = json.loads((tmp_path / "out" / "manifest.json").read_text())
        listed.append((about["withdrawn"], about["since_last_export"], exported.gone))
    assert listed == [(KEYS[: k + 1], [KEYS[k]], 1) for k in range(3)]
    assert about["records"] == 3 and sum(about["days"].values()) == 3
    assert about["expired"] == about["lost"] == about["erased"] == []
    # In another folder, and offline, the list is as whole as it can be.
    exports.export(folder, tmp_path / "other", connect=collector.client)
    assert json.loads((tmp_path / "other" / "manifest.json").read_text())["withdrawn"] == KEYS[:3]
    assert exports.download(folder, tmp_path / "all.bin", connect=collector.client) == 3
    exports.export(folder, tmp_path / "out", source=tmp_path / "all.bin")
    again = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert again["withdrawn"] == KEYS[:3] and again["since_last_export"] == []


@pytest.mark.parametrize("mode", ["sealed", "open"])
def test_a_table_that_is_written_in_parts_is_the_same(
    collector: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    made = world(mode)
    folder = owned(collector, made, tmp_path / "campaign", 11)
    whole = exports.export(folder, tmp_path / "whole", connect=collector.client)
    monkeypatch.setattr(exports, "GROUP_RECORDS", 3)
    monkeypatch.setattr(exports, "PAGE_RECORDS", 2)
    parts = exports.export(folder, tmp_path / "parts", connect=collector.client)
    assert pq.ParquetFile(parts.table).num_row_groups == 4
    tables = [pq.read_table(one.table) for one in (whole, parts)]
    assert tables[0].equals(tables[1], check_metadata=True) and len(tables[0]) == 11
    for key, z in zip(KEYS, tables[1]["z"].to_pylist(), strict=False):
        assert np.array_equal(np.float32(z), made.record(int(key[:8], 16)))


def test_only_a_part_of_the_records_is_in_memory(
    collector: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many records come, a group of them is held at a time."""
    folder = owned(collector, world("open"), tmp_path / "campaign", 20)
    monkeypatch.setattr(exports, "GROUP_RECORDS", 4)
    held: list[int] = []
    table = exports._table

    def counted(campaign: CampaignFolder, rows: list[exports.Row]) -> object:
        held.append(len(rows))
        return table(campaign, rows)

    monkeypatch.setattr(exports, "_table", counted)
    assert exports.export(folder, tmp_path / "out", connect=collector.client).records == 20
    assert held == [4] * 5


def test_lost_and_cut_off_records_are_said(collector: Running, tmp_path: Path) -> None:
    made = world()
    folder = owned(collector, made, tmp_path / "campaign", 3)
    [row, *_] = collector.collector.database.submissions(made.id, 0, 10)
    (collector.folder / "blobs" / made.id / row.blob).unlink()
    exported = exports.export(folder, tmp_path / "out", connect=collector.client)
    assert exported.records == 2 and exported.refused == {"The collector's copy is lost.": 1}
    exports.download(folder, tmp_path / "all.bin", connect=collector.client)
    content = (tmp_path / "all.bin").read_bytes()
    for cut in (2, 50, len(content) - 1):
        (tmp_path / "cut.bin").write_bytes(content[:cut])
        with pytest.raises(PrivetError, match="cut off"):
            exports.export(folder, tmp_path / f"cut{cut}", source=tmp_path / "cut.bin")
        assert not (tmp_path / f"cut{cut}").exists()


def test_an_export_holds_the_log_to_what_it_was_and_says_what_was_agreed_to(
    collector: Running, tmp_path: Path
) -> None:
    made = world(consent="I agree.", consent_version="3")
    folder = owned(collector, made, tmp_path / "campaign", 0)
    agreed = made.manifest.consent_hash
    content = Envelope(
        made.id, made.manifest.release.card, KEYS[0], {}, made.record(), agreed
    ).pack(made.manifest.expect)
    assert made.manifest.sealing_key is not None
    sealed = seal(content, made.manifest.sealing_key)
    assert collector.submit(made, KEYS[0], sealed).status_code == 201
    out = tmp_path / "out"
    table = pq.read_table(exports.export(folder, out, connect=collector.client).table)
    about = json.loads((out / "manifest.json").read_text())
    assert table["consent"].to_pylist() == [agreed] and about["consent"]["version"] == "3"
    assert about["consent"]["text"] == "I agree." and about["consent"]["sha256"] == agreed
    exports.export(folder, out, connect=collector.client)  # the log has grown, and holds the hash
    again = json.loads((out / "manifest.json").read_text())
    assert again["log"] != about["log"]
    (out / "manifest.json").write_text(json.dumps({**again, "log": "1" * 64}))
    with pytest.raises(PrivetError, match="cut off or written anew"):
        exports.export(folder, out, connect=collector.client)
