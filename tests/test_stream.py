"""Files for `apply`: what a record is written in makes no difference to what is released, and one row is enough."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from privet import PrivetError, Release, nets
from privet.apply import apply
from privet.data.images import read_picture
from privet.data.schema import Column, TableSchema, learn_schema
from privet.data.stream import count, stream_file, stream_pictures
from small import TRACES, small

DATA = {modality: small(modality, 120) for modality in TRACES}


def _png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def _frame(modality: str) -> pd.DataFrame:
    """The test records as somebody would keep them in a file."""
    data = DATA[modality]
    rows = data.part("test").rows
    frame = {
        "image": lambda: pd.DataFrame({"image": [_png(p) for p in data.records[rows]]}),
        "signal": lambda: pd.DataFrame({"window": [w.astype(float).tolist() for w in data.records[rows]]}),
        "text": lambda: pd.DataFrame({"line": data.records[rows]}),
        "table": lambda: data.records.iloc[rows].reset_index(drop=True),
    }[modality]()
    return frame.assign(y=data.labels["y"][rows])


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A release of every modality, of networks that have learned nothing; "vector" takes the numbers of one list."""
    made = {}
    schemas = {modality: learn_schema(data, ["u", "y"]) for modality, data in DATA.items()}
    schemas["vector"] = TableSchema(tuple(Column(f"v{i}", mean=0.1 * i, std=1 + i) for i in range(6)))
    for name, schema in schemas.items():
        torch.manual_seed(0)
        settings = {"width": 0.05}
        made[name] = tmp_path_factory.mktemp(name)
        card = {"method": "none", "private": ["u"]}
        Release(schema, ("extractor", settings), nets.build("extractor", schema, settings), None, card).save(made[name])
    return made


def _apply(folder: Path, *inputs: Path, **more) -> list[np.ndarray]:
    out = apply(folder, inputs, inputs[0].parent / "out.parquet", progress=False, **more)
    return [np.asarray(line) for line in pq.read_table(out)["z"].to_pylist()]


