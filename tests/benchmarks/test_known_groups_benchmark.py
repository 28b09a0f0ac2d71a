"""The benchmarks of groups and of several pictures, at tiny size: what they count is what they say,
and their files make tables."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privet.data.dataset import Dataset
from small import small

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import five_pictures
import known_groups
import tables

TINY = ["dims=1", "epochs=1", "width=0.05", "batch=50"]


@pytest.fixture(scope="module")
def pictures() -> Dataset:
    """People with five records each; u is the person's."""
    rng, people = np.random.default_rng(0), 300
    data = small("table", 5 * people)
    part = np.repeat(rng.choice(4, people, p=[0.3, 0.3, 0.1, 0.3]), 5).astype(np.int8)
    u = np.repeat(rng.integers(0, 2, people), 5)
    who = np.arange(people).repeat(5)
    return replace(data, person=who, part_of=part, labels={**data.labels, "u": u})


def test_groups_are_bounded_attacked_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_groups, "MIDDLING", 100)
    data = small("table", 2400)
    job = {
        "data": data,
        "private": "u",
        "utility": "y",
        "known": ["y", "colour"],
        "known_target": 0.7,
        "method": "hedge",
        "without": "",
        "settings": TINY,
        "seed": 0,
        "device": "cpu",
    }
    run = known_groups.measure(job)
    assert len(run["groups"]) == 5 and run["n"] == len(data.part("test"))
    attacked = [group for group in run["groups"].values() if group["found"] is not None]
    assert len(attacked) == 2, "the values of y have enough people, colours have not"
    assert known_groups.highest(run, 100, np.inf, "bound") == max(g["bound"] for g in attacked)
    asked = argparse.Namespace(
        data="people.csv",
        private="u",
        utility="y",
        known="y,colour",
        known_targets=[0.7],
        each=0.7,
        method="hedge",
        without="",
        set=TINY,
        set_plain=[],
        seeds=1,
        machine=None,
        out=tmp_path / "k.json",
    )
    known_groups.write(asked, [run])
    table = tables.read(tmp_path / "k.json")
    assert float(table.rows[0]["overall"]["value"]) == pytest.approx(100 * run["overall"], abs=0.06)
    each = tables.read(tmp_path / "k-each.json")
    assert [row["bound"] for row in each.rows].count("too small") == 3


def test_training_people_become_test_people_and_labels_the_persons() -> None:
    frame = pd.DataFrame(
        {
            "person": np.repeat(np.arange(20), 5),
            "split": np.repeat(["train", "test"], 50),
            "Male": np.repeat(np.arange(20) % 2, 5),
        }
    )
    frame.loc[0, "Male"] = 1
    moved = five_pictures.new_split(frame, 4, 5, "Male")
    assert (moved["split"] == "test").sum() == 50 + 4 * 5
    assert moved.groupby("person")["split"].nunique().max() == 1
    assert moved["Male"].tolist() == np.repeat(np.arange(20) % 2, 5).tolist()
    assert (frame["split"] == "test").sum() == 50, "the frame that was given is as it was"


@pytest.mark.parametrize("design", ["one", "person"])
def test_several_pictures_are_bounded_attacked_and_written(
    pictures: Dataset, design: str, tmp_path: Path
) -> None:
    job = {
        "data": pictures,
        "private": "u",
        "utility": "y",
        "records": 5,
        "design": design,
        "target": 0.8,
        "settings": TINY,
        "seed": 0,
        "device": "cpu",
    }
    runs = five_pictures.measure(job)
    assert [run["design"] for run in runs] == [design] + ["more noise"] * (design == "one")
    for run in runs:
        assert sum(run["people"]) == len(np.unique(pictures.part("test").people))
        assert all(0.3 < run[key] < 1 for key in ("log_odds", "model", "each", "most"))
    if design == "one":
        one, noisy = runs
        assert noisy["sigma"] > one["sigma"] and noisy["all"] < 0.85
    asked = argparse.Namespace(
        data="p",
        private="u",
        utility="y",
        records=5,
        people=10,
        targets=[0.8],
        set=TINY,
        set_person=["sigma=0.2"],
        seeds=1,
        machine=None,
        out=tmp_path / "f.json",
    )
    five_pictures.write(asked, runs)
    assert len(tables.read(tmp_path / "f.json").rows) == len(runs)


def test_what_is_read_from_several_releases() -> None:
    """Each release tells a little, five of them more; and which record is which tells nothing."""
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[Any, Any]:
        labels = rng.integers(0, 2, n)
        return labels[:, None, None] * 0.8 + rng.standard_normal((n, 5, 1)), labels

    (taught, labels), (tests, truth) = drawn(4000), drawn(2000)
    one = five_pictures.log_odds(taught[:, :1], labels, tests[:, :1])
    for five in (five_pictures.log_odds, five_pictures.of_all):
        assert five_pictures.balanced(five(taught, labels, tests), truth) > 0.78
    assert five_pictures.balanced(one, truth) < 0.7
    np.testing.assert_allclose(five_pictures.summary(tests), five_pictures.summary(tests[:, ::-1]))
