"""Folders of released parts are attacked, and large tables certified, on a sample of people that is
said and that nobody was learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import privet
from parts_of_rows import make_release, make_rows, write_rows
from privet.adversaries.linear import Logistic
from privet.auditing.batteries import BATTERIES, Battery
from privet.cli.main import app
from privet.commands.audit import FileOptions
from privet.core.errors import PrivetError
from privet.core.stores import Store
from privet.data.part_manifest import find_manifest
from privet.data.schema_file import Layout
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit
from privet.release.apply import ApplyOptions, apply
from privet.release.part_writing import Parts, apply_parts
from privet.reporting.page import render_certificate

ROOM: list[Path] = []
QUICK = Battery((Logistic(strengths=(0.1,)),), people=False)
KEEP = ["y", "person", "id"]


@pytest.fixture(scope="module")
def room(tmp_path_factory) -> Path:
    """Rows in two files, a release of them, and their released parts; whole.parquet has the labels
    that an auditor has."""
    room = tmp_path_factory.mktemp("audited")
    ROOM[:] = [room]
    frame = make_rows(1600).drop(columns=["town", "age"])
    frame = frame.assign(u=np.where(frame["u"] == 1, "yes", "no"))
    for name, rows in (("a", frame[:900]), ("b", frame[900:])):
        write_rows(rows, room / "rows" / f"{name}.parquet")
    make_release(room / "release")
    words = {"options": ApplyOptions(id="id"), "progress": False}
    apply_parts(room / "release", [room / "rows"], room / "shared", KEEP, parts=Parts(256), **words)
    write_rows(frame, room / "whole.parquet")
    apply(room / "release", [room / "whole.parquet"], room / "one.parquet", KEEP, **words)
    return room


def attack(place: Path, people: int | None = None, **words: object) -> Audit:
    labels = ROOM[0] / "whole.parquet"
    files = FileOptions(Layout(people=people), labels=labels, by="id")
    given = {"private": "u", "utility": "y", "files": files, "progress": False, **words}
    return privet.audit(place, battery=QUICK, **given)


def test_a_folder_of_parts_is_attacked_like_one_file(room):
    """The same people and records, whose order does not matter to the attacker: the same figure, up
    to who is in which part."""
    parts, one = attack(room / "shared"), attack(room / "one.parquet")
    assert parts.data["parts"] == one.data["parts"]
    assert parts.leaves == one.leaves and parts.leaves.kept == tuple(KEEP)
    ours, theirs = (found.private[0].worst.score for found in (parts, one))
    assert ours.n == theirs.n and abs(ours.value - theirs.value) < 0.03
    assert "sampled" not in parts.data


def test_some_people_of_a_folder_are_attacked_and_that_is_said(room, tmp_path):
    found = attack(room / "shared", 200, out=tmp_path)
    people = pd.read_parquet(room / "whole.parquet")["person"].nunique()
    assert found.data["sampled"]["people"] == 200 and found.data["sampled"]["of"] == people
    assert sum(part["people"] for part in found.data["parts"].values()) == 200
    sentence = f"200 of {people} people, chosen by a hash of 'person'"
    assert any(sentence in limit for limit in found.limits)
    assert sentence in (tmp_path / "report.html").read_text().replace("&#39;", "'")
    assert Audit.load(tmp_path / "audit.json").data == found.data
    again = attack(room / "one.parquet", 200)
    assert again.data["parts"] == found.data["parts"], "the same people of one file, too"


def test_a_damaged_or_unfinished_folder_is_not_attacked(room, tmp_path):
    for name in (
        "manifest.json",
        *(part.name for part in find_manifest(Store(room / "shared")).parts),
    ):
        (tmp_path / name).write_bytes((room / "shared" / name).read_bytes())
    path = tmp_path / "part-00003.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(PrivetError, match=r"part-00003.parquet .* is not the file"):
        attack(tmp_path)
    with pytest.raises(PrivetError, match=r"part-00003.parquet"):
        privet.load(str(tmp_path))
    (tmp_path / "manifest.json").rename(tmp_path / "unfinished.json")
    with pytest.raises(PrivetError, match="--resume"):
        attack(tmp_path)
    with pytest.raises(PrivetError, match="leave out --data"):
        attack(room / "shared", data="toy:gaussian")


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    """Six thousand people with one record each, in three files."""
    folder = tmp_path_factory.mktemp("certified")
    random = np.random.default_rng(0)
    u = random.integers(0, 2, 6000)
    frame = pd.DataFrame(random.standard_normal((6000, 3)), columns=list("abc"))
    frame = frame.assign(a=frame["a"] + 0.5 * u, u=np.where(u == 1, "f", "m"))
    frame["person"] = [f"p{i}" for i in range(6000)]
    for i in range(3):
        write_rows(frame[2000 * i : 2000 * i + 2000], folder / f"{i}.parquet")
    return folder


def learned(data: object) -> privet.Release:
    return privet.Noisy(sigma=40.0).fit(data, private=["u"])


def test_a_certificate_on_a_sample_says_so_and_is_verified_on_the_same(people, tmp_path):
    release = learned(privet.load(str(people), Layout(people=2000), progress=False))
    release.save(tmp_path / "r")
    layout = Layout(people=4000)
    found = privet.certify(tmp_path / "r", str(people), schema=layout, confidence=0.9)
    assert found.data["sampled"]["people"] == 4000 and found.data["sampled"]["of"] == 6000
    test = privet.load(str(people), layout, progress=False).part("test")
    assert found.data["people"] == len(np.unique(test.people)) and 700 < found.data["people"] < 900
    assert all("4,000 of 6,000 people" in one.note for one in found.certificates)
    assert found.certificates[0].bound is not None
    assert "4,000 of 6,000 people" in render_certificate(found)
    found.save(tmp_path / "certificate.json")
    assert Certification.load(tmp_path / "certificate.json").data == found.data
    assert privet.verify(tmp_path / "certificate.json", tmp_path / "r", str(people)).ok


def test_nobody_is_certified_on_whom_the_release_was_learned_from(people, tmp_path):
    """Two samples deal people out alike; a sample and everybody do not, and are not mixed."""
    small, large = (
        privet.load(str(people), Layout(people=n), progress=False) for n in (1500, 4500)
    )

    def names(data: privet.Dataset, part: str) -> set[str]:
        view = data.part(part)
        return {view.attributes["person"].values[code] for code in view.labels["person"]}

    assert not names(small, "fit") & names(large, "test")
    whole = privet.load(str(people), progress=False)
    assert names(whole, "fit") & names(large, "test"), "else there is nothing to refuse"
    for data, other in ((whole, large), (large, whole)):
        release = learned(data)
        with pytest.raises(PrivetError, match="learned from would be in test"):
            privet.certify(release, other)
        with pytest.raises(PrivetError, match="learned from would be in test"):
            privet.audit(release, other, battery=QUICK, progress=False)
    release = learned(large)
    release.save(tmp_path / "r")
    with pytest.raises(PrivetError, match="learned from"):
        scope = privet.commands.certify.Scope(new_people=True)
        privet.certify(tmp_path / "r", str(people), schema=Layout(people=1500), scope=scope)


def test_the_commands(room, tmp_path, monkeypatch):
    monkeypatch.setitem(BATTERIES, "quick", replace(QUICK, name="quick"))
    words = ["audit", str(room / "shared"), "--private", "u", "--out", str(tmp_path / "a")]
    words += ["--labels", str(room / "whole.parquet"), "--by", "id"]
    done = CliRunner().invoke(app, [*words, "--people", "200"])
    assert done.exit_code == 0, done.output
    assert Audit.load(tmp_path / "a" / "audit.json").data["sampled"]["people"] == 200
