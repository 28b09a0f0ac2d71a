"""Files for `apply`: what a record is written in makes no difference to what is released, and one
row is enough."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from privet import PrivetError, Release
from privet.data.images import read_picture
from privet.data.schema import Column, Schema, TableSchema, learn_schema
from privet.data.stream import count, stream_file, stream_pictures
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions
from privet.release.apply import apply as apply_files
from small import TRACES, small

# Records in their order can be compared one by one.
apply = partial(apply_files, options=ApplyOptions(ordered=True))
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
        "signal": lambda: pd.DataFrame(
            {"window": [w.astype(float).tolist() for w in data.records[rows]]}
        ),
        "text": lambda: pd.DataFrame({"line": data.records[rows]}),
        "table": lambda: data.records.iloc[rows].reset_index(drop=True),
    }[modality]()
    return frame.assign(y=data.labels["y"][rows])


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Releases of networks that have learned nothing. (Windows are compared as they are encoded:
    exporting takes seconds.)"""
    made = {}
    for modality in ("image", "table", "text"):
        torch.manual_seed(0)
        schema, settings, made[modality] = (
            learn_schema(DATA[modality], ["u", "y"]),
            {"width": 0.05},
            tmp_path_factory.mktemp(modality),
        )
        card = {"method": "none", "private": ["u"]}
        Release(
            schema, ("extractor", settings), nets.build("extractor", schema, settings), None, card
        ).save(made[modality])
    return made


def _apply(folder: Path, path: Path, keep: Sequence[str] = ("y",), **more) -> list[np.ndarray]:
    out = apply(folder, [path], path.parent / "out.parquet", keep, progress=False, **more)
    return [np.asarray(line) for line in pq.read_table(out)["z"].to_pylist()]


def _encoded(schema: Schema, path: Path, column: str | None = None) -> np.ndarray:
    ((x, _),) = stream_file(schema, path, [], column, 1000)
    return x


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


@pytest.mark.parametrize("modality", ["image", "table", "text"])
def test_a_single_row_is_enough(folders, tmp_path, modality):
    frame = _frame(modality)
    frame.to_parquet(tmp_path / "all.parquet")
    frame.iloc[[3]].to_parquet(tmp_path / "one.parquet")
    _same(
        _apply(folders[modality], tmp_path / "one.parquet"),
        _apply(folders[modality], tmp_path / "all.parquet")[3:4],
    )


FORMS = [
    (modality, suffix)
    for modality in TRACES
    for suffix in ("csv", "parquet")
    if suffix == "parquet" or modality in ("table", "text")
]


@pytest.mark.parametrize("modality,suffix", FORMS)
def test_the_size_of_a_batch_changes_nothing(tmp_path, modality, suffix):
    frame, path = _frame(modality), tmp_path / f"in.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    schema = learn_schema(DATA[modality], ["u", "y"])
    parts = list(stream_file(schema, path, ["y"], None, 7))
    assert [len(x) for x, _ in parts] == [7, 7, 7, 3] and len(frame) == 24
    assert pd.concat([beside for _, beside in parts])["y"].tolist() == frame["y"].tolist()
    wanted = schema.inputs(DATA[modality].part("test"))[:]
    np.testing.assert_allclose(_encoded(schema, path), wanted, atol=1e-5)
    for start, (x, _) in zip(range(0, 24, 7), parts, strict=True):
        width = x.shape[1]
        np.testing.assert_allclose(x, wanted[start : start + len(x), :width], atol=1e-5)
        assert modality != "text" or not wanted[start : start + len(x), width:].any()


def test_rows_are_counted_where_that_is_free(tmp_path):
    _frame("table").to_parquet(tmp_path / "in.parquet")
    _frame("table").to_csv(tmp_path / "in.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert [
        count(tmp_path / name)
        for name in ("in.parquet", "in.csv", "broken.parquet", "none.parquet")
    ] == [24, 0, 0, 0]


# Pictures.


def test_a_folder_of_pictures_is_its_files_in_order(folders, tmp_path):
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    frame = _frame("image")
    paths = [
        tmp_path / "in" / ("deeper" if i % 3 == 0 else "") / f"{i:02}.png"
        for i in range(len(frame))
    ]
    for path, picture in zip(paths, frame["image"], strict=True):
        path.write_bytes(picture)
    (tmp_path / "in" / "labels.csv").write_text("file,u\n")
    out = apply(folders["image"], [tmp_path / "in"], tmp_path / "out", ["file"], progress=False)
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
    _same(
        _apply(folders["image"], tmp_path / "in.png", ()),
        [Release.load(folders["image"])(x[None]).ravel()],
    )


