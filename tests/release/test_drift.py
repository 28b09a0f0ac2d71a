"""Records unlike those that a release was learned from are recognised; their likes are not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from release_scripts import scripts

from privet.data.portraits.source import portraits
from privet.data.schema import Schema, learn_schema
from privet.release.drift import FEWEST, drift, features, signs, typical
from small import small


@pytest.fixture(scope="module")
def faces() -> tuple[Schema, dict[str, Any], np.ndarray]:
    data = portraits(700, seed=0)
    schema = learn_schema(data, ["beard"])
    summary = typical(schema, schema.inputs(data.part("fit")))
    assert summary is not None
    return schema, {"typical": summary}, np.asarray(schema.inputs(data.part("test"))[:])


def changed(x: np.ndarray, how: str) -> np.ndarray:
    values = x.astype(np.float64)
    rng = np.random.default_rng(0)
    made = {
        "half the light": values * 0.5,
        "a grainy sensor": values + rng.normal(0, 25, x.shape),
        "a negative": 255 - values,
        "no picture at all": rng.integers(0, 256, x.shape),
        "warm light": values * np.array([1.2, 1.0, 0.7]).reshape(1, 3, 1, 1),
    }[how]
    return np.clip(made, 0, 255).astype(np.uint8)


CHANGES = ("half the light", "a grainy sensor", "a negative", "no picture at all", "warm light")


@pytest.mark.parametrize("how", CHANGES)
def test_another_camera_is_noticed(faces: Any, how: str) -> None:
    schema, card, x = faces
    finding = drift(card, schema, changed(x, how))
    assert finding is not None and f"{len(x)} of {len(x)} records are unlike" in finding.text


def test_people_of_the_same_kind_are_not(faces: Any) -> None:
    schema, card, x = faces
    assert drift(card, schema, x) is None
    alone = [drift(card, schema, x[k : k + 1]) is not None for k in range(len(x))]
    assert np.mean(alone) <= 0.02
    assert drift(card, schema, changed(x[:1], "no picture at all")) is not None


@pytest.mark.parametrize("modality", ["table", "signal", "text"])
def test_other_kinds_of_records_too(modality: str) -> None:
    data = small(modality, 900)
    schema = learn_schema(data, ["u", "y"])
    card = {"typical": typical(schema, schema.inputs(data.part("fit")))}
    x = np.asarray(schema.inputs(data.part("test"))[:])
    assert drift(card, schema, x) is None
    other = np.full_like(x, 1) if modality == "text" else x * 3 + 4
    assert drift(card, schema, other) is not None


def test_few_records_are_not_summarised() -> None:
    data = small("table", FEWEST // 2)
    schema = learn_schema(data, ["u", "y"])
    assert typical(schema, schema.inputs(data)) is None


def test_the_summary_holds_no_record(faces: Any) -> None:
    """A hundred numbers, and the same but for rounding whether one of 200 records is in it."""
    schema, card, x = faces
    summary = card["typical"]
    size = len(summary["mean"])
    assert size + size * (size + 1) // 2 + 3 < 120
    rows = features(schema, x)[0]
    twice = np.concatenate([x, x[:, :, ::-1]])
    with_one, without = typical(schema, twice[:201]), typical(schema, twice[:200])
    assert with_one is not None and without is not None
    gap = np.abs(np.array(with_one["mean"]) - np.array(without["mean"])).max()
    assert gap < 5 * rows.std(0).max() / 200


@pytest.mark.parametrize(
    "summary",
    [None, {}, {"mean": [1]}, {"mean": "x", "covariance": [], "usual": []}, [1, 2], "text"],
)
def test_a_card_that_says_nothing_sensible_is_not_believed(faces: Any, summary: Any) -> None:
    schema, _, x = faces
    assert drift({"typical": summary}, schema, x) is None


def test_signs_are_balanced_and_fixed() -> None:
    drawn = signs(np.arange(4096))
    assert set(np.unique(drawn)) == {-1.0, 1.0} and np.abs(drawn.mean(0)).max() < 0.06
    assert signs(np.array([0, 1, 2, 77])).tolist() == drawn[[0, 1, 2, 77]].tolist()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_browser_finds_the_same(faces: Any, tmp_path: Path) -> None:
    """The same features and sentences of pictures, rows and texts."""
    cases = [faces]
    for modality in ("table", "text"):
        data = small(modality, 900)
        schema = learn_schema(data, ["u", "y"])
        card = {"typical": typical(schema, schema.inputs(data.part("fit")))}
        cases.append((schema, card, np.asarray(schema.inputs(data.part("test"))[:])))
    asked, wanted = [], []
    for schema, card, x in cases:
        odd = x[:3] * 0 + 1 if schema.modality == "text" else 255 - x[:3] * 9
        for row in np.concatenate([x[:3], odd.astype(x.dtype)]):
            kept = row[row != 0] if schema.modality == "text" else row
            asked.append([{**card, "input": schema.to_json()}, kept.ravel().tolist()])
            finding = drift(card, schema, row[None])
            rows, _ = features(schema, row[None])
            wanted.append((rows[0], "" if finding is None else finding.text))
    folder = scripts(tmp_path)
    (folder / "asked.json").write_text(json.dumps(asked))
    (folder / "run.js").write_text(
        """import fs from "node:fs";
import { drift, features } from "./drift.js";
const asked = JSON.parse(fs.readFileSync("asked.json"));
console.log(JSON.stringify(asked.map(([card, x]) => [features(x, card.input)[0], drift(card, x)])));
"""
    )
    ran = subprocess.run(
        [str(shutil.which("node")), "run.js"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    said = json.loads(ran.stdout)
    for (rows, text), (theirs, sentence) in zip(wanted, said, strict=True):
        np.testing.assert_allclose(theirs, rows, atol=1e-6)
        assert sentence == text
    assert any(text for _, text in wanted) and not all(text for _, text in wanted)
