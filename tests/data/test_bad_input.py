"""Every way to get it wrong is answered with one sentence that names what is wrong."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from privet.core.errors import PrivetError
from privet.data.images import read_picture
from privet.data.sources import load

Make = Callable[[Path], str]


def csv(text: str) -> Make:
    def make(folder: Path) -> str:
        (folder / "a.csv").write_text(text)
        return str(folder / "a.csv")

    return make


def parquet(**columns: object) -> Make:
    def make(folder: Path) -> str:
        pq.write_table(pa.table(columns), folder / "a.parquet")
        return str(folder / "a.parquet")

    return make


def raw(name: str, content: bytes) -> Make:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return make


def png(height: int = 4, width: int = 4) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()


def listed(*names: str, content: bytes = png()) -> Make:
    """A folder with ten pictures and a CSV that lists `names` after them."""

    def make(folder: Path) -> str:
        for i in range(10):
            (folder / f"{i}.png").write_bytes(content if i == 9 else png())
        pd.DataFrame({"file": [*(f"{i}.png" for i in range(10)), *names]}).to_csv(
            folder / "list.csv", index=False
        )
        return str(folder)

    return make


ROWS = "a,b\n" + "\n".join(f"{i},{i % 2}" for i in range(20))

SPECS: dict[str, tuple[Make, str]] = {
    "nothing at all": (lambda folder: " ", "portraits"),
    "no such file": (lambda folder: str(folder / "no.parquet"), "no.parquet"),
    "no such source": (lambda folder: "celebb:here", "celeba"),
    "no such word": (lambda folder: "portrait", "portraits"),
    "no folder given": (lambda folder: "celeba", "celeba:DIR"),
    "no such folder": (lambda folder: f"lfw:{folder}/no", "lfw:DIR"),
    "no count": (lambda folder: "portraits:many", "portraits:4000"),
    "no toy": (lambda folder: "toy", "toy:gaussian"),
    "another kind of file": (raw("a.docx", b"x"), "a.docx"),
    "empty file": (raw("a.csv", b""), "a.csv"),
    "empty parquet": (raw("a.parquet", b""), "a.parquet"),
    "broken parquet": (raw("a.parquet", b"PAR1 and then not"), "a.parquet"),
    "parquet cut short": (raw("a.parquet", b"PAR1" + b"\0" * 4000), "a.parquet"),
    "ragged csv": (csv("a,b\n1,2\n1,2,3,4\n"), "a.csv"),
    "packed file that is none": (raw("a.csv.gz", b"a,b\n1,2\n"), "a.csv.gz"),
    "no workbook": (raw("a.xlsx", b"a,b\n1,2\n"), "a.xlsx"),
    "no database": (raw("a.sqlite", b"a,b\n1,2\n" * 200), "a.sqlite"),
    "no json": (raw("a.jsonl", b"{'a': 1}\n"), "a.jsonl"),
    "no feather": (raw("a.feather", b"a,b\n1,2\n"), "a.feather"),
    "header only": (csv("a,b\n"), "a.csv"),
    "parquet without rows": (parquet(a=pa.array([], pa.int64())), "a.parquet"),
    "too few people": (csv("a,b\n1,2\n3,4\n"), "four parts"),
    "unknown split": (csv("a,split\n" + "\n".join(f"{i},maybe" for i in range(20))), "maybe"),
    "broken picture": (parquet(image=[png()] * 9 + [png()[:40]]), "Row 10"),
    "no picture in a row": (parquet(image=[png()] * 9 + [None]), "Row 10"),
    "pictures of two sizes": (parquet(image=[png()] * 9 + [png(5)]), "size = [height, width]"),
    "lists of two lengths": (parquet(v=[[1.0, 2.0]] * 9 + [[1.0]]), "'v'"),
    "bytes of two lengths": (parquet(v=[b"1234"] * 9 + [b"12"]), "'v'"),
    "nothing to use": (parquet(v=[{"a": 1}] * 9), "a.parquet"),
    "folder without csv": (lambda folder: str(folder), "no table"),
    "missing picture": (listed("10.png"), "10.png"),
    "picture outside the folder": (listed("../10.png"), "../10.png"),
    "absolute path": (listed("/etc/hostname"), "/etc/hostname"),
    "no name in a row": (listed(""), "list.csv"),
    "broken picture in a folder": (listed(content=b"no picture"), "9.png"),
    "no column of files": (csv(ROWS), "a.csv"),
}


@pytest.mark.parametrize("case", [case for case in SPECS if case != "no column of files"])
def test_a_wrong_spec_is_one_sentence(case: str, tmp_path: Path) -> None:
    make, names = SPECS[case]
    with pytest.raises(PrivetError) as error:
        load(make(tmp_path), progress=False)
    one_sentence(str(error.value), names)


def test_a_folder_whose_csv_names_no_file_is_one_sentence(tmp_path: Path) -> None:
    csv(ROWS)(tmp_path)
    with pytest.raises(PrivetError) as error:
        load(tmp_path)
    one_sentence(str(error.value), "a.csv")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("modalty = 'image'", "modality"),
        ("modality = 'video'", "image"),
        ("x = 3", "'x'"),
        ("x = 'c'", "'c'"),
        ("size = [64]", "[height, width]"),
        ("size = [0, 64]", "[height, width]"),
        ("person = 'who'", "'who'"),
        ("person = true", "'person'"),
        ("features = 'a'", "'features'"),
        ("features = ['aa']", "'aa'"),
        ("drop = ['a']\nfeatures = ['a']", "'a'"),
        ("keep = {b = []}", "'keep'"),
        ("keep = {b = [7]}", "'7'"),
        ("balance = 'a'", "bins"),
        ("seed = -1", "'seed'"),
        ("[attributes.b]\nkinds = 'number'", "kind"),
        ("[attributes.b]\nkind = 'colour'", "'colour'"),
        ("[attributes.a]\nbins = ['x']", "'a'"),
        ("[attributes.a]\nkind = 'binary'", "categorical"),
        ("[attributes.a]\nkind = 'mask'", "'a'"),
        ("[attributes.c]\nkind = 'number'", "'c'"),
        ("modality = 'signal'", "signal"),
        ("not toml", "schema.toml"),
    ],
)
def test_a_wrong_schema_is_one_sentence(
    text: str, names: str, tmp_path: Path, schema: Callable[[str], Path]
) -> None:
    spec = csv("a,b\n" + "\n".join(f"{i},{i % 2}" for i in range(40)))(tmp_path)
    with pytest.raises(PrivetError) as error:
        load(spec, schema(text))
    one_sentence(str(error.value), names)


def test_no_schema_file_and_a_schema_where_none_fits(
    tmp_path: Path, schema: Callable[[str], Path]
) -> None:
    with pytest.raises(PrivetError, match=r"no\.toml"):
        load(csv(ROWS)(tmp_path), tmp_path / "no.toml")
    with pytest.raises(PrivetError, match="takes no --schema"):
        load("portraits:10", schema("seed = 3"))


@pytest.mark.filterwarnings("ignore:Image size")
def test_a_picture_that_claims_to_be_huge_is_refused_before_it_is_decoded() -> None:
    import struct
    import zlib

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    for width, height in ((10_100, 10_000), (60_000, 60_000)):
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
        with pytest.raises(PrivetError, match="megapixels"):
            read_picture(bomb)


def one_sentence(message: str, names: str) -> None:
    assert names in message
    assert "\n" not in message and message.endswith(".") and len(message) < 400