def test_pictures_are_for_releases_of_pictures(tmp_path):
    Image.new("RGB", (32, 32)).save(tmp_path / "in.png")
    for modality in ("table", "text", "signal"):
        with pytest.raises(PrivetError, match=f"takes a {modality}, not pictures"):
            list(stream_pictures(learn_schema(DATA[modality]), [tmp_path / "in.png"], 4))


# Numbers in one cell.


VECTOR = TableSchema(tuple(Column(f"v{i}", mean=0.1 * i, std=1 + i) for i in range(6)))


def test_a_list_stands_for_the_columns_v0_and_on(tmp_path):
    numbers = np.random.default_rng(0).standard_normal((9, 6))
    pd.DataFrame(numbers, columns=[f"v{i}" for i in range(6)]).to_parquet(
        tmp_path / "columns.parquet"
    )
    pd.DataFrame({"id": range(9), "embedding": list(numbers)}).to_parquet(tmp_path / "list.parquet")
    pd.DataFrame({"other": [[0.0]] * 9, "embedding": list(numbers)}).to_parquet(
        tmp_path / "two.parquet"
    )
    wanted = (numbers - 0.1 * np.arange(6)) / (1 + np.arange(6))
    for name, column in (("columns", None), ("list", None), ("two", "embedding")):
        np.testing.assert_allclose(
            _encoded(VECTOR, tmp_path / f"{name}.parquet", column), wanted, atol=1e-6
        )


def test_a_list_that_is_too_short_is_refused(tmp_path):
    pd.DataFrame({"embedding": [[0.0] * 5] * 3}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="needs the column 'v5'"):
        _encoded(VECTOR, tmp_path / "in.parquet")


@pytest.mark.parametrize("form", ["nested", "flat", "bytes"])
@pytest.mark.parametrize("n", [1, 5])
def test_a_window_is_a_window_in_any_form(tmp_path, form, n):
    windows = DATA["signal"].records[:n].astype(np.float16)
    write = {
        "nested": lambda w: w.astype(float).tolist(),
        "flat": lambda w: w.ravel().astype(float).tolist(),
        "bytes": lambda w: w.tobytes(),
    }
    pd.DataFrame({"id": range(n), "window": [write[form](w) for w in windows]}).to_parquet(
        tmp_path / "in.parquet"
    )
    schema = learn_schema(DATA["signal"])
    np.testing.assert_allclose(
        _encoded(schema, tmp_path / "in.parquet"), schema.encode(windows), atol=1e-6
    )


@pytest.mark.parametrize(
    "cells",
    [
        [[[0.0] * 31] * 2],
        [[[0.0] * 32] * 3],
        [[0.0] * 63],
        [b"\0" * 126],
        [b"\0" * 127],
        [[0.0] * 64, [0.0] * 63],
    ],
    ids=["short", "a channel more", "flat", "bytes", "half a number", "one of two"],
)
def test_a_window_of_another_shape_is_refused(tmp_path, cells):
    pd.DataFrame({"window": cells}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="not 2 channels x 32 steps"):
        _encoded(learn_schema(DATA["signal"]), tmp_path / "in.parquet")


# Which column.


@pytest.mark.parametrize("modality", ["image", "text", "signal"])
def test_an_unknown_column_is_said_in_a_sentence(tmp_path, modality):
    frame = _frame(modality)
    frame.to_parquet(tmp_path / "in.parquet")
    name = frame.columns[0]
    with pytest.raises(PrivetError, match=f"no column '{name}s'; did you mean '{name}'"):
        _encoded(learn_schema(DATA[modality]), tmp_path / "in.parquet", f"{name}s")


def test_nothing_is_left_behind_where_a_column_is_unknown(folders, tmp_path):
    _frame("text").to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="did you mean 'line'"):
        _apply(folders["text"], tmp_path / "in.parquet", column="lines")
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("modality", ["image", "text", "signal"])
def test_a_named_column_is_the_one_that_is_read(tmp_path, modality):
    frame, schema = _frame(modality), learn_schema(DATA[modality])
    name = frame.columns[0]
    frame.insert(0, "another", frame[name].iloc[::-1].tolist())
    frame.to_parquet(tmp_path / "in.parquet")
    one, other = (_encoded(schema, tmp_path / "in.parquet", column) for column in (name, "another"))
    np.testing.assert_array_equal(one, other[::-1])
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_of_a_table_are_found_by_name(folders, tmp_path, suffix):
    """In any order, beside others; one that is absent is named."""
    frame = _frame("table")
    for name, table in (("plain", frame), ("mixed", frame[frame.columns[::-1]].assign(more=1))):
        path = tmp_path / f"{name}.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    _same(
        _apply(folders["table"], tmp_path / f"plain.{suffix}"),
        _apply(folders["table"], tmp_path / f"mixed.{suffix}"),
    )
    frame.drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(PrivetError, match="needs the column 'c'"):
        _apply(folders["table"], tmp_path / "less.csv")


