"""Tables too large to read whole: some people by a hash, all records of each, the same ones every
time, and nobody in another part because more or fewer were asked for."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parts_of_rows import make_rows, write_rows
from privet.core.errors import PrivetError
from privet.data import people_sample
from privet.data.dataset import PARTS, Dataset
from privet.data.people_sample import distinct, mixed, parts_of
from privet.data.schema_file import Layout
from privet.data.sources import load

ROWS = 4000


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_rows(ROWS).drop(columns=["town", "age"])


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    for i in range(4):
        write_rows(frame[1000 * i : 1000 * i + 1000], folder / f"{i}.parquet")
    return folder


def read(spec: object, people: int | None, **words: object) -> Dataset:
    return load(str(spec), Layout(people=people, **words), progress=False)


def who(data: Dataset) -> dict[str, str]:
    """The part of every person, by name."""
    names = np.array(data.attributes["person"].values)[data.labels["person"]]
    return {name: PARTS[part] for name, part in zip(names, data.part_of, strict=True)}


def test_all_records_of_as_many_people_as_were_asked_for(folder, frame):
    data = read(folder, 200)
    people = frame["person"].nunique()
    assert len(who(data)) == 200
    assert data.sampled[:4] == (200, people, True, "person") and data.sampled.dealt
    assert len(data) == frame["person"].isin(who(data)).sum()
    assert any(f"200 of {people:,} people" in note for note in data.notes)
    assert set(who(data).values()) == set(PARTS)


@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), files=st.integers(1, 5), group=st.sampled_from([50, 999]))
def test_neither_order_nor_files_nor_more_people_change_who_is_taken_and_where(
    folder, frame, tmp_path_factory, seed, files, group
):
    wanted = who(read(folder, 150))
    place = tmp_path_factory.mktemp("again")
    order = np.random.default_rng(seed).permutation(ROWS)
    for i, rows in enumerate(np.array_split(order, files)):
        write_rows(frame.iloc[rows], place / f"{i}.parquet", group)
    assert who(read(place, 150)) == wanted
    more = who(read(place, 300))
    assert wanted.items() <= more.items() and len(more) == 300


def test_numbers_name_the_same_people_in_any_type(frame, tmp_path):
    numbers = frame.assign(person=frame["person"].str[1:].astype(int))
    write_rows(numbers, tmp_path / "whole" / "a.parquet")
    write_rows(numbers.astype({"person": "float64"})[:2000], tmp_path / "mixed" / "a.parquet")
    write_rows(numbers.astype({"person": "int32"})[2000:], tmp_path / "mixed" / "b.parquet")
    first, second = (who(read(tmp_path / name, 150)) for name in ("whole", "mixed"))
    assert first == second


def test_without_names_a_record_is_a_person_and_so_is_one_without_a_name(frame, tmp_path):
    nameless = frame.drop(columns=["person", "id"])
    write_rows(nameless, tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", 500)
    assert len(data) == 500 and data.sampled[1] == ROWS and data.sampled.column is None
    assert "500 of 4,000 records" in data.sampled.sentence
    gaps = frame.assign(person=frame["person"].where(np.arange(ROWS) % 2 == 0))
    write_rows(gaps, tmp_path / "gaps" / "a.parquet")
    found = read(tmp_path / "gaps", 300).sampled
    assert found.of == gaps["person"].nunique() + ROWS // 2


def test_a_split_column_keeps_its_meaning(folder, frame, tmp_path):
    kind = {name: ("train", "valid", "test")[i % 3] for i, name in enumerate(frame["person"])}
    write_rows(frame.assign(split=frame["person"].map(kind)), tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", 300)
    assert not data.sampled.dealt
    assert all((part == "test") == (kind[name] == "test") for name, part in who(data).items())


def test_everybody_is_read_where_there_are_not_more(folder, frame):
    whole, asked = read(folder, None), read(folder, 10**6)
    assert whole.sampled is None and asked.sampled is None and len(whole) == ROWS
    assert whole.fingerprint == asked.fingerprint
    assert whole.content == read(folder, 200).content != ""
    assert read(folder, 200).fingerprint == read(folder, 200).fingerprint != whole.fingerprint


def test_what_would_not_fit_is_sampled_and_that_is_said(folder, frame, monkeypatch):
    size = sum(
        pq.ParquetFile(path).metadata.row_group(i).total_byte_size
        for path in folder.glob("*.parquet")
        for i in range(pq.ParquetFile(path).num_row_groups)
    )
    monkeypatch.setattr(people_sample, "SAMPLE_BYTES", size // 3)
    data = read(folder, None)
    assert abs(data.sampled.people / data.sampled.of - 1 / 3) < 0.01
    assert any("fit into" in note and "--people" in note for note in data.notes)


def test_the_sample_has_no_favourites(frame):
    """How often a person is taken does not depend on their name, over many salts."""
    names = pa.table({"person": [f"p{i}" for i in range(400)]})
    taken = np.zeros(400)
    for seed in range(200):
        reader = people_sample._Reader([], 0, "person", seed, False)
        hashes = reader._who(names, "x", 0)
        taken += hashes <= np.sort(hashes)[99]
    deviation = np.sqrt(200 * 0.25 * 0.75)
    assert taken.sum() == 200 * 100
    assert np.abs(taken - 50).max() < 4.5 * deviation
    assert abs(taken[:200].mean() - 50) < 4.5 * deviation / np.sqrt(200)


def test_parts_are_dealt_by_their_shares_and_not_by_the_sample():
    words = mixed(np.arange(40_000, dtype=np.uint64))
    for some in (words, np.sort(words)[:4000]):
        shares = np.bincount(parts_of(some), minlength=4) / len(some)
        assert np.abs(shares - (0.4, 0.3, 0.1, 0.2)).max() < 4.5 * np.sqrt(0.25 / len(some))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=300), st.integers(1, 50))
def test_people_are_counted_once(hashes, size):
    array = np.array(hashes, np.uint64)
    kept, count = distinct([array[i : i + size] for i in range(0, len(array), size)])
    assert count == len(set(hashes)) and kept.tolist() == sorted(set(hashes))


def test_more_people_than_are_counted_are_estimated():
    words = mixed(np.arange(200_000, dtype=np.uint64))
    kept, count = distinct(np.array_split(words, 50), most=4000)
    assert len(kept) == 4000 and abs(count / 200_000 - 1) < 5 / np.sqrt(4000)


@pytest.mark.parametrize("people", [1, 99])
def test_few_are_no_sample(folder, people):
    with pytest.raises(PrivetError, match="at least 100"):
        read(folder, people)


def test_only_parquet_is_sampled(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    for spec in ("toy:gaussian", tmp_path / "a.csv", tmp_path / "*.csv"):
        with pytest.raises(PrivetError, match="parquet"):
            read(spec, 200)
    with pytest.raises(PrivetError, match="parquet"):
        load(frame, Layout(people=200))


def test_memory_does_not_grow_with_the_table(tmp_path):
    """Twice as many files, no more memory: what is held is the sample and some batches."""
    random = np.random.default_rng(0)
    for i in range(8):
        rows = pd.DataFrame(random.standard_normal((8000, 12)), columns=list("abcdefghijkl"))
        rows["u"] = random.integers(0, 2, 8000)
        rows["person"] = [f"{i}-{k // 4}" for k in range(8000)]
        write_rows(rows, tmp_path / f"{i}.parquet", 2000)
    peaks = []
    read(tmp_path / "[0-1].parquet", 200)
    for pattern in ("[0-3].parquet", "[0-7].parquet"):
        tracemalloc.start()
        arrow = pa.total_allocated_bytes()
        read(tmp_path / pattern, 200)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - arrow < 4 << 20
    assert peaks[1] < 1.3 * peaks[0] + (2 << 20)


def test_a_broken_file_in_the_middle_is_named(folder, tmp_path):
    for path in folder.iterdir():
        content = path.read_bytes()
        broken = content[:4] + b"\xff" * 200 + content[204:]  # its footer is whole
        (tmp_path / path.name).write_bytes(broken if path.name == "2.parquet" else content)
    with pytest.raises(PrivetError, match=r"2.parquet cannot be read"):
        read(tmp_path, 200)
    data = load(str(tmp_path), Layout(people=200, skip_broken=True), progress=False)
    assert any("2.parquet" in note and "left out" in note for note in data.notes)
