"""The kept schema is the dataclasses' own, and every audit holds to it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import example_audits as example
import pytest

from privet.evidence import audit_schema as layout
from privet.evidence import figures
from privet.evidence.figures import Audit

PAGE = Path(__file__).parents[2] / "docs" / "audit-json.md"
AUDITS = {
    "usual": example.audit(),
    "full": example.full(),
    "bare vectors": example.bare(),
    "nothing counted": example.nothing_counted(),
    "nothing": Audit({}, {}, "quick", (), (), 0.0),
}


def test_the_kept_schema_is_the_generated_one() -> None:
    kept = files("privet.evidence").joinpath("audit.schema.json").read_text(encoding="utf-8")
    assert kept == layout.text(), (
        "write privet.evidence.audit_schema.text() to src/privet/evidence/audit.schema.json, "
        "and docs/audit-json.md anew"
    )


def checker() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(layout.json_schema())
    return jsonschema.Draft202012Validator(layout.json_schema())


@pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS)
def test_audits_hold_to_the_schema(audit: Audit) -> None:
    written = json.loads(audit.to_json())
    assert not list(checker().iter_errors(written))
    assert Audit.from_json(audit.to_json()).to_json() == audit.to_json(), (
        "and are read back as they were"
    )


@pytest.mark.parametrize(
    "path,wrong",
    [
        (["version"], 1),
        (["readings", 0, "role"], "secret"),
        (["readings", 0, "best"], 0.5),
        (["readings", 0, "released", 0, "score", "value"], "high"),
        (["readings", 0, "released", 0, "source"], "elsewhere"),
        (["readings", 0, "groups"], None),
        (["people", 0, "attack"], "theft"),
        (["undeclared"], {}),
        (["certificates", 0, "bound"], "low"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_refused_by_schema_and_reader_alike(path: list[Any], wrong: Any) -> None:
    written = json.loads(example.full().to_json())
    place = written
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = wrong
    assert list(checker().iter_errors(written))
    with pytest.raises(figures.PrivetError):
        Audit.from_json(json.dumps(written))


def test_later_fields_do_not_break_the_schema() -> None:
    written = json.loads(example.full().to_json())
    written["later"] = written["readings"][0]["later"] = {"anything": 1}
    assert not list(checker().iter_errors(written))


def test_the_page_names_every_field() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kinds = (
        figures.Audit,
        figures.Reading,
        figures.Finding,
        figures.Figure,
        figures.Group,
        figures.Risk,
    )
    certified = (figures.Certified, figures.CertifiedGroup, figures.AllPriors, figures.PriorPoint)
    others = (figures.Rebuilt, figures.People, figures.Fairness, figures.WhatLeaves)
    for kind in (*kinds, figures.ClassScore, figures.CurvePoint, *others, *certified):
        section = re.search(rf"## {kind.__name__}\n(.*?)(?=\n## |\Z)", page, re.S)
        assert section is not None, kind.__name__
        named = re.findall(r"^\| `(\w+)` \|", section[1], re.M)
        assert named == [f.name for f in fields(kind)], kind.__name__
    assert f"version {figures.VERSION}" in page