def test_an_unseen_or_missing_value_of_a_table_is_released(folders, tmp_path):
    frame = _frame("table").iloc[:4]
    frame.assign(colour=["red", "mauve", None, "red"], a=[0.5, 0.5, 0.5, None]).to_csv(
        tmp_path / "in.csv", index=False
    )
    z = _apply(folders["table"], tmp_path / "in.csv")
    assert len(z) == 4 and all(np.isfinite(line).all() for line in z)


def test_what_is_kept_is_beside_its_record(folders, tmp_path):
    frame = _frame("table").assign(name=[f"p{i}" for i in range(24)])
    frame.to_csv(tmp_path / "in.csv", index=False)
    table = pq.read_table(
        apply(
            folders["table"],
            [tmp_path / "in.csv"],
            tmp_path / "out.parquet",
            ["name", "y"],
            progress=False,
        )
    )
    assert table.column_names == ["name", "y", "z"]
    assert (
        table["name"].to_pylist() == frame["name"].tolist()
        and table["y"].to_pylist() == frame["y"].tolist()
    )
    with pytest.raises(PrivetError, match="did you mean 'name'"):
        apply(
            folders["table"],
            [tmp_path / "in.csv"],
            tmp_path / "no.parquet",
            ["nam"],
            progress=False,
        )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_nothing_need_be_kept(folders, tmp_path, suffix):
    frame, path = _frame("table"), tmp_path / f"in.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    assert len(_apply(folders["table"], path, ())) == len(frame)
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["z"]


def test_a_file_without_rows_is_refused(folders, tmp_path):
    _frame("table").iloc[:0].to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(PrivetError, match="no records"):
        _apply(folders["table"], tmp_path / "in.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def test_an_unknown_column_of_lists(tmp_path):
    pd.DataFrame({"embedding": [[0.0] * 6] * 3}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="did you mean 'embedding'"):
        _encoded(VECTOR, tmp_path / "in.parquet", "embeding")


@pytest.mark.parametrize(
    "cells", [[[0.0] * 6, [0.0] * 5], [[0.0] * 6, None]], ids=["ragged", "missing"]
)
def test_lists_that_are_not_of_one_length_are_refused(tmp_path, cells):
    pd.DataFrame({"embedding": cells}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="equally many"):
        _encoded(VECTOR, tmp_path / "in.parquet")


def test_a_missing_window_is_refused(tmp_path):
    pd.DataFrame({"window": [[0.0] * 64, None]}).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError, match="not 2 channels x 32 steps"):
        _encoded(learn_schema(DATA["signal"]), tmp_path / "in.parquet")


@pytest.mark.parametrize("modality", ["image", "signal"])
def test_a_column_of_another_kind_is_refused(tmp_path, modality):
    _frame(modality).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(PrivetError):
        _encoded(learn_schema(DATA[modality]), tmp_path / "in.parquet", "y")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_missing_text_is_an_empty_one(tmp_path, suffix):
    frame, path = (
        pd.DataFrame({"line": [None, "word1 word2"], "y": [0, 1]}),
        tmp_path / f"in.{suffix}",
    )
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    schema = learn_schema(DATA["text"])
    np.testing.assert_array_equal(_encoded(schema, path), schema.encode(["", "word1 word2"]))


def test_every_batch_is_read_from_the_same_column(tmp_path):
    pd.DataFrame({"a": ["word1 word2"] * 2, "b": ["w", "word3 word4 word5"]}).to_csv(
        tmp_path / "in.csv", index=False
    )
    one, other = (
        x for x, _ in stream_file(learn_schema(DATA["text"]), tmp_path / "in.csv", [], None, 1)
    )
    np.testing.assert_array_equal(one, other)


def test_a_kept_column_that_changes_its_kind_is_said_in_a_sentence(folders, tmp_path):
    frame = pd.concat([_frame("table")] * 200, ignore_index=True).assign(
        k=[None] * 4500 + ["x"] * 300
    )
    frame.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(PrivetError, match="kept column"):
        _apply(folders["table"], tmp_path / "in.csv", ["k"])
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def test_words_that_cannot_be_meant_are_refused(folders, tmp_path):
    _frame("table").assign(z=1).to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(PrivetError, match="written as 'z'"):
        _apply(folders["table"], tmp_path / "in.csv", ["z"])
    with pytest.raises(PrivetError, match="Give pictures"):
        apply(folders["table"], [], tmp_path / "out.parquet", progress=False)
    (tmp_path / "in.png").write_bytes(_frame("image")["image"][0])
    with pytest.raises(PrivetError, match="no columns"):
        _apply(folders["image"], tmp_path / "in.png", ["y"])
