"""A folder of pictures with a CSV file that names them and says something about each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.assemble import assemble, check_columns
from privet.data.cache import content_of, digest
from privet.data.column_roles import holds_words
from privet.data.dataset import Dataset
from privet.data.packing import Picture, pack
from privet.data.schema_file import Layout
from privet.data.tables import csv_frame

_USUAL = ("file", "image", "path", "filename", "file_name")


def read_folder(folder: Path, layout: Layout, progress: bool = True) -> Dataset:
    tables = sorted(folder.glob("*.[cC][sS][vV]"))
    if len(tables) != 1:
        how_many = "no CSV file" if not tables else f"{len(tables)} CSV files"
        raise PrivetError(
            f"The folder {folder} holds {how_many}: it needs one that names the pictures and what"
            " is known of each."
        )
    frame = csv_frame(tables[0])
    if layout.modality not in (None, "image"):
        raise PrivetError(
            f"The folder {folder} holds pictures, and the schema asks for {layout.modality}: point"
            " at its CSV instead."
        )
    column = _file_column(folder, frame) if layout.x is None else layout.x
    if column is None or column not in frame.columns:
        raise PrivetError(
            f"No column of {tables[0]} names files in {folder}: name it as x in a --schema file."
        )
    paths = [_inside(folder, name, tables[0]) for name in frame[column].tolist()]
    return picture_files(
        folder.resolve().name,
        paths,
        frame.drop(columns=[column]),
        layout,
        tables,
        progress,
        beside=[column],
    )


def picture_files(
    name: str,
    paths: Sequence[str | Path],
    columns: pd.DataFrame,
    layout: Layout,
    tables: Sequence[Path],
    progress: bool,
    notes: tuple[str, ...] = (),
    beside: Sequence[str] = (),
) -> Dataset:
    """Pictures in files of their own, with `columns` about each; `tables` are the files the columns
    were read from."""
    check_columns(layout, columns.columns, name, beside)
    if not paths:
        raise PrivetError(f"The data set {name} has no pictures: check the folder.")
    content = content_of(paths, progress)

    def one_by_one() -> Iterator[Picture]:
        return (Picture(path, path) for path in map(str, paths))

    records = pack(one_by_one, len(paths), content, layout.size, progress=progress)
    return assemble(
        name, "image", records, columns, layout, digest(content, content_of(tables)), notes=notes
    )


def _file_column(folder: Path, frame: pd.DataFrame) -> str | None:
    """The column of file names: one that is usually called so, or the first of which a value is a
    file here."""
    words = [str(name) for name in frame.columns if holds_words(frame[name])]
    for name in sorted(
        words, key=lambda name: _USUAL.index(name) if name in _USUAL else len(_USUAL)
    ):
        if any((folder / str(value)).is_file() for value in frame[name].dropna().head(100)):
            return name
    return None


def _inside(folder: Path, name: object, table: Path) -> str:
    """A file below the folder. A list from somewhere else must not make a release learn from a file
    of the reader's own."""
    if not isinstance(name, str) or not name.strip():
        raise PrivetError(f"{table} has a row without a file name: fill it in or remove the row.")
    if (
        name.startswith(("/", "\\", "~"))
        or ".." in name.replace("\\", "/").split("/")
        or name[1:2] == ":"
    ):
        raise PrivetError(
            f"{table} names the file '{name}', which is outside {folder}: use names below the"
            " folder."
        )
    return f"{folder}/{name}"
