"""What an owner attaches for people to see: the audit's report, without anybody's record, and what
a decoder could rebuild."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Running
from privet.core.errors import PrivetError
from privet.exchange.owner import campaigns
from privet.exchange.owner.campaigns import CampaignFolder, Terms
from privet.exchange.owner.decoder import learn_decoder

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from example_audits import full

TERMS = Terms("Smiles", "To learn smiles.", "Lab X", ["smiling=yes,no"])


def audited(release: Path, folder: Path) -> Path:
    """An audit of this release with everything that one can hold: pictures of *test* people too."""
    graph = json.loads((release / "card.json").read_text())["sha256"]["graph"]
    folder.mkdir()
    whole = full()
    replace(whole, release={**whole.release, "sha256": {"graph": graph}}).save(
        folder / "audit.json"
    )
    return folder


def created(collector: Running, release: Path, out: Path, **more: Path) -> CampaignFolder:
    url = "http://127.0.0.1:1"
    return campaigns.create(
        url,
        release,
        out,
        TERMS,
        collector.operator,
        out.parent / "owner.key",
        connect=collector.client,
        **more,
    )


def test_a_report_is_shown_without_a_record_of_anybody_and_can_do_nothing(
    collector: Running, release: Path, tmp_path: Path
) -> None:
    made = created(
        collector, release, tmp_path / "mine", report=audited(release, tmp_path / "audit")
    )
    answer = collector.http.get(f"/c/{made.link.campaign}/report")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"].split("; ")
    assert (
        "sandbox" in policy
        and "default-src 'none'" in policy
        and not [word for word in policy if word.startswith("script-src")]
    )
    assert "What a decoder makes of it" in answer.text and "<script" not in answer.text
    shown = [picture for one in full().rebuilt for picture in (*one.originals, *one.rebuilt)]
    assert len(shown) > 10 and not [picture for picture in shown if picture in answer.text]
    assert made.manifest.release.report and made.manifest.release.audit, (
        "the figures are attached with it"
    )
    assert (
        collector.http.get(f"/v1/parts/{made.manifest.release.report}").content.decode()
        == answer.text
    )


def test_without_a_report_there_is_none(collector: Running, release: Path, tmp_path: Path) -> None:
    made = created(collector, release, tmp_path / "mine")
    for name in (made.link.campaign, "0" * 32, "nonsense", "..%2f"):
        assert collector.http.get(f"/c/{name}/report").status_code == 404


def test_the_report_of_another_release_is_refused(
    collector: Running, release: Path, table_release: Path, tmp_path: Path
) -> None:
    with pytest.raises(PrivetError, match="another release"):
        created(
            collector, release, tmp_path / "mine", report=audited(table_release, tmp_path / "audit")
        )
    (tmp_path / "empty").mkdir()
    with pytest.raises(PrivetError, match="Cannot read"):
        created(collector, release, tmp_path / "mine", report=tmp_path / "empty")


def test_a_decoder_of_something_else_is_refused(
    collector: Running, release: Path, table_release: Path, tmp_path: Path
) -> None:
    (tmp_path / "rubbish.onnx").write_bytes(b"no graph")
    for of, file, why in (
        (release, tmp_path / "rubbish.onnx", "cannot be run as ONNX"),
        (release, release / "release.onnx", "no decoder of this release"),
        (table_release, tmp_path / "rubbish.onnx", "of pictures only"),
    ):
        with pytest.raises(PrivetError, match=why):
            created(collector, of, tmp_path / "mine", decoder=file)


def test_a_decoder_is_for_pictures_and_writes_over_nothing(
    release: Path, table_release: Path, tmp_path: Path
) -> None:
    with pytest.raises(PrivetError, match="of pictures only"):
        learn_decoder(table_release, "toy:gaussian", tmp_path / "decoder.onnx")
    with pytest.raises(PrivetError, match="no folder"):
        learn_decoder(release, "portraits:60", tmp_path / "nowhere" / "decoder.onnx")
    (tmp_path / "there.onnx").touch()
    with pytest.raises(PrivetError, match="is there already"):
        learn_decoder(release, "portraits:60", tmp_path / "there.onnx")
