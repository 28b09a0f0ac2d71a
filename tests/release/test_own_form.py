"""Records in their own form: pictures as pictures, rows with their columns and units."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import privet
from privet.core.errors import PrivetError
from privet.data.known_attributes import Given, Known
from privet.data.schema import Schema, learn_schema
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions
from privet.release.noise import Noise
from privet.release.own_form import pixels, png
from privet.release.release import Release
from small import small

_SAVED: dict[str, tempfile.TemporaryDirectory[str]] = {}


def veil(schema: Schema, output: str, folder: Path, **more: object) -> Release:
    """A veil that has learned nothing: its form is what is asked about."""
    torch.manual_seed(0)
    settings = {"classes": [2], "dims": 4, "width": 0.05, "output": output, "drawn_as": [1], **more}
    card = {
        "method": "veil",
        "private": ["u"],
        "form": output,
        "classes": {"u": ["no", "yes"]},
    }
    module = nets.build("veil", schema, settings)
    release = Release(schema, ("veil", settings), module, Noise("gaussian", (4,), 1.0), card)
    # Exporting graphs takes most of a test's time: the same release is exported once.
    key = f"{schema!r} {settings}"
    if key not in _SAVED:
        _SAVED[key] = tempfile.TemporaryDirectory()
        release.save(Path(_SAVED[key].name) / "r")
    shutil.copytree(Path(_SAVED[key].name) / "r", folder, dirs_exist_ok=True)
    return release


def photos(folder: Path, n: int = 5) -> list[Path]:
    """Pictures in two folders, with a note in each that must not come out."""
    raw = small("image", 20).records[:n]
    paths = [folder / ("anna" if i % 2 else "bert") / f"{i}.png" for i in range(n)]
    for path, picture in zip(paths, raw, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(picture))
    return paths


def opened(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path)).transpose(2, 0, 1)


@pytest.mark.parametrize("output", ["record", "code"])
def test_a_folder_of_photos_becomes_a_folder_of_pictures(output, tmp_path):
    release = veil(learn_schema(small("image", 60)), output, tmp_path / "r")
    paths = photos(tmp_path / "photos")
    options = ApplyOptions(form="picture", home=tmp_path)
    out = privet.apply(tmp_path / "r", tmp_path / "photos", tmp_path / "out", options=options)
    names = {str(path.relative_to(out)) for path in out.rglob("*.png")}
    assert names == {str(path.relative_to(tmp_path / "photos")) for path in paths}
    about = json.loads((out / "released.json").read_text())
    assert about["leaves"]["form"] == "record" and about["drawn_as"] == {"u": "yes"}
    assert about["leaves"]["kept"] == ["file"] and about["leaves"]["linked_by"] == ["person"]
    # The network draws the same, with the seed's noise.
    again = privet.apply(
        tmp_path / "r", tmp_path / "photos", tmp_path / "again", seed=3, options=options
    )
    x = np.stack([opened(path) for path in sorted(paths)])
    drawn = torch.from_numpy(release(x, seed=3))
    drawn = release.module.draw(drawn) if output == "code" else drawn
    wanted = pixels(drawn.numpy())
    for path, picture in zip(sorted(paths), wanted, strict=True):
        made = opened(again / path.relative_to(tmp_path / "photos"))
        assert np.abs(made.astype(int) - picture).max() <= 1
        assert not Image.open(again / path.relative_to(tmp_path / "photos")).info


def test_releasing_a_photo_again_gives_the_same_picture(tmp_path):
    veil(learn_schema(small("image", 60)), "code", tmp_path / "r")
    (path, *_) = photos(tmp_path / "photos", 1)

    def released(name: str, **more: object) -> bytes:
        options = ApplyOptions(form="picture", home=tmp_path, **more)  # type: ignore[arg-type]
        out = privet.apply(tmp_path / "r", path, tmp_path / name, options=options)
        return (out / "0.png").read_bytes()

    assert released("a") == released("b")
    assert released("c", fresh=True) != released("d", fresh=True)


@pytest.mark.parametrize(("output", "kind"), [("record", "csv"), ("code", "parquet")])
def test_a_row_comes_back_with_its_columns_and_units(output, kind, tmp_path):
    data = small("table", 80)
    frame = data.records.assign(age=np.arange(80) % 60 + 18, paid=np.linspace(900, 9000, 80))
    frame["member"] = np.arange(80) % 3 == 0
    frame["u"] = data.labels["u"]
    frame.to_parquet(tmp_path / "in.parquet")
    schema = learn_schema(privet.load(tmp_path / "in.parquet"), ["u"])
    veil(schema, output, tmp_path / "r")
    privet.apply(
        tmp_path / "r",
        tmp_path / "in.parquet",
        tmp_path / f"out.{kind}",
        options=ApplyOptions(form="row", home=tmp_path),
    )
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    made = read(tmp_path / f"out.{kind}")
    assert list(made.columns) == [column.name for column in schema.columns] and len(made) == 80
    assert "u" not in made.columns
    assert made["age"].dtype == np.int64 and made["member"].dtype == bool
    assert set(made["colour"]) <= set(frame["colour"])
    # An untrained veil gives about the mean in the column's own unit, and not about 0.
    assert abs(made["paid"].mean() - 4950) < 2500 and made["paid"].std() > 0


def test_vectors_keep_their_length_and_their_column(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.normal(5, 2, (80, 7)).astype(np.float32)
    frame = pd.DataFrame({"vector": list(numbers), "u": rng.integers(0, 2, 80)})
    frame.to_parquet(tmp_path / "in.parquet")
    veil(learn_schema(privet.load(tmp_path / "in.parquet"), ["u"]), "record", tmp_path / "r")
    options = ApplyOptions(form="vector", home=tmp_path)
    for kind in ("parquet", "csv"):
        privet.apply(
            tmp_path / "r", tmp_path / "in.parquet", tmp_path / f"out.{kind}", options=options
        )
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["vector"] and {len(v) for v in table["vector"].to_pylist()} == {7}
    assert json.loads(table.schema.metadata[b"privet"])["leaves"]["form"] == "record"
    spread = pd.read_csv(tmp_path / "out.csv")
    assert spread.shape == (80, 7) and abs(spread.to_numpy().mean() - 5) < 2


def test_windows_come_back_in_their_own_units(tmp_path):
    data = small("signal", 80)
    windows = data.records * 10 + 300
    frame = pd.DataFrame({"window": [w.tolist() for w in windows], "u": np.arange(80) % 2})
    frame.to_parquet(tmp_path / "in.parquet")
    veil(learn_schema(privet.load(tmp_path / "in.parquet")), "code", tmp_path / "r")
    options = ApplyOptions(form="window", home=tmp_path)
    privet.apply(tmp_path / "r", tmp_path / "in.parquet", tmp_path / "out.parquet", options=options)
    made = np.array(pq.read_table(tmp_path / "out.parquet")["window"].to_pylist())
    assert made.shape == windows.shape and abs(made.mean() - 300) < 20
    with pytest.raises(PrivetError, match="cannot hold a window"):
        privet.apply(tmp_path / "r", tmp_path / "in.parquet", tmp_path / "out.csv", options=options)


def test_pictures_of_a_table_stay_in_their_column(tmp_path):
    raw = small("image", 20).records[:6]
    frame = pd.DataFrame({"image": [png(one) for one in raw], "y": range(6)})
    frame.to_parquet(tmp_path / "in.parquet")
    veil(learn_schema(small("image", 60)), "code", tmp_path / "r")
    privet.apply(
        tmp_path / "r",
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        keep="y",
        accept="y",
        options=ApplyOptions(form="picture", home=tmp_path),
    )
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.column_names == ["y", "image"] and made["image"][0].as_py().startswith(b"\x89PNG")


def test_raw_pictures_are_never_replaced(tmp_path):
    veil(learn_schema(small("image", 60)), "record", tmp_path / "r")
    paths = photos(tmp_path / "photos")
    before = [path.read_bytes() for path in paths]
    options = ApplyOptions(form="picture", home=tmp_path, force=True)
    with pytest.raises(PrivetError, match="raw picture"):
        privet.apply(tmp_path / "r", tmp_path / "photos", tmp_path / "photos", options=options)
    assert [path.read_bytes() for path in paths] == before


def test_what_has_no_own_form_is_refused(tmp_path):
    image, table = learn_schema(small("image", 60)), learn_schema(small("table", 60), ["u", "y"])
    veil(image, "record", tmp_path / "r")
    (path, *_) = photos(tmp_path / "photos")

    def refused(sentence: str, release: str, *inputs: Path, **more: object) -> None:
        asked = {"form": "picture", "home": tmp_path, **more}
        with pytest.raises(PrivetError, match=sentence):
            options = ApplyOptions(**asked)  # type: ignore[arg-type]
            privet.apply(tmp_path / release, list(inputs), tmp_path / "out", options=options)
        assert not (tmp_path / "out").exists()

    refused("gives no row", "r", path, form="row")
    refused("one of record", "r", path, form="sculpture")
    refused("leave out --as", "r", path, per="person")
    twin = path.with_suffix(".jpg")
    Image.open(path).save(twin)
    refused("rename one", "r", path, twin)
    Release.identity(table).save(tmp_path / "rows")
    pd.DataFrame(small("table", 60).records).to_parquet(tmp_path / "in.parquet")
    refused("privet learn veil", "rows", tmp_path / "in.parquet", form="row")
    told = Given(image, (Known("u", ("no", "yes")),))
    veil(told, "record", tmp_path / "told")
    refused("u", "told", path)


def test_a_decoder_that_was_exchanged_is_not_used(tmp_path):
    veil(learn_schema(small("image", 60)), "code", tmp_path / "r")
    (path, *_) = photos(tmp_path / "photos", 1)
    (tmp_path / "r" / "decoder.onnx").write_bytes((tmp_path / "r" / "release.onnx").read_bytes())
    options = ApplyOptions(form="picture", home=tmp_path)
    with pytest.raises(PrivetError, match="not the file the card was written for"):
        privet.apply(tmp_path / "r", path, tmp_path / "out", options=options)


def test_an_earlier_decoder_does_not_outlive_its_release(tmp_path):
    schema = learn_schema(small("image", 60))
    veil(schema, "code", tmp_path / "r")
    assert (tmp_path / "r" / "decoder.onnx").exists()
    veil(schema, "record", tmp_path / "other").save(tmp_path / "r")
    assert not (tmp_path / "r" / "decoder.onnx").exists()


def test_a_strangers_decoder_is_run_apart_and_draws_the_same(tmp_path, monkeypatch):
    veil(learn_schema(small("image", 60)), "code", tmp_path / "r")
    (path, *_) = photos(tmp_path / "photos", 1)
    options = ApplyOptions(form="picture", home=tmp_path)
    ours = privet.apply(tmp_path / "r", path, tmp_path / "ours", options=options)
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path / "elsewhere"))
    theirs = privet.apply(tmp_path / "r", path, tmp_path / "theirs", options=options)
    np.testing.assert_array_equal(opened(ours / "0.png"), opened(theirs / "0.png"))
