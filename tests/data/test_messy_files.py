"""Files as people have them: each is read as what it is, or refused in one sentence."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.schema_file import Layout
from privet.data.sources import load
from privet.data.stream import frames_of
from privet.data.table_files import dialect_of

N = 60


def people() -> pd.DataFrame:
    """Sixty rows with a number, a class and a word that is not in ASCII."""
    return pd.DataFrame(
        {
            "age": np.linspace(18, 80, N).round(1),
            "sex": ["f", "m"] * (N // 2),
            "city": ["Köln", "Paris", "Łódź"] * (N // 3),
        }
    )


def western() -> pd.DataFrame:
    """The same without letters that Windows-1252 has not."""
    return people().replace({"city": {"Łódź": "Málaga"}})


def text(name: str, frame: pd.DataFrame | None = None, **options: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        rows = people() if frame is None else frame
        rows.to_csv(folder / name, index=False, **options)  # type: ignore[call-overload]
        return folder / name

    return write


def quoted(folder: Path) -> Path:
    """Cells that hold the delimiter, a quote and the end of a line."""
    rows = people()
    rows["city"] = ['a, "b"', "c;d", "e\nf"] * (N // 3)
    rows.to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def as_json(name: str, form: Callable[[pd.DataFrame], str]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(form(people()), encoding="utf-8")
        return folder / name

    return write


def packed_lines(folder: Path) -> Path:
    content = people().to_json(orient="records", lines=True, force_ascii=False).encode()
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(content))
    return folder / "a.jsonl.gz"


def feather(folder: Path) -> Path:
    people().to_feather(folder / "a.feather")
    return folder / "a.feather"


def workbook(folder: Path) -> Path:
    pytest.importorskip("openpyxl")
    people().to_excel(folder / "a.xlsx", index=False)
    return folder / "a.xlsx"


def database(folder: Path) -> Path:
    with sqlite3.connect(folder / "a.sqlite") as connection:
        people().to_sql("people", connection, index=False)
    connection.close()
    return folder / "a.sqlite"


SAME = {
    "comma": text("a.csv"),
    "semicolon": text("a.csv", sep=";"),
    "semicolon and decimal comma": text("a.csv", sep=";", decimal=","),
    "tab": text("a.tsv", sep="\t"),
    "tab in a file called csv": text("a.csv", sep="\t"),
    "bar": text("a.txt", sep="|"),
    "byte order mark": text("a.csv", encoding="utf-8-sig"),
    "UTF-16": text("a.csv", encoding="utf-16"),
    "gzip": text("a.csv.gz"),
    "bzip2": text("a.csv.bz2"),
    "xz": text("a.tsv.xz", sep="\t"),
    "zip": text("a.csv.zip"),
    "ends of lines of Windows": text("a.csv", lineterminator="\r\n"),
    "row numbers of pandas": lambda folder: (
        people().to_csv(folder / "a.csv"),
        folder / "a.csv",
    )[1],
    "JSON lines": as_json("a.jsonl", lambda f: f.to_json(orient="records", lines=True)),
    "JSON lines, packed": packed_lines,
    "list of JSON objects": as_json("a.json", lambda f: json.dumps(f.to_dict(orient="records"))),
    "Feather": feather,
    "Excel": workbook,
    "SQLite": database,
    "upper case ending": text("A.CSV"),
}


@pytest.mark.parametrize("form", SAME)
def test_a_table_is_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    path = SAME[form](tmp_path)
    data = load(path)
    assert data.modality == "table" and list(data.records.columns) == ["age", "sex", "city"]
    pd.testing.assert_frame_equal(data.records.reset_index(drop=True), people(), check_dtype=False)
    in_parts = pd.concat(frames_of(path, 7), ignore_index=True)
    pd.testing.assert_frame_equal(in_parts[list(people())], people(), check_dtype=False)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_an_old_encoding_is_read_and_said(encoding: str, tmp_path: Path) -> None:
    data = load(text("a.csv", western(), encoding=encoding)(tmp_path))
    assert data.attribute("city").values == ("Köln", "Málaga", "Paris")
    assert any("Windows-1252" in note for note in data.notes)


def test_an_old_encoding_far_down_is_read_too(tmp_path: Path) -> None:
    rows = pd.DataFrame({"age": np.arange(30_000) % 71, "city": "Koeln"})
    rows.loc[29_990:, "city"] = "Köln"
    rows.to_csv(tmp_path / "a.csv", index=False, encoding="latin-1")
    assert load(tmp_path / "a.csv").attribute("city").values == ("Koeln", "Köln")


def test_quoted_cells_do_not_confuse_the_dialect(tmp_path: Path) -> None:
    path = quoted(tmp_path)
    assert dialect_of(path).delimiter == ","
    assert load(path).attribute("city").values == ('a, "b"', "c;d", "e\nf")


IDS: dict[str, tuple[list[object], str]] = {
    "UUIDs": ([str(uuid.UUID(int=i * 12345678901234567890)) for i in range(N)], "UUIDs"),
    "e-mail addresses": ([f"person.{i}@example.org" for i in range(N)], "e-mail addresses"),
    "web addresses": ([f"https://example.org/people/{i}" for i in range(N)], "web addresses"),
    "dates": ([f"2026-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(N)], "dates"),
    "row numbers": (list(range(1000, 1000 + N)), "row numbers"),
    "one value": (["x"] * N, "one value"),
    "names": ([f"Person{i:03}" for i in range(N)], "names of individuals"),
}


@pytest.mark.parametrize("kind", IDS)
def test_what_names_a_row_is_no_input_and_no_text(kind: str, tmp_path: Path) -> None:
    cells, reason = IDS[kind]
    rows = people()
    rows.insert(0, "customer_id", cells)
    rows.to_csv(tmp_path / "a.csv", index=False)
    data = load(tmp_path / "a.csv")
    assert data.modality == "table" and list(data.records.columns) == ["age", "sex", "city"]
    assert any(reason in note and "customer_id" in note for note in data.notes)


def test_a_column_of_sentences_is_still_text(tmp_path: Path) -> None:
    rows = people()
    rows["said"] = [f"I was born in {1900 + i} and live here" for i in range(N)]
    rows.to_csv(tmp_path / "a.csv", index=False)
    assert load(tmp_path / "a.csv").modality == "text"


def test_a_table_of_nothing_but_ids_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"mail": [f"p{i}@example.org" for i in range(N)]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    with pytest.raises(PrivetError, match="e-mail addresses"):
        load(tmp_path / "a.csv")


def picture(height: int, width: int, shade: int = 0) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


def album(folder: Path, names: list[str], contents: list[bytes]) -> Path:
    for name, content in zip(names, contents, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_photos_of_different_sizes_are_brought_to_one(tmp_path: Path) -> None:
    names = [f"{i}.png" for i in range(12)]
    album(tmp_path, names, [picture(300 + 10 * i, 200) for i in range(12)])
    pd.DataFrame({"file": names, "y": [0, 1] * 6}).to_csv(tmp_path / "list.csv", index=False)
    data = load(tmp_path, progress=False)
    assert data.records.shape == (12, 3, 128, 72)
    assert any("different sizes" in note for note in data.notes)


def by_class(prefix: str = "") -> list[str]:
    return [f"{prefix}{name}/{i}.png" for name in ("cat", "dog") for i in range(6)]


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    data = load(album(tmp_path, by_class(), [picture(8, 8, i) for i in range(12)]), progress=False)
    assert data.attribute("class").values == ("cat", "dog") and len(data) == 12
    assert data.labels["class"].tolist() == [0] * 6 + [1] * 6


def test_a_folder_for_each_class_below_each_part(tmp_path: Path) -> None:
    names = [name for part in ("train/", "valid/", "test/") for name in by_class(part)]
    data = load(album(tmp_path, names, [picture(8, 8, i) for i in range(36)]), progress=False)
    assert len(data.part("test")) == 12 and "split" not in data.attributes


def broken_album(folder: Path) -> Path:
    contents = [picture(8, 8, i) for i in range(12)]
    contents[0], contents[7] = b"no picture", contents[7][:20]
    return album(folder, by_class(), contents)


def test_every_broken_picture_is_named(tmp_path: Path) -> None:
    with pytest.raises(PrivetError) as error:
        load(broken_album(tmp_path), progress=False)
    message = str(error.value)
    assert "2 of 12" in message and "cat/0.png" in message and "dog/1.png" in message
    assert "--skip-broken" in message


def test_broken_pictures_are_left_out_when_asked(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text("skip_broken = true\n")
    folder = broken_album(tmp_path / "photos")
    data: Dataset = load(folder, tmp_path / "schema.toml", progress=False)
    assert len(data) == 10
    [note] = [note for note in data.notes if "2 of 12 pictures" in note]
    assert "cat/0.png" in note and "dog/1.png" in note
    assert load(folder, tmp_path / "schema.toml", progress=False).fingerprint == data.fingerprint


def test_broken_pictures_in_a_table_are_left_out_when_asked(tmp_path: Path) -> None:
    cells = [picture(8, 8, i) for i in range(12)]
    cells[3] = b"\x89PNG\r\n\x1a\n and no more"
    rows = pd.DataFrame({"image": cells, "y": [0, 1] * 6})
    rows.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(PrivetError, match="Row 4"):
        load(tmp_path / "a.parquet", progress=False)
    data = load(tmp_path / "a.parquet", Layout(skip_broken=True), progress=False)
    assert len(data) == 11 and data.records.shape[0] == 11
    assert data.labels["y"].tolist() == [0, 1, 0, *[0, 1] * 4]
    assert any("1 of 12" in note and "Row 4" in note for note in data.notes)


def parts(folder: Path, kind: str) -> Path:
    """The same sixty rows in three files."""
    for i in range(3):
        rows = people().iloc[20 * i : 20 * i + 20]
        if kind == "parquet":
            rows.to_parquet(folder / f"part-{i}.parquet")
        else:
            rows.to_csv(folder / f"part-{i}.{kind}", index=False)
    return folder / f"part-*.{kind}"


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_files_of_one_table_are_read_as_one(kind: str, tmp_path: Path) -> None:
    data = load(parts(tmp_path, kind))
    pd.testing.assert_frame_equal(data.records.reset_index(drop=True), people(), check_dtype=False)
    assert any("3 files" in note for note in data.notes)
    assert load(tmp_path / f"*.{kind}").fingerprint == data.fingerprint


@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_every_broken_part_is_named_and_left_out_when_asked(kind: str, tmp_path: Path) -> None:
    pattern = parts(tmp_path, kind)
    for i in (0, 2):
        (tmp_path / f"part-{i}.{kind}").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(PrivetError, match=r"2 of 3 files .*--skip-broken[^$]*part-0[^$]*part-2"):
        load(pattern)
    data = load(pattern, Layout(skip_broken=True))
    assert len(data) == 20 and any("part-0" in note and "part-2" in note for note in data.notes)


def test_parts_of_different_tables_are_refused(tmp_path: Path) -> None:
    pattern = parts(tmp_path, "csv")
    people().assign(extra=1).to_csv(tmp_path / "part-1.csv", index=False)
    with pytest.raises(PrivetError, match=r"part-1.csv has not the columns .* extra"):
        load(pattern)
    with pytest.raises(PrivetError, match="No file matches"):
        load(tmp_path / "none-*.csv")
    (tmp_path / "part-3.jpg").write_bytes(picture(8, 8))
    with pytest.raises(PrivetError, match="not parts of one table"):
        load(tmp_path / "part-*")
