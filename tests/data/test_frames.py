"""Parquet and CSV files: what is guessed, and how a schema file overrules it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.sources import load

N = 60
Schema = Callable[[str], Path]


def write(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A table of 60 rows of 20 people, with a split and a label of three unequal classes."""
    frame = pd.DataFrame(
        {
            "person": [f"p{i // 3}" for i in range(N)],
            "age": np.linspace(18, 80, N),
            "sex": ["f", "m"] * (N // 2),
            "dialect": ["aa"] * 12 + ["white"] * 18 + ["other"] * 30,
            "split": ["train"] * 36 + ["valid"] * 12 + ["test"] * 12,
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def test_a_table_is_what_remains_when_nothing_else_is_there(rows: Path) -> None:
    data = load(rows)
    assert data.modality == "table" and list(data.records.columns) == ["age", "sex", "dialect"]
    assert {a.name: a.kind for a in data.attributes.values()} == {
        "person": "identity",
        "age": "number",
        "sex": "binary",
        "dialect": "categorical",
    }
    assert data.person is not None and len(np.unique(data.person)) == 20
    assert set(data.part("test").rows) == set(range(48, 60)) and set(
        data.part("select").rows
    ) == set(range(36, 48))


def test_csv_and_parquet_of_the_same_rows_are_read_alike(rows: Path, tmp_path: Path) -> None:
    pd.read_csv(rows).to_parquet(tmp_path / "rows.parquet")
    one, other = load(rows), load(str(tmp_path / "rows.parquet"))
    assert one.attributes == other.attributes and one.records.equals(other.records)
    assert all(np.array_equal(one.labels[name], other.labels[name]) for name in one.labels)


def test_bytes_are_pictures_and_a_mask_goes_with_them(
    tmp_path: Path, draw: Callable[..., bytes]
) -> None:
    images = [draw(i, 12, 10, "WEBP") for i in range(N)]
    path = write(
        tmp_path / "a.parquet",
        face=images,
        mask=[draw(i + 1) for i in range(N)],
        other=images,
        glad=[i % 2 for i in range(N)],
    )
    data = load(path)
    assert (
        data.modality == "image"
        and data.records.shape == (N, 3, 12, 10)
        and data.records.dtype == np.uint8
    )
    assert data.attributes["mask"].kind == "mask" and data.labels["mask"].shape == (N, 12, 10)
    assert set(np.unique(data.labels["mask"])) == {0, 1}
    assert set(data.attributes) == {"mask", "glad"} and any("other" in note for note in data.notes)


def test_the_mask_is_cut_as_the_picture_is(
    tmp_path: Path, draw: Callable[..., bytes], schema: Schema
) -> None:
    import io

    from PIL import Image

    def half(width: int, height: int) -> bytes:
        array = np.zeros((height, width), dtype=np.uint8)
        array[:, width // 2 :] = 1
        file = io.BytesIO()
        Image.fromarray(array * 255).convert("1").save(file, "PNG")
        return file.getvalue()

    path = write(tmp_path / "a.parquet", image=[half(40, 20)] * N, mask=[half(40, 20)] * N)
    data = load(path, schema("size = [10, 10]"))
    assert data.labels["mask"].shape == (N, 10, 10)
    assert np.array_equal(data.labels["mask"][0], (data.records[0, 0] > 127).astype(np.uint8))


def test_a_column_called_image_is_preferred(tmp_path: Path, draw: Callable[..., bytes]) -> None:
    path = write(
        tmp_path / "a.parquet", first=[draw(0)] * N, image=[draw(i, 6, 6) for i in range(N)]
    )
    assert load(path).records.shape == (N, 3, 6, 6)


@pytest.mark.parametrize("fixed", [False, True])
def test_nested_lists_are_windows_and_flat_ones_vectors(tmp_path: Path, fixed: bool) -> None:
    numbers = np.random.default_rng(0).normal(size=(N, 3, 8)).astype(np.float32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 8)
    nested = pa.FixedSizeListArray.from_arrays(flat, 3) if fixed else pa.array(numbers.tolist())
    signal = load(write(tmp_path / "s.parquet", moves=nested, walk=[i % 2 for i in range(N)]))
    assert signal.modality == "signal" and np.array_equal(signal.records, numbers)
    row = (
        pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 24)
        if fixed
        else pa.array(numbers.reshape(N, -1).tolist())
    )
    vector = load(write(tmp_path / "v.parquet", word=[f"w{i}" for i in range(N)], vector=row))
    assert vector.modality == "table" and list(vector.records.columns) == [
        f"v{i}" for i in range(24)
    ]
    assert (
        np.array_equal(vector.records.to_numpy(), numbers.reshape(N, -1))
        and vector.attributes["word"].classes == N
    )


def test_windows_in_bytes_find_their_channels_or_ask(tmp_path: Path, schema: Schema) -> None:
    rng, time = np.random.default_rng(0), np.linspace(0, 3, 32)
    waves = np.stack(
        [[k + np.sin(time * (k + 1) + rng.uniform(0, 6)) for k in range(4)] for _ in range(N)]
    ).astype("<f2")
    path = write(
        tmp_path / "w.parquet",
        window=[wave.tobytes() for wave in waves],
        gait=[i % 2 for i in range(N)],
    )
    assert np.array_equal(load(path).records, waves.astype(np.float32))
    assert load(path, schema("shape = [2, 64]")).records.shape == (N, 2, 64)
    noise = rng.normal(size=(N, 97)).astype("<f2")
    path = write(tmp_path / "n.parquet", window=[row.tobytes() for row in noise])
    with pytest.raises(PrivetError, match="shape"):
        load(path)


def test_long_strings_are_texts_and_an_author_is_a_person(tmp_path: Path) -> None:
    texts = [f"the {i}th letter to an old friend" for i in range(N)]
    pd.DataFrame(
        {"author": [i // 4 for i in range(N)], "body": texts, "glad": [i % 2 for i in range(N)]}
    ).to_csv(tmp_path / "t.csv", index=False)
    data = load(tmp_path / "t.csv")
    assert data.modality == "text" and list(data.records) == texts
    assert (
        data.attributes["author"].kind == "identity"
        and data.person is not None
        and len(set(data.person)) == N // 4
    )


def test_missing_values_are_codes_below_zero_and_strangers_are_people(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "person": [None, None, *range(58)],
            "flag": [None, *[0, 1] * 29, 1],
            "word": [None] * 60,
            "n": np.linspace(0, 1, N),
        }
    )
    frame.loc[3, "n"] = None
    path = tmp_path / "m.parquet"
    frame.astype({"word": "str"}).to_parquet(path)
    data = load(path)
    assert (
        data.person is not None
        and len(set(data.person)) == N
        and any("2 records" in note for note in data.notes)
    )
    assert (
        data.labels["flag"][0] == -1
        and set(data.labels["word"]) == {-1}
        and np.isnan(data.labels["n"][3])
    )


def test_names_of_individuals_are_no_input(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(1200)], "age": np.arange(1200.0)})
    frame.to_csv(tmp_path / "n.csv", index=False)
    data = load(tmp_path / "n.csv")
    assert (
        list(data.records.columns) == ["age"]
        and data.attributes["name"].kind == "identity"
        and "name" in data.notes[0]
    )


def test_row_numbers_without_a_name_are_no_input(tmp_path: Path) -> None:
    pd.DataFrame({"age": np.arange(40.0), "sex": ["f", "m"] * 20}).to_csv(tmp_path / "i.csv")
    assert list(load(tmp_path / "i.csv").records.columns) == ["age", "sex"]


def kept(data: Dataset) -> dict[str, int]:
    values, counts = np.unique(data.labels["dialect"], return_counts=True)
    return {
        data.attributes["dialect"].values[v]: int(c) for v, c in zip(values, counts, strict=True)
    }


def test_keep_and_balance_leave_only_classes_that_are_there(rows: Path, schema: Schema) -> None:
    data = load(
        rows, schema('keep = {dialect = ["aa", "white"]}\nbalance = "dialect"\nsplit = false')
    )
    assert kept(data) == {"aa": 12, "white": 12} and data.attributes["dialect"].kind == "binary"
    again = load(
        rows, schema('keep = {dialect = ["aa", "white"]}\nbalance = "dialect"\nsplit = false')
    )
    other = load(
        rows,
        schema('keep = {dialect = ["aa", "white"]}\nbalance = "dialect"\nsplit = false\nseed = 1'),
    )
    assert np.array_equal(data.rows, again.rows) and data.fingerprint == again.fingerprint
    assert not np.array_equal(data.rows, other.rows) and data.fingerprint != other.fingerprint
    assert len(data.records) == N


def test_a_schema_overrules_every_guess(rows: Path, schema: Schema) -> None:
    data = load(
        rows,
        schema(
            'person = false\nsplit = false\ndrop = ["person", "split"]\nlabels ='
            ' ["sex"]\n[attributes.age]\nbins = [30, 60]'
        ),
    )
    assert (
        data.person is None
        and list(data.records.columns) == ["age", "dialect"]
        and set(data.attributes) == {"age", "sex", "dialect"}
    )
    assert data.attributes["age"].values == ("below 30", "30 to 60", "60 or more")
    assert list(load(rows, schema('features = ["sex"]')).records.columns) == ["sex"]
    assert load(rows, schema('modality = "text"\nx = "sex"')).modality == "text"
    assert (
        load(rows, schema("[attributes.sex]\nkind = 'categorical'")).attributes["sex"].kind
        == "categorical"
    )
    data = load(rows, schema('keep = {sex = ["f"]}\ndrop = ["sex"]'))
    assert (
        len(data) == N // 2 and "sex" not in data.attributes and "sex" not in data.records.columns
    )


def test_the_fingerprint_follows_content_and_schema_and_not_the_place(
    rows: Path, tmp_path: Path, schema: Schema
) -> None:
    first = load(rows).fingerprint
    copy = tmp_path / "copy" / "rows.csv"
    copy.parent.mkdir()
    copy.write_bytes(rows.read_bytes())
    assert len(first) == 64 and load(copy).fingerprint == first
    assert load(rows, schema('features = ["sex"]')).fingerprint != first
    copy.write_bytes(rows.read_bytes().replace(b"p0,18.0,f", b"p0,18.0,m"))
    assert load(copy).fingerprint != first
