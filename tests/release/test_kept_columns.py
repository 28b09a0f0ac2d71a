"""Columns beside released records: refused where nobody judged them, or where they were judged to
read what the release hides."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import privet
from privet.adversaries.linear import Logistic
from privet.adversaries.trees import Boosting
from privet.auditing.batteries import Battery
from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.evidence.figures import Audit, Figure, Finding, Reading
from privet.evidence.what_leaves import WhatLeaves
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions
from privet.release.kept_columns import check_judged, was_judged, what_is_read
from privet.release.noise import Noise
from privet.release.release import Release

CARD = {"private": ["sex"], "sha256": {"graph": "ab" * 32}, "command": "privet learn --data d.csv"}


def _figure(value: float) -> Figure:
    return Figure(value, value - 0.02, value + 0.02, 5000, 0.5)


def _finding(value: float, source: str, *columns: str) -> Finding:
    score = _figure(value)
    return Finding("boosting", source, value, score, score, None, 1.0, columns=columns)  # type: ignore[arg-type]


def _audit(released: float, findings: list[Finding], kept: tuple[str, ...]) -> Audit:
    reading = Reading(
        "sex",
        "private",
        ("Female", "Male"),
        (_finding(released, "released"),),
        (),
        0,
        0,
        others=tuple(findings),
    )
    release = {"private": ["sex"], "sha256": {"graph": "ab" * 32}}
    return Audit(release, {}, "quick", (reading,), (), 1.0, leaves=WhatLeaves(kept=kept))


def _save(folder: Path, audit: Audit) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    audit.save(folder / "audit.json")
    return folder


QUIET = [
    _finding(0.51, "released and kept", "race", "country"),
    _finding(0.505, "kept columns", "race", "country"),
    _finding(0.50, "kept columns", "race"),
    _finding(0.50, "kept columns", "country"),
]


def test_what_nobody_judged_is_refused_with_the_command(tmp_path: Path) -> None:
    sentence = r"privet audit \S+ --data d.csv --keep race,country --out \S+/audit"
    with pytest.raises(PrivetError, match=sentence):
        check_judged(tmp_path, CARD, ["race", "country"])
    check_judged(tmp_path, CARD, [])
    check_judged(tmp_path, CARD, ["race"], accept=["race"])
    with pytest.raises(PrivetError, match="No audit"):
        check_judged(tmp_path, CARD, ["race", "country"], accept=["race"])
    with pytest.raises(PrivetError, match="--accept names 'age'"):
        check_judged(tmp_path, CARD, ["race"], accept=["race", "age"])


def test_what_reads_nothing_passes_with_all_its_subsets(tmp_path: Path) -> None:
    audit = _audit(0.51, QUIET, ("race", "country"))
    _save(tmp_path, audit)
    for keep in (["race", "country"], ["country", "race"], ["race"], ["country"]):
        check_judged(tmp_path, CARD, keep)
    with pytest.raises(PrivetError, match="No audit of this release has judged"):
        check_judged(tmp_path, CARD, ["race", "age"])


def test_what_reads_the_private_attribute_is_refused_with_its_figure(tmp_path: Path) -> None:
    findings = [
        _finding(0.83, "released and kept", "relationship"),
        _finding(0.80, "kept columns", "relationship"),
    ]
    _save(tmp_path / "audit", _audit(0.53, findings, ("relationship",)))
    sentence = r"has relationship with the released records reads sex at 83\.0 % \(between 81\.0"
    with pytest.raises(PrivetError, match=sentence):
        check_judged(tmp_path, CARD, ["relationship"])
    with pytest.raises(PrivetError, match="--accept relationship"):
        check_judged(tmp_path, CARD, ["relationship"])
    check_judged(tmp_path, CARD, ["relationship"], accept=["relationship"])


def test_together_is_held_against_the_release_alone() -> None:
    """A release that itself reads 54 % is no reason to refuse a column that adds nothing."""
    audit = _audit(0.54, [_finding(0.545, "released and kept", "race")], ("race",))
    assert what_is_read(audit, ["race"]) is None and was_judged(audit, ["race"], ["sex"])
    audit = _audit(0.54, [_finding(0.57, "released and kept", "race")], ("race",))
    assert "54.0 % from the released records alone" in (what_is_read(audit, ["race"]) or "")


def test_a_part_of_a_set_that_reads_is_not_judged_by_it() -> None:
    """Two columns that tell nothing each and all together: which of them it is with the released
    record, nobody has tried."""
    findings = [
        _finding(0.9, "released and kept", "a", "b"),
        _finding(0.5, "kept columns", "a"),
        _finding(0.5, "kept columns", "b"),
    ]
    audit = _audit(0.5, findings, ("a", "b"))
    assert what_is_read(audit, ["a"]) is None and not was_judged(audit, ["a"], ["sex"])
    assert what_is_read(audit, ["a", "b"]) is not None


def test_an_audit_of_another_release_or_attribute_says_nothing(tmp_path: Path) -> None:
    other = replace(_audit(0.5, QUIET, ("race", "country")), release={"sha256": None})
    _save(tmp_path, other)
    with pytest.raises(PrivetError, match="No audit"):
        check_judged(tmp_path, CARD, ["race"])
    with pytest.raises(PrivetError, match="another release"):
        check_judged(tmp_path, CARD, ["race"], audit=tmp_path)
    _save(tmp_path, _audit(0.5, QUIET, ("race", "country")))
    with pytest.raises(PrivetError, match="No audit"):
        check_judged(tmp_path, CARD | {"private": ["sex", "age"]}, ["race"])


def _world(room: Path) -> tuple[Path, Path]:
    """A release of people whose relationship tells their sex, and whose city tells nothing."""
    rng = np.random.default_rng(0)
    n = 3000
    sex = rng.integers(0, 2, n)
    told = np.where(rng.random(n) < 0.8, sex, rng.integers(0, 2, n))
    frame = pd.DataFrame(
        {
            "age": rng.standard_normal(n),
            "hours": rng.standard_normal(n),
            "relationship": np.array(["wife", "husband"])[told],
            "city": np.array(["north", "south"])[rng.integers(0, 2, n)],
            "sex": np.array(["Female", "Male"])[sex],
        }
    )
    frame.to_parquet(room / "people.parquet")
    data = privet.load(str(room / "people.parquet"))
    schema = learn_schema(data, ["sex", "relationship", "city"])
    settings = {"dims": 1, "sigma": 0.4, "width": 0.1}
    torch.manual_seed(0)
    release = Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (1,), 0.4),
        {"method": "hedge", "private": ["sex"]},
    )
    release.save(room / "release")
    return room / "release", room / "people.parquet"


def test_from_audit_to_apply(tmp_path: Path) -> None:
    """`relationship` is refused with its figure, `city` passes, and the file says what leaves."""
    folder, people = _world(tmp_path)
    battery = Battery((Logistic(), Boosting()), people=False, curves=False)
    out = tmp_path / "released.parquet"
    with pytest.raises(PrivetError, match="--keep relationship --out"):
        privet.apply(folder, people, out, keep="relationship")
    for keep in ("relationship", "city"):
        privet.audit(
            str(folder),
            str(people),
            battery=battery,
            keep=keep,
            out=tmp_path / keep,
            progress=False,
            rebuild=False,
            seed=1,  # of these 600 people city reads 47.5 % with it: far from chance's upper end
        )
    with pytest.raises(PrivetError, match=r"relationship .*reads sex at (8|9)\d\.\d %"):
        privet.apply(folder, people, out, keep="relationship", audit=tmp_path / "relationship")
    assert not out.exists()
    privet.apply(folder, people, out, keep="city", audit=tmp_path / "city")
    leaves = json.loads(pq.read_schema(out).metadata[b"privet"])["leaves"]
    assert leaves["kept"] == ["city"] and pq.read_schema(out).names == ["city", "z"]
    again = ApplyOptions(force=True)
    privet.apply(folder, people, out, keep="relationship", accept="relationship", options=again)
    with pytest.raises(PrivetError, match="is what the release hides"):
        privet.apply(folder, people, tmp_path / "no.parquet", keep="sex", accept="sex")


def _with_sex(released: Path, people: Path) -> Path:
    """A file that apply wrote in the order of the people, with what an auditor knows of them."""
    table = pq.read_table(released)
    sex = pq.read_table(people)["sex"]
    pq.write_table(table.append_column("sex", sex), released)
    return released


def test_columns_in_a_file_that_apply_wrote_are_attacked_with_it(tmp_path: Path) -> None:
    """Taken as labels, `relationship` would be part of no attack, and the audit would say that sex
    cannot be read."""
    folder, people = _world(tmp_path)
    out, keep = tmp_path / "released.parquet", ["relationship", "city"]
    options = privet.ApplyOptions(ordered=True)
    privet.apply(folder, people, out, keep=keep, accept=keep, options=options, seed=3)
    _with_sex(out, people)
    battery = Battery((Logistic(), Boosting()), people=False, curves=False)
    audit = privet.audit(str(out), private="sex", battery=battery, progress=False)
    (reading,) = audit.private
    assert reading.worst.score.value < 0.6 and not reading.is_guessing
    together = next(f for f in reading.others if f.source == "released and kept")
    assert together.columns == ("relationship", "city") and together.score.low > 0.8
    assert audit.leaves == WhatLeaves(
        kept=("relationship", "city"), records=None, linked_by=("order",)
    )
    pq.write_table(pq.read_table(out).replace_schema_metadata({}), out)
    audit = privet.audit(str(out), private="sex", battery=battery, progress=False)
    assert any("relationship, city" in limit and "--keep" in limit for limit in audit.limits)


def test_relationship_in_adult(tmp_path: Path, shared_data: Path) -> None:
    """The counterexample: `relationship` alone reads sex at 80 %, and it was written without a
    word. The country that people were born in reads nothing, and passes."""
    rows = pd.read_parquet(shared_data / "adult.parquet").drop(columns="split")
    people = tmp_path / "adult.parquet"
    rows.sample(6000, random_state=0).to_parquet(people)
    schema = learn_schema(privet.load(str(people)), ["sex", "relationship", "native_country"])
    settings = {"dims": 1, "sigma": 0.4, "width": 0.1}
    torch.manual_seed(0)
    module = nets.build("hedge", schema, settings)
    noise, card = Noise("gaussian", (1,), 0.4), {"method": "hedge", "private": ["sex"]}
    Release(schema, ("hedge", settings), module, noise, card).save(tmp_path / "release")
    battery = Battery((Logistic(),), people=False, curves=False)
    out = tmp_path / "released.parquet"
    for keep in ("relationship", "native_country"):
        privet.audit(
            str(tmp_path / "release"),
            str(people),
            battery=battery,
            keep=keep,
            out=tmp_path / "release" / "audit",
            progress=False,
            rebuild=False,
        )
        if keep == "relationship":
            with pytest.raises(PrivetError, match=r"relationship .*reads sex at (7|8)\d\.\d %"):
                privet.apply(tmp_path / "release", people, out, keep=keep)
            assert not out.exists()
        else:
            privet.apply(tmp_path / "release", people, out, keep=keep)
            assert pq.read_schema(out).names == ["native_country", "z"]
