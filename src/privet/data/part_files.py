"""Several files of one table: `parts/*.parquet`, `people-*.csv`.

Parts have the same columns. The rows are taken in the order of the files' names.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, first_line
from privet.data.cache import content_of
from privet.data.dataset import Dataset
from privet.data.large_tables import is_large, read_large
from privet.data.schema_file import Layout
from privet.data.table_files import READERS, kind_of, read_table
from privet.data.tables import from_plain, read_parquet

PARQUET = (".parquet", ".pq")
# Files that a note names.
NAMED = 6


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several files.

    >>> is_pattern(Path("parts/*.csv")), is_pattern(Path("people.csv"))
    (True, False)
    """
    return glob.has_magic(str(path)) and not path.exists()


def read_part_files(pattern: Path, layout: Layout, progress: bool = True) -> Dataset:
    """All files that match the pattern, as one table."""
    start = Path(pattern.anchor or ".")
    matching = start.glob(str(pattern.relative_to(pattern.anchor)))
    paths = sorted(path for path in matching if path.is_file())
    if not paths:
        raise PrivetError(f"No file matches {pattern}.")
    kinds = sorted({kind_of(path) for path in paths})
    if all(kind in PARQUET for kind in kinds):
        read: Callable[[Path], Any] = _parquet
    elif all(kind in READERS for kind in kinds):
        read = _plain
    else:
        raise PrivetError(
            f"{pattern} matches files that are not parts of one table ({', '.join(kinds)}): give "
            "parquet files, or tables in text."
        )
    name = Path(pattern.name.replace("*", "").strip("-_.") or "parts")
    if read is _parquet and (large := _large(paths, name.stem, layout, progress)) is not None:
        return large
    tables, names, broken = _read_all(paths, read, layout.skip_broken)
    notes = _notes(paths, names, broken)
    content = content_of(names)
    if read is _plain:
        frame = pd.concat(tables, ignore_index=True)
        return from_plain(name, frame, layout, content, tuple(notes))
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder) / f"{name.stem}.parquet"
        pq.write_table(pa.concat_tables(tables, promote_options="permissive"), joined)
        data = read_parquet(joined, layout, progress, content)
    return replace(data, notes=(*notes, *data.notes))


def _large(paths: list[Path], name: str, layout: Layout, progress: bool) -> Dataset | None:
    """The files as one table on disk, where it is large."""
    files, names, broken = _read_all(paths, _opened, layout.skip_broken)
    try:
        if not is_large(files, layout):
            return None
        data = read_large(name, files, layout, content_of(names), progress)
    finally:
        for file in files:
            file.close()
    return data and replace(data, notes=(*_notes(paths, names, broken), *data.notes))


def _notes(paths: list[Path], names: list[Path], broken: list[str]) -> list[str]:
    notes = [f"{len(names)} files were read as one table: {_listed(names)}."]
    if broken:
        notes.append(
            f"{len(broken)} of {len(paths)} files cannot be read and were left out:\n  "
            + "\n  ".join(broken)
        )
    return notes


def _read_all(
    paths: list[Path], read: Callable[[Path], Any], skip_broken: bool
) -> tuple[list[Any], list[Path], list[str]]:
    """The tables, the files that they are from, and a sentence on each file that cannot be read;
    an error that lists all of these, unless they are to be left out."""
    tables, names, broken = [], [], []
    for path in paths:
        try:
            table = read(path)
        except PrivetError as error:
            broken.append(str(error))
            continue
        tables.append(table)
        names.append(path)
    if broken and (not skip_broken or not tables):
        listed = "\n  ".join(broken)
        raise PrivetError(
            f"{len(broken)} of {len(paths)} files cannot be read. Replace or remove them, or leave "
            f"them out with --skip-broken:\n  {listed}"
        )
    for path, table in zip(names, tables, strict=True):
        if set(_columns(table)) != set(_columns(tables[0])):
            other = sorted(set(_columns(table)) ^ set(_columns(tables[0])))
            raise PrivetError(
                f"{path} has not the columns of {names[0]} (only one of the two has: "
                f"{', '.join(other[:NAMED])}): parts of one table have the same."
            )
    return tables, names, broken


def _columns(table: Any) -> list[str]:
    if isinstance(table, pq.ParquetFile):
        return list(table.schema_arrow.names)
    return [str(name) for name in getattr(table, "column_names", None) or table.columns]


def _listed(names: list[Path]) -> str:
    shown = ", ".join(path.name for path in names[:NAMED])
    return shown + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _plain(path: Path) -> pd.DataFrame:
    return read_table(path)[0]


def _opened(path: Path) -> Any:
    return _parquet(path, partial(pq.ParquetFile, buffer_size=1 << 20, pre_buffer=False))


def _parquet(path: Path, read: Callable[[Path], Any] = pq.read_table) -> Any:
    try:
        return read(path)
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{path} cannot be read as parquet ({first_line(error)}).") from None