def _same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    """Equal up to the order of sums, which depends on how many records are released at once."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("modality", ["table", "text"])
def test_csv_and_parquet_of_the_same_rows_give_the_same(folders, tmp_path, modality):
    frame = _frame(modality)
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet")
    z = _apply(folders[modality], tmp_path / "in.csv")
    assert len(z) == len(frame) and len({line.tobytes() for line in z}) > 1
    _same(z, _apply(folders[modality], tmp_path / "in.parquet"))


@pytest.mark.parametrize("modality", TRACES)
def test_a_single_row_is_enough(folders, tmp_path, modality):
    frame = _frame(modality)
    frame.to_parquet(tmp_path / "all.parquet")
    frame.iloc[[3]].to_parquet(tmp_path / "one.parquet")
    _same(_apply(folders[modality], tmp_path / "one.parquet"), _apply(folders[modality], tmp_path / "all.parquet")[3:4])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("modality", TRACES)
def test_the_size_of_a_batch_changes_nothing(folders, tmp_path, modality, suffix):
    if suffix == "csv" and modality in ("image", "signal"):
        pytest.skip("a CSV file holds no pictures and no windows")
    frame, path = _frame(modality), tmp_path / f"in.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    release = Release.load(folders[modality])
    parts = list(stream_file(release.schema, path, ["y"], None, 7))
    assert [len(x) for x, _ in parts] == [7, 7, 7, 3] and len(frame) == 24
    assert pd.concat([beside for _, beside in parts])["y"].tolist() == frame["y"].tolist()
    (whole,) = stream_file(release.schema, path, [], None, 1000)
    wanted = release.schema.inputs(DATA[modality].part("test"))[:]
    np.testing.assert_allclose(whole[0], wanted, atol=1e-5)
    for start, (x, _) in zip(range(0, 24, 7), parts, strict=True):
        width = x.shape[1]
        np.testing.assert_allclose(x, wanted[start : start + len(x), :width], atol=1e-5)
        assert modality != "text" or not wanted[start : start + len(x), width:].any()


def test_rows_are_counted_where_that_is_free(tmp_path):
    _frame("table").to_parquet(tmp_path / "in.parquet")
    _frame("table").to_csv(tmp_path / "in.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert [count(tmp_path / name) for name in ("in.parquet", "in.csv", "broken.parquet", "none.parquet")] == [24, 0, 0, 0]


# Pictures.


def test_a_folder_of_pictures_is_its_files_in_order(folders, tmp_path):
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    frame = _frame("image")
    paths = [tmp_path / "in" / ("deeper" if i % 3 == 0 else "") / f"{i:02}.png" for i in range(len(frame))]
    for path, picture in zip(paths, frame["image"], strict=True):
        path.write_bytes(picture)
    (tmp_path / "in" / "labels.csv").write_text("file,u\n")
    out = apply(folders["image"], [tmp_path / "in"], tmp_path / "out", progress=False)
    table = pq.read_table(out)
    assert out == tmp_path / "out" / "released.parquet"
    assert table["file"].to_pylist() == sorted(map(str, paths))
    frame.to_parquet(tmp_path / "in.parquet")
    z = dict(zip(map(str, paths), _apply(folders["image"], tmp_path / "in.parquet"), strict=True))
    _same([np.asarray(line) for line in table["z"].to_pylist()], [z[name] for name in sorted(z)])


@pytest.mark.parametrize("size", [(32, 32), (64, 48), (9, 40), (200, 200)], ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_a_picture_of_another_size_or_colour_is_made_to_fit(folders, tmp_path, size, mode):
    pixels = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3)).astype(np.uint8)
    Image.fromarray(pixels).convert(mode).save(tmp_path / "in.png")
    x = read_picture(tmp_path / "in.png", (32, 32))
    assert x.shape == (3, 32, 32)
    _same(_apply(folders["image"], tmp_path / "in.png"), [Release.load(folders["image"])(x[None]).ravel()])


def test_pictures_are_for_releases_of_pictures(folders, tmp_path):
    Image.new("RGB", (32, 32)).save(tmp_path / "in.png")
    for modality in ("table", "text", "signal"):
        with pytest.raises(PrivetError, match=f"takes a {modality}, not pictures"):
            list(stream_pictures(Release.load(folders[modality]).schema, [tmp_path / "in.png"], 4))


# Numbers in one cell.


def test_a_list_stands_for_the_columns_v0_and_on(folders, tmp_path):
    numbers = np.random.default_rng(0).standard_normal((9, 6))
    pd.DataFrame(numbers, columns=[f"v{i}" for i in range(6)]).to_parquet(tmp_path / "columns.parquet")
    pd.DataFrame({"id": range(9), "embedding": list(numbers)}).to_parquet(tmp_path / "list.parquet")
    nested = [row.reshape(2, 3).tolist() for row in numbers]
    pd.DataFrame({"other": [[0.0]] * 9, "embedding": nested}).to_parquet(tmp_path / "two.parquet")
    wanted = _apply(folders["vector"], tmp_path / "columns.parquet")
    _same(wanted, _apply(folders["vector"], tmp_path / "list.parquet"))
    _same(wanted, _apply(folders["vector"], tmp_path / "two.parquet", column="embedding"))


def test_a_list_that_is_too_short_is_refused(folders, tmp_path):
    pd.DataFrame({"embedding": [[0.0] * 5] * 3}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="needs the column 'v5'"):
        _apply(folders["vector"], tmp_path / "in.parquet")


@pytest.mark.parametrize("form", ["nested", "flat", "bytes"])
def test_a_window_is_a_window_in_any_form(folders, tmp_path, form):
    frame = _frame("signal")
    frame["window"] = [np.asarray(w).astype(np.float16).astype(float).tolist() for w in frame["window"]]
    frame.to_parquet(tmp_path / "nested.parquet")
    frame["window"] = [
        {"nested": w, "flat": np.ravel(w).tolist(), "bytes": np.asarray(w, dtype=np.float16).tobytes()}[form] for w in frame["window"]
    ]
    frame.to_parquet(tmp_path / "in.parquet")
    _same(_apply(folders["signal"], tmp_path / "in.parquet"), _apply(folders["signal"], tmp_path / "nested.parquet"))


@pytest.mark.parametrize(
    "cells",
    [[[[0.0] * 31] * 2], [[[0.0] * 32] * 3], [[0.0] * 63], [b"\0" * 126], [b"\0" * 127], [[0.0] * 64, [0.0] * 63]],
    ids=["short", "a channel more", "flat", "bytes", "half a number", "one of two"],
)
def test_a_window_of_another_shape_is_refused(folders, tmp_path, cells):
    pd.DataFrame({"window": cells}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="not 2 channels x 32 steps"):
        _apply(folders["signal"], tmp_path / "in.parquet")
    assert not (tmp_path / "out.parquet").exists()


# Which column.


@pytest.mark.parametrize("modality", ["image", "text", "signal"])
def test_an_unknown_column_is_said_in_a_sentence(folders, tmp_path, modality):
    frame = _frame(modality)
    frame.to_parquet(tmp_path / "in.parquet")
    name = frame.columns[0]
    with pytest.raises(PrivetError, match=f"no column '{name}s'; did you mean '{name}'"):
        _apply(folders[modality], tmp_path / "in.parquet", column=f"{name}s")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("modality", ["image", "text", "signal"])
def test_a_named_column_is_the_one_that_is_read(folders, tmp_path, modality):
    frame = _frame(modality)
    name = frame.columns[0]
    frame.insert(0, "another", frame[name].iloc[::-1].tolist())
    frame.to_parquet(tmp_path / "in.parquet")
    there = _apply(folders[modality], tmp_path / "in.parquet", column=name)
    _same(_apply(folders[modality], tmp_path / "in.parquet", column="another"), there[::-1])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_of_a_table_are_found_by_name(folders, tmp_path, suffix):
    """In any order, beside others; one that is absent is named."""
    frame = _frame("table")
    for name, table in (("plain", frame), ("mixed", frame[frame.columns[::-1]].assign(more=1))):
        path = tmp_path / f"{name}.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    _same(_apply(folders["table"], tmp_path / f"plain.{suffix}"), _apply(folders["table"], tmp_path / f"mixed.{suffix}"))
    frame.drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(PrivetError, match="needs the column 'c'"):
        _apply(folders["table"], tmp_path / "less.csv")


def test_an_unseen_or_missing_value_of_a_table_is_released(folders, tmp_path):
    frame = _frame("table").iloc[:4]
    frame.assign(colour=["red", "mauve", None, "red"], a=[0.5, 0.5, 0.5, None]).to_csv(tmp_path / "in.csv", index=False)
    z = _apply(folders["table"], tmp_path / "in.csv")
    assert len(z) == 4 and all(np.isfinite(line).all() for line in z)


def test_what_is_kept_is_beside_its_record(folders, tmp_path):
    frame = _frame("table").assign(name=[f"p{i}" for i in range(24)])
    frame.to_csv(tmp_path / "in.csv", index=False)
    table = pq.read_table(apply(folders["table"], [tmp_path / "in.csv"], tmp_path / "out.parquet", ["name", "y"], progress=False))
    assert table.column_names == ["name", "y", "z"]
    assert table["name"].to_pylist() == frame["name"].tolist() and table["y"].to_pylist() == frame["y"].tolist()
    with pytest.raises(PrivetError, match="did you mean 'name'"):
        apply(folders["table"], [tmp_path / "in.csv"], tmp_path / "no.parquet", ["nam"], progress=False)


def test_a_file_without_rows_is_refused(folders, tmp_path):
    _frame("table").iloc[:0].to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(PrivetError, match="no records"):
        _apply(folders["table"], tmp_path / "in.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv"]
