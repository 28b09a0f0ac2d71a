"""A folder of pictures: with a table that names them and says something about each, or with a
folder for each class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.assemble import assemble, check_columns
from privet.data.cache import content_of, digest
from privet.data.column_roles import holds_words
from privet.data.dataset import Dataset
from privet.data.images import PICTURE_FILES
from privet.data.packing import BrokenPictures, MixedSizes, Picture, common_size, pack
from privet.data.schema_file import Layout
from privet.data.splitting import is_split_name
from privet.data.table_files import TEXT_FILES, kind_of, read_table

# Endings of tables that may name the pictures of their folder.
TABLES = (*TEXT_FILES, ".xlsx", ".jsonl")
_USUAL = ("file", "image", "path", "filename", "file_name")


def read_folder(folder: Path, layout: Layout, progress: bool = True) -> Dataset:
    tables = sorted(path for path in folder.iterdir() if kind_of(path) in TABLES)
    if not tables and (labelled := _by_class(folder)) is not None:
        paths, columns, note = labelled
        return picture_files(folder.resolve().name, paths, columns, layout, [], progress, (note,))
    if len(tables) != 1:
        how_many = "no table" if not tables else f"{len(tables)} tables"
        raise PrivetError(
            f"The folder {folder} holds {how_many}: it needs one, such as a CSV file, that names"
            " the pictures and what is known of each, or a folder of pictures for each class."
        )
    frame, notes = read_table(tables[0])
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
        notes,
        beside=[column],
    )


def _by_class(folder: Path) -> tuple[list[str], pd.DataFrame, str] | None:
    """Pictures in a folder for each class, or in such folders below train, valid and test; with the
    columns that this says, and a note. None where the folder is not of this form."""
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in PICTURE_FILES and path.is_file()
    )
    places = [path.relative_to(folder).parts[:-1] for path in found]
    depths = {len(place) for place in places}
    if depths == {2} and all(is_split_name(split) for split, _ in places):
        columns = pd.DataFrame(places, columns=["split", "class"])
    elif depths == {1}:
        columns = pd.DataFrame(places, columns=["class"])
    else:
        return None
    classes = sorted(columns["class"].unique())
    note = f"The class of a picture is the folder that it lies in: {', '.join(classes[:8])}"
    return [str(path) for path in found], columns, f"{note}{', ...' if len(classes) > 8 else '.'}"


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

    try:
        records = pack(one_by_one, len(paths), content, layout.size, progress=progress)
    except BrokenPictures as error:
        broken = set(error.rows)
        left = [row for row in range(len(paths)) if row not in broken]
        if not layout.skip_broken or not left:
            raise
        paths, columns = [paths[row] for row in left], columns.iloc[left]
        notes = (*notes, error.left_out)
        return picture_files(name, paths, columns, layout, tables, progress, notes, beside)
    except MixedSizes:
        size = common_size(one_by_one())
        note = (
            f"Pictures of different sizes were brought to {size[0]} x {size[1]} pixels, the middle "
            "cut out: set another size in a --schema file."
        )
        sized = replace(layout, size=size)
        return picture_files(name, paths, columns, sized, tables, progress, (*notes, note), beside)
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
