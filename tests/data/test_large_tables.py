"""A table on disk is the same table: columns, labels, people, parts, inputs, weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import privet
from privet.adversaries.linear import Logistic
from privet.core.errors import PrivetError
from privet.data import duplicates, large_tables, stored_table
from privet.data.checks import check_data
from privet.data.duplicates import copies, record_hashes, some_contents
from privet.data.in_memory import from_frame
from privet.data.schema import learn_schema
from privet.data.schema_file import Layout
from privet.data.sources import load
from privet.data.stored_table import StoredTable

ON_DISK = Layout(on_disk=True)


def messy(n: int, seed: int = 0) -> pd.DataFrame:
    """Numbers with and without gaps, words, yes and no, people."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "person": rng.integers(0, n // 2, n),
            "a": rng.normal(size=n) + u,
            "count": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n)),
            "single": rng.normal(size=n).astype(np.float32),
            "whole": rng.integers(0, 10 * n, n).astype(np.int32),
            "word": rng.choice(["x", "yy", "z", None], n),
            "flag": rng.random(n) < 0.5,
            "maybe": rng.choice([True, False, None], n),
            "name": [f"n{i}" for i in rng.permutation(n)],
            "u": np.where(u, "m", "f"),
            "y": rng.integers(0, 3, n),
        }
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, of which 100 rows are read at once."""
    monkeypatch.setenv("PRIVET_CACHE", str(tmp_path / "cache"))
    for module in (stored_table, large_tables):
        monkeypatch.setattr(module, "ROWS", 100)
    monkeypatch.setattr(large_tables._batches, "__defaults__", (100,))
    messy(1100).to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=250)
    return tmp_path / "rows.parquet"


def test_it_is_the_table_that_memory_would_hold(path: Path) -> None:
    memory, disk = load(path), load(path, ON_DISK)
    assert isinstance(disk.records, StoredTable)
    assert list(disk.records.columns) == list(memory.records.columns)
    assert disk.notes == memory.notes
    for data in (lambda whole: whole, lambda whole: whole.part("test")):
        mine, theirs = data(disk), data(memory)
        assert np.array_equal(mine.rows, theirs.rows)
        assert np.array_equal(mine.people, theirs.people)
        for name in memory.records.columns:
            pd.testing.assert_series_equal(
                mine.records.iloc[mine.rows][name],
                theirs.records.iloc[theirs.rows][name].reset_index(drop=True),
                check_names=False,
            )
        for name, attribute in disk.attributes.items():
            assert attribute == memory.attribute(name) or attribute.kind == "identity"
            np.testing.assert_array_equal(mine.labels[name], theirs.labels[name])
            assert mine.labels[name].dtype == theirs.labels[name].dtype
    assert np.array_equal(record_hashes(disk), record_hashes(memory))
    assert check_data(disk, ["u"], ["y"]) == check_data(memory, ["u"], ["y"])


def test_inputs_are_mapped_and_the_same(path: Path) -> None:
    schemas, inputs = [], []
    for data in (load(path), load(path, ON_DISK)):
        schemas.append(learn_schema(data, ["u", "y"], people=2))
        inputs.append(schemas[-1].inputs(data.part("fit")))
    assert schemas[0] == schemas[1]
    assert isinstance(inputs[1].array, np.memmap)
    assert inputs[0][:].tobytes() == inputs[1][:].tobytes()


@pytest.mark.parametrize(
    "method",
    [
        privet.LEACE(),
        privet.Hedge(epochs=2, width=0.1, memory=64, target=0.8),
        privet.Veil(epochs=2, lessons=1, width=0.1, dims=4, batch=64),
        privet.TIPRDC(epochs=1, warmup=1, width=0.1, batch=64),
    ],
    ids=lambda method: method.name,
)
def test_the_same_weights_bit_for_bit(method: privet.Method, path: Path) -> None:
    run = privet.Run(progress=False, device="cpu")
    made = [method.fit(load(path, how), "u", "y", run=run) for how in (None, ON_DISK)]
    memory, disk = (release.module.state_dict() for release in made)
    assert all(torch.equal(value, disk[name]) for name, value in memory.items())
    assert made[0].card["typical"] == made[1].card["typical"]


def test_parts_are_one_table(path: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(path)
    for number, start in enumerate(range(0, len(frame), 400)):
        some = frame.iloc[start : start + 400]
        some.to_parquet(tmp_path / f"part-{number}.parquet", index=False)
    whole, parts = load(path, ON_DISK), load(tmp_path / "part-*.parquet", ON_DISK)
    assert isinstance(parts.records, StoredTable) and "3 files were read" in parts.notes[0]
    assert np.array_equal(whole.part_of, parts.part_of)
    for name in whole.records.columns:
        pd.testing.assert_series_equal(whole.records[name], parts.records[name])


def test_size_decides_where_nobody_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(load(path).records, pd.DataFrame)
    monkeypatch.setattr(large_tables, "LARGE", 1000)
    assert isinstance(load(path).records, StoredTable)
    assert isinstance(load(path, Layout(on_disk=False)).records, pd.DataFrame)


def test_people_with_names_stay_together(path: Path) -> None:
    frame = messy(2400).assign(author=lambda f: "p" + f.pop("person").astype(str))
    frame.to_parquet(path, index=False)
    data = load(path, ON_DISK)
    assert len(frame["author"].unique()) > 1000 and data.person is not None
    pairs = pd.DataFrame({"author": frame["author"], "code": data.person, "part": data.part_of})
    assert (pairs.groupby("author")[["code", "part"]].nunique() == 1).all(axis=None)
    assert data.person.max() + 1 == frame["author"].nunique()


def test_what_needs_memory_is_refused(path: Path) -> None:
    with pytest.raises(PrivetError, match="on_disk = false"):
        load(path, replace(ON_DISK, keep={"u": ("m",)}))
    bins = privet.data.schema_file.Wish(bins=(0.0,))
    with pytest.raises(PrivetError, match="as a number only"):
        load(path, replace(ON_DISK, attributes={"a": bins}))


def test_copies_are_counted_among_some_contents(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = messy(1000)[["a", "u", "y"]]
    pd.concat([frame, frame]).to_parquet(path, index=False)
    monkeypatch.setattr(duplicates, "_MOST", 500)
    data = load(path, ON_DISK)
    some, each = some_contents(data)
    assert each == 4 and 300 < len(some) < 700
    assert copies(some).times == 2
    assert any("one in 4 contents" in c.sentence for c in check_data(data, ["u"], ["y"]))
    assert some_contents(from_frame(frame))[1] == 1


def test_it_can_be_audited(path: Path) -> None:
    figures = []
    for how in (None, ON_DISK):
        data = load(path, how)
        release = privet.LEACE().fit(data, "u", "y")
        battery = privet.Battery((Logistic(),), people=False)
        found = privet.audit(release, data, "y", battery, progress=False, device="cpu")
        figures.append([reading.headline.score for reading in found.readings])
    assert figures[0] == figures[1]
