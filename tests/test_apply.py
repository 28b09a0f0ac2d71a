"""Releasing files: the same bytes however a file is cut, no more in memory than a few chunks, and nothing read that is not needed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from privet import nets
from privet.apply import BATCH, apply, at_once, chunk_rows
from privet.data.ahead import in_order
from privet.data.schema import Column, ImageSchema, TableSchema, TextSchema, learn_schema
from privet.data.stream import chunks_of_file
from privet.errors import PrivetError
from privet.noise import UNIT, Noise
from privet.release import Release
from small import small

apply_file = sys.modules["privet.apply"]  # the name privet.apply may be the function
ROWS = 2 * BATCH + 37


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[Path, Path, Release]:
    """A hedge release of rows that has learned nothing, and a file of rows over two and a half batches, in uneven row groups."""
    folder = tmp_path_factory.mktemp("table")
    data = small("table", ROWS)
    torch.manual_seed(0)
    schema, settings = learn_schema(data, ["u", "y"]), {"dims": 2, "sigma": 0.4, "width": 0.1}
    card = {"method": "hedge", "private": ["u"]}
    release = Release(schema, ("hedge", settings), nets.build("hedge", schema, settings), Noise("gaussian", (2,), 0.4), card)
    release.save(folder / "release")
    data.records.assign(name=[f"p{i}" for i in range(ROWS)]).to_parquet(folder / "in.parquet", row_group_size=100)
    return folder / "release", folder / "in.parquet", release


def _numbers(path: Path) -> np.ndarray:
    return np.stack([np.asarray(line, dtype=np.float32) for line in pq.read_table(path)["z"].to_pylist()])


def test_a_file_is_released_as_its_records_are(table, tmp_path):
    folder, path, release = table
    z = _numbers(apply(folder, [path], tmp_path / "out.parquet", ["name"], seed=3, progress=False))
    wanted = release(release.schema.encode(pd.read_parquet(path)), seed=3, batch=BATCH)
    np.testing.assert_allclose(z, wanted, atol=2e-4)  # a step of the grid
    assert pq.read_table(tmp_path / "out.parquet")["name"].to_pylist() == [f"p{i}" for i in range(ROWS)]


@pytest.mark.parametrize("changed", [{"CHUNK": BATCH}, {"FLYING_BYTES": 1}, {"GROUP_BYTES": 1, "CHUNK": BATCH}], ids=str)
def test_how_a_file_is_cut_changes_no_byte_of_a_record(table, tmp_path, monkeypatch, changed):
    folder, path, _ = table
    before = _numbers(apply(folder, [path], tmp_path / "one.parquet", seed=3, progress=False))
    for name, value in changed.items():
        monkeypatch.setattr(apply_file, name, value)
    monkeypatch.setattr(apply_file, "cores", lambda: 3)
    np.testing.assert_array_equal(before, _numbers(apply(folder, [path], tmp_path / "two.parquet", seed=3, progress=False)))
    other = _numbers(apply(folder, [path], tmp_path / "three.parquet", seed=4, progress=False))
    assert (np.abs(before - other) > 1e-3).mean() > 0.9


def test_the_same_seed_gives_the_same_file(table, tmp_path):
    folder, path, _ = table
    for name in ("one", "two"):
        apply(folder, [path], tmp_path / f"{name}.parquet", ["name"], seed=3, progress=False)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_releasing_needs_the_graph_and_not_the_weights(table, tmp_path):
    folder, path, _ = table
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("card.json", "release.onnx"):
        (copy / name).write_bytes((folder / name).read_bytes())
    z, again = (_numbers(apply(one, [path], tmp_path / "out.parquet", seed=3, progress=False)) for one in (folder, copy))
    np.testing.assert_array_equal(z, again)
    (copy / "release.onnx").write_bytes((folder / "release.onnx").read_bytes() + b"\0")
    with pytest.raises(PrivetError, match="not the file the card was written for"):
        apply(copy, [path], tmp_path / "out.parquet", progress=False)


@pytest.mark.parametrize("law", UNIT)
def test_noise_can_begin_in_the_middle(law):
    noise = Noise(law, (3, None), 1.0)
    whole = noise.draw(20, 5, seed=7)
    np.testing.assert_array_equal(whole[5:9], noise.draw(4, 5, seed=7, skip=5))
    assert not np.array_equal(whole[:4], noise.draw(4, 5, seed=8))
    assert len(np.unique(whole)) == whole.size


def test_noise_in_pieces_is_noise_at_once(monkeypatch):
    noise = Noise("gaussian", (1000,), 1.0)
    whole = noise.draw(7, seed=1)
    monkeypatch.setattr("privet.noise.PIECE", 64)
    np.testing.assert_array_equal(whole, noise.draw(7, seed=1))


@pytest.mark.parametrize(
    "schema",
    [
        ImageSchema(3, 64, 64), ImageSchema(3, 218, 178), ImageSchema(3, 4000, 3000), TextSchema(("a",)), TableSchema((Column("a"),)),
        TableSchema(tuple(Column(f"v{i}") for i in range(20_000))),
    ],
    ids=lambda s: f"{s.modality} {s.shape}",
)  # fmt: skip
def test_batches_of_the_graph_fit_into_those_of_the_noise(schema):
    few, rows = at_once(schema), chunk_rows(schema)
    assert BATCH % few == 0 and few >= 1 and rows % few == 0 and rows >= few
    assert schema.modality != "text" or few == BATCH  # a text is padded to the longest of its batch


def test_only_a_few_results_are_made_ahead():
    begun, lock = [], threading.Lock()

    def work(item: int) -> int:
        with lock:
            begun.append(item)
        return item

    for taken in in_order(work, range(50), workers=4, ahead=5):
        assert len(begun) <= taken + 7
    assert sorted(begun) == list(range(50))


def test_the_first_error_in_order_is_the_one_that_is_raised():
    def work(item: int) -> int:
        if item >= 3:
            raise PrivetError(f"item {item}")
        return item

    found = []
    with pytest.raises(PrivetError, match="item 3"):
        for item in in_order(work, range(100), workers=4, ahead=8):
            found.append(item)
    assert found == [0, 1, 2]


def test_columns_that_nobody_asked_for_are_not_read(table, monkeypatch):
    _, path, release = table
    seen = []
    read = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *a, columns=None, **k: seen.append(columns) or read(*a, columns=columns, **k)
    )
    for chunk in chunks_of_file(release.schema, path, [], None, BATCH):
        x, beside = chunk.encode()
        assert len(x) == len(beside) and not len(beside.columns)
    assert seen[-1] is not None and "name" not in seen[-1] and set(seen[-1]) == {c.name for c in release.schema.columns}


@pytest.mark.parametrize(
    "values", [["b", "a", None, "c", "", "a"], [1, 0, 2, 2, 1, 5], [True, False, True, True, False, False]], ids=["words", "numbers", "yes"]
)
def test_a_category_is_found_alike_in_any_kind_of_column(values):
    column = Column("c", values=("a", "b", "1", "2", "True"))
    plain = pd.Series(values, dtype=object)
    narrow = pd.Series(values)
    np.testing.assert_array_equal(column.encode(plain), column.encode(narrow))
    for row, value in zip(column.encode(narrow), values, strict=True):
        assert row.tolist() == [float(str(value) == known) for known in column.values]
