"""Releasing files: the same bytes however a file is cut, no more in memory than a few chunks, and
nothing read that is not needed."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import privet
from privet.core.errors import PrivetError
from privet.core.json_values import read
from privet.core.parallel_map import in_order
from privet.data.arrow_encoding import encode_batch
from privet.data.known_attributes import Given, Known
from privet.data.schema import Column, ImageSchema, TableSchema, TextSchema, learn_schema
from privet.data.stream import chunks_of_file
from privet.evidence.what_leaves import WhatLeaves
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions, at_once, chunk_rows
from privet.release.apply import apply as apply_files
from privet.release.noise import UNIT, Noise
from privet.release.randomness import NOISE_BATCH
from privet.release.release import Release
from small import small

apply_file = sys.modules[
    "privet.release.apply"
]  # the name privet.release.apply may be the function
ROWS = 2 * NOISE_BATCH + 37
# Records in their order can be compared one by one.
apply = partial(apply_files, options=ApplyOptions(ordered=True))


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[Path, Path, Release]:
    """A hedge release of rows that has learned nothing, and a file of rows over two and a half
    batches, in uneven row groups."""
    folder = tmp_path_factory.mktemp("table")
    data = small("table", ROWS)
    torch.manual_seed(0)
    schema, settings = learn_schema(data, ["u", "y"]), {"dims": 2, "sigma": 0.4, "width": 0.1}
    card = {"method": "hedge", "private": ["u"]}
    release = Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (2,), 0.4),
        card,
    )
    release.save(folder / "release")
    data.records.assign(name=[f"p{i}" for i in range(ROWS)]).to_parquet(
        folder / "in.parquet", row_group_size=100
    )
    return folder / "release", folder / "in.parquet", release


def _numbers(path: Path) -> np.ndarray:
    return np.stack(
        [np.asarray(line, dtype=np.float32) for line in pq.read_table(path)["z"].to_pylist()]
    )


def test_a_file_is_released_as_its_records_are(table, tmp_path):
    folder, path, release = table
    z = _numbers(apply(folder, [path], tmp_path / "out.parquet", ["name"], seed=3, progress=False))
    wanted = release(release.schema.encode(pd.read_parquet(path)), seed=3, batch=NOISE_BATCH)
    np.testing.assert_allclose(z, wanted, atol=2e-4)  # a step of the grid
    assert pq.read_table(tmp_path / "out.parquet")["name"].to_pylist() == [
        f"p{i}" for i in range(ROWS)
    ]


@pytest.mark.parametrize(
    "changed",
    [{"CHUNK": NOISE_BATCH}, {"FLYING_BYTES": 1}, {"GROUP_BYTES": 1, "CHUNK": NOISE_BATCH}],
    ids=str,
)
def test_how_a_file_is_cut_changes_no_byte_of_a_record(table, tmp_path, monkeypatch, changed):
    folder, path, _ = table
    before = _numbers(apply(folder, [path], tmp_path / "one.parquet", seed=3, progress=False))
    for name, value in changed.items():
        monkeypatch.setattr(apply_file, name, value)
    monkeypatch.setattr(apply_file, "cores", lambda: 3)
    np.testing.assert_array_equal(
        before, _numbers(apply(folder, [path], tmp_path / "two.parquet", seed=3, progress=False))
    )
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
    z, again = (
        _numbers(apply(one, [path], tmp_path / "out.parquet", seed=3, progress=False))
        for one in (folder, copy)
    )
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
    monkeypatch.setattr("privet.release.noise.PIECE", 64)
    np.testing.assert_array_equal(whole, noise.draw(7, seed=1))


@pytest.mark.parametrize(
    "schema",
    [
        ImageSchema(3, 64, 64),
        ImageSchema(3, 218, 178),
        ImageSchema(3, 4000, 3000),
        TextSchema(("a",)),
        TableSchema((Column("a"),)),
        TableSchema(tuple(Column(f"v{i}") for i in range(20_000))),
    ],
    ids=lambda s: f"{s.modality} {s.shape}",
)
def test_batches_of_the_graph_fit_into_those_of_the_noise(schema):
    few, rows = at_once(schema), chunk_rows(schema)
    assert NOISE_BATCH % few == 0 and few >= 1 and rows % few == 0 and rows >= few
    assert (
        schema.modality != "text" or few == NOISE_BATCH
    )  # a text is padded to the longest of its batch


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
        pq.ParquetFile,
        "iter_batches",
        lambda *a, columns=None, **k: seen.append(columns) or read(*a, columns=columns, **k),
    )
    for chunk in chunks_of_file(release.schema, path, [], None, NOISE_BATCH):
        x, beside = chunk.encode()
        assert len(x) == len(beside) and not len(beside.columns)
    assert (
        seen[-1] is not None
        and "name" not in seen[-1]
        and set(seen[-1]) == {c.name for c in release.schema.columns}
    )


@pytest.mark.parametrize(
    "values",
    [["b", "a", None, "c", "", "a"], [1, 0, 2, 2, 1, 5], [True, False, True, True, False, False]],
    ids=["words", "numbers", "yes"],
)
def test_a_category_is_found_alike_in_any_kind_of_column(values):
    column = Column("c", values=("a", "b", "1", "2", "True"))
    plain = pd.Series(values, dtype=object)
    narrow = pd.Series(values)
    np.testing.assert_array_equal(column.encode(plain), column.encode(narrow))
    for row, value in zip(column.encode(narrow), values, strict=True):
        assert row.tolist() == [float(str(value) == known) for known in column.values]


WORDS = ["b", "a", None, "c", "", "not known", "a", "1"]
COLUMNS = {
    "words": pa.array(WORDS),
    "long words": pa.array(WORDS, pa.large_string()),
    "a dictionary": pa.array(WORDS).dictionary_encode(),
    "no words": pa.array([None] * 8, pa.string()),
    "floats": pa.array([1.0, np.nan, None, np.inf, -np.inf, 2.5, -0.0, 3.0]),
    "short floats": pa.array(np.arange(8) / 7, pa.float32()),
    "integers": pa.array([1, 2, 3, 0, -5, 1, 2, 7]),
    "integers with gaps": pa.array([1, 2, None, 0, -5, 1, 2, 7]),
    "bytes": pa.array([1, 2, 255, 0, 5, 1, 2, 7], pa.uint8()),
    "yes or no": pa.array([True, False, None, True, True, False, True, False]),
    "dates": pa.array([datetime.date(2020, 1, day) for day in range(1, 9)]),
    "nothing": pa.nulls(8),
}


@pytest.mark.parametrize(
    "values", [(), ("1", "2", "True", "a", "b", "1.0", "2020-01-02")], ids=["number", "category"]
)
@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS)
def test_a_batch_is_encoded_as_its_frame_is(cells, values):
    """Whatever a file holds where the schema has a number or a category, in one piece or in
    several."""
    schema = TableSchema(
        (
            Column("first", 1.0, 2.0),
            Column("it", 0.5, 3.0, values),
            Column("last", values=("x", "y")),
        )
    )
    part = pa.table(
        {"last": ["y", "x", None, "z", "x", "x", "y", "y"], "it": cells, "first": np.arange(8.0)}
    )
    wanted = schema.encode(part.to_pandas())
    assert len(np.unique(wanted)) > 1
    pieces = pa.concat_tables([part.slice(0, 3), part.slice(3)])
    for given in (part, pieces, part.to_batches()[0]):
        np.testing.assert_array_equal(encode_batch(schema, given), wanted)
    np.testing.assert_array_equal(
        encode_batch(schema, part.slice(2, 4)), schema.encode(part.slice(2, 4).to_pandas())
    )
    assert encode_batch(schema, part.slice(0, 0)).shape == (0, wanted.shape[1])


def test_whole_numbers_that_pandas_wrote_with_gaps_stay_whole(tmp_path):
    """They are categories called 1 and 2, not 1.0 and 2.0: the file says that they were of a kind
    that has gaps."""
    pd.DataFrame({"c": pd.array([1, None, 2], dtype="Int64")}).to_parquet(tmp_path / "in.parquet")
    schema = TableSchema((Column("c", values=("1", "2")),))
    (chunk,) = chunks_of_file(schema, tmp_path / "in.parquet", [], None, NOISE_BATCH)
    assert chunk.encode()[0].tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]


def test_what_a_file_lacks_is_said(table, tmp_path):
    folder, path, release = table
    given = Given(release.schema, (Known("u", ("no", "yes")),))
    with pytest.raises(PrivetError, match="uses 'u' of every record"):
        [chunk.encode() for chunk in chunks_of_file(given, path, [], None, NOISE_BATCH)]
    with pytest.raises(PrivetError, match="'nosuch'"):
        apply(folder, [path], tmp_path / "out.parquet", column="nosuch", progress=False)
    first = release.schema.columns[0].name
    pd.read_parquet(path).drop(columns=first).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match=f"needs the column '{first}'"):
        apply(folder, [tmp_path / "in.parquet"], tmp_path / "out.parquet", progress=False)


def test_releasing_does_not_load_pytorch(table, tmp_path):
    """It would cost more memory than a million rows do."""
    folder, path, _ = table
    code = (
        "import sys; from privet.release.apply import apply; apply(*sys.argv[1:2], sys.argv[2:3],"
        " sys.argv[3]); sys.exit('torch' in sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code, folder, path, tmp_path / "out.parquet"],
        check=True,
        timeout=600,
    )


def test_released_numbers_are_not_packed_and_kept_words_are(table, tmp_path):
    folder, path, _ = table
    found = pq.ParquetFile(
        apply(folder, [path], tmp_path / "out.parquet", ["name"], seed=3, progress=False)
    ).metadata.row_group(0)
    packed = {
        found.column(i).path_in_schema.split(".")[0]: found.column(i).compression
        for i in range(found.num_columns)
    }
    assert packed == {"name": "SNAPPY", "z": "UNCOMPRESSED"}


# Keys, order, and what leaves.


def _apply(table, tmp_path, rows=None, keep=("name",), **options) -> pd.DataFrame:
    folder, path, _ = table
    if rows is not None:
        path = tmp_path / "rows.parquet"
        rows.to_parquet(path)
    out = apply_files(
        folder, [path], tmp_path / "out.parquet", keep, progress=False,
        options=ApplyOptions(**options),
    )  # fmt: skip
    frame = pq.read_table(out).to_pandas()
    return frame.assign(z=frame["z"].map(tuple)).set_index("name")


def test_the_same_record_gets_the_same_numbers_again(table, tmp_path):
    folder, path, _ = table
    for name in ("one", "two"):
        apply_files(folder, [path], tmp_path / f"{name}.parquet", ["name"], progress=False)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_who_is_released_with_it_does_not_matter(table, tmp_path):
    _, path, _ = table
    rows = pd.read_parquet(path)
    whole = _apply(table, tmp_path, id="name")
    some = _apply(table, tmp_path, rows.iloc[100:350:5].iloc[::-1], id="name")
    assert (whole["z"][some.index] == some["z"]).all()


@pytest.mark.parametrize("options", [{"campaign": "another"}, {"fresh": True}], ids=str)
def test_another_campaign_and_fresh_noise_give_other_numbers(table, tmp_path, options):
    before, after = _apply(table, tmp_path, id="name"), _apply(table, tmp_path, **options)
    assert (before["z"] != after["z"][before.index]).all()


def test_equal_rows_get_other_noise_and_a_changed_row_too(table, tmp_path):
    _, path, release = table
    rows = pd.read_parquet(path)
    same = pd.concat([rows.iloc[:1]] * 50, ignore_index=True)
    same["name"] = [f"p{i}" for i in range(50)]
    equal = _apply(table, tmp_path, same)
    assert len(set(equal["z"])) == 50
    first = release.schema.columns[0].name
    same.loc[7, first] += 1e-3  # far less than the noise
    changed = _apply(table, tmp_path, same)
    differs = equal["z"] != changed["z"][equal.index]
    assert set(differs[differs].index) == {"p7"}
    same["name"] = "p0"
    assert len(set(_apply(table, tmp_path, same.drop(7), id="name")["z"])) == 1


def test_records_are_shuffled_and_the_file_says_what_leaves(table, tmp_path, monkeypatch):
    monkeypatch.setattr(apply_file, "noise_key", lambda campaign, home: bytes(32))
    folder, path, _ = table
    names = [f"p{i}" for i in range(ROWS)]
    out = tmp_path / "out.parquet"
    for options, ordered in [({}, False), ({"ordered": True}, True)]:
        given = pq.read_table(
            apply_files(
                folder, [path], out, ["name"], progress=False, options=ApplyOptions(**options)
            )
        )
        found = given["name"].to_pylist()
        assert sorted(found) == sorted(names) and (found == names) == ordered
        about = json.loads(given.schema.metadata[b"privet"])
        assert about["noise"] == "keyed"
        leaves = read(WhatLeaves, about["leaves"], "leaves")
        assert leaves == WhatLeaves(
            kept=("name",),
            records=None if ordered else 1,
            linked_by=("order",) if ordered else (),
        )
    place = {name: k for k, name in enumerate(_apply(table, tmp_path).index)}
    rank = np.corrcoef([place[name] for name in names], np.arange(ROWS))[0, 1]
    assert abs(rank) < 4 / np.sqrt(ROWS)


def test_what_names_a_person_links_their_records(table, tmp_path):
    folder, path, _ = table
    out = apply_files(
        folder, [path], tmp_path / "out.parquet", ["name"], progress=False,
        options=ApplyOptions(id="name"),
    )  # fmt: skip
    leaves = json.loads(pq.read_schema(out).metadata[b"privet"])["leaves"]
    assert leaves["linked_by"] == ["person"] and leaves["records"] is None


def test_times_link_records(table, tmp_path):
    _, path, _ = table
    rows = pd.read_parquet(path)
    rows["when"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(rows)), "h")
    _apply(table, tmp_path, rows, keep=("name", "when"))
    leaves = json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"privet"])["leaves"]
    assert leaves["linked_by"] == ["time"] and leaves["records"] is None


def test_an_id_with_gaps_tells_nobody_apart(table, tmp_path):
    _, path, _ = table
    rows = pd.read_parquet(path)
    rows.loc[3, "name"] = None
    with pytest.raises(PrivetError, match="'name' has gaps"):
        _apply(table, tmp_path, rows, keep=(), id="name")
    assert not (tmp_path / "out.parquet").exists()


def test_killed_in_the_middle_it_leaves_no_half_file(table, tmp_path):
    """With buckets on the disk: they have no name, and the file takes its name when it is whole."""
    folder, path, _ = table
    code = (
        "import os, signal, sys\n"
        "import privet.release.shuffle as shuffle\n"
        "from privet.release.apply import apply\n"
        "apply.__globals__['shuffled'] = lambda parts, folder, rows: kill("
        "shuffle.shuffled(parts, folder, rows, room=1000))\n"
        "def kill(parts):\n"
        "    yield next(parts)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "apply(sys.argv[1], [sys.argv[2]], sys.argv[3], ['name'], progress=False)\n"
    )
    out = tmp_path / "out.parquet"
    ended = subprocess.run(
        [sys.executable, "-c", code, folder, path, out], timeout=600, check=False
    )
    assert ended.returncode == -9
    assert not out.exists() and not list(tmp_path.glob("[!.]*"))
    apply_files(folder, [path], out, ["name"], progress=False)
    assert len(pq.read_table(out)) == ROWS


def test_a_csv_file_holds_the_same_numbers(table, tmp_path):
    folder, path, _ = table
    wanted = _numbers(apply(folder, [path], tmp_path / "a.parquet", seed=3, progress=False))
    written = apply(folder, [path], tmp_path / "a.csv", ["name"], seed=3, progress=False)
    assert written == tmp_path / "a.csv" and written.is_file()
    frame = pd.read_csv(written)
    assert list(frame.columns) == ["name", "z0", "z1"] and frame["name"][0] == "p0"
    np.testing.assert_allclose(frame[["z0", "z1"]], wanted, rtol=1e-6)


def test_nothing_is_replaced_unless_asked(table, tmp_path):
    folder, path, _ = table
    target = tmp_path / "a.parquet"
    privet.apply(folder, path, target, seed=3)
    with pytest.raises(PrivetError, match="--force"):
        privet.apply(folder, path, target, seed=4)
    privet.apply(folder, path, target, seed=4, options=ApplyOptions(force=True))
    with pytest.raises(PrivetError, match=r"\.xlsx"):
        privet.apply(folder, path, tmp_path / "a.xlsx", seed=4)
