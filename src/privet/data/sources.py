"""From what a user names to a Dataset: built-in data, a published set in its own layout, a path, or
a frame in memory.

Another package adds a source by an entry point of the group `privet.sources`: a function of what
stands after the colon, the layout of a --schema file, and whether to show progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privet.core.errors import PrivetError, refuse_if, unknown
from privet.core.registry import Registry
from privet.core.stores import Store, is_address
from privet.data.dataset import PARTS, Dataset
from privet.data.folders import TABLES, read_folder
from privet.data.in_memory import as_dataset
from privet.data.part_files import (
    ONLY_PARQUET,
    PARQUET,
    is_pattern,
    read_parquet_files,
    read_part_files,
    read_parts_folder,
    read_stored_files,
)
from privet.data.part_manifest import is_parts_folder
from privet.data.schema_file import Layout, read_layout
from privet.data.table_files import PACKED, READERS, kind_of
from privet.data.tables import read_parquet, read_table_file

# Takes what stands after the colon, a layout, and whether to show progress.
Source = Callable[[str, Layout, bool], Dataset]

# By the name before the colon.
SOURCES: Registry[Source] = Registry(
    "data source",
    {
        "portraits": "privet.data.portraits.source:read_portraits",
        "toy": "privet.data.toys:read_toy",
        "celeba": "privet.data.celeba:read_celeba",
        "lfw": "privet.data.lfw:read_lfw",
        "utkface": "privet.data.utkface:read_utkface",
        "adult": "privet.data.adult:read_adult",
    },
    "privet.sources",
)

# By what the path ends in.
FILES: dict[str, Callable[[Path, Layout, bool], Dataset]] = {
    ".parquet": read_parquet,
    ".pq": read_parquet,
    **dict.fromkeys(READERS, read_table_file),
}


def load(
    spec: Any,
    schema: str | Path | Layout | None = None,
    progress: bool = True,
    new_people: bool = False,
) -> Dataset:
    """The data that `spec` names.

    spec: a built-in name (`portraits`, `toy:gaussian`), a published set (`celeba:DIR`), a file,
        several files of one table (`parts/*.parquet`), a folder of them or of pictures, such files
        in an object store (`s3://bucket/parts/*.parquet`), or rows in memory: a
        frame of pandas or polars, an Arrow table, a dataset of Hugging Face, a mapping of columns.
    schema: a TOML file, or a Layout, that says what the columns are, where the guess would be
        wrong.
    progress: whether to show a bar where reading takes long.
    new_people: put everybody into *test*, whatever a split column says: for people that a release
        was not learned from.

    >>> load("toy:gaussian").attribute("u").kind
    'binary'
    >>> load("portrait")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    privet.core.errors.PrivetError: There is no data source 'portrait'; did you mean...
    """
    layout = read_layout(schema)
    if new_people:
        return _all_in_test(_load(spec, replace(layout, split=False), progress))
    return _load(spec, layout, progress)


def _all_in_test(data: Dataset) -> Dataset:
    """The same data, all of it in *test*."""
    return replace(data, part_of=np.full_like(data.part_of, PARTS.index("test")))


def _load(spec: Any, layout: Layout, progress: bool) -> Dataset:
    if not isinstance(spec, str | Path):
        refuse_if(layout.people is not None, ONLY_PARQUET)
        return as_dataset(spec, layout)
    if not str(spec).strip():
        raise PrivetError("Say which data to read: a name such as portraits, or a path.")
    if is_address(spec):
        return read_stored_files(str(spec), layout, progress)
    name, _, rest = str(spec).partition(":")
    if isinstance(spec, str) and name in SOURCES:
        refuse_if(layout.people is not None, ONLY_PARQUET)
        return SOURCES[name](rest, layout, progress)
    return _read_path(Path(spec).expanduser(), name, layout, progress)


def _read_path(path: Path, name: str, layout: Layout, progress: bool) -> Dataset:
    if path.is_dir():
        return _read_folder(path, layout, progress)
    if is_pattern(path):
        return read_part_files(path, layout, progress)
    if not path.is_file():
        if "/" not in name and not Path(name).suffix:
            raise unknown("data source", name, SOURCES)
        raise PrivetError(f"There is no file or folder {path}.")
    kind = kind_of(path)
    if kind not in FILES:
        raise PrivetError(
            f"{path} is of a kind that is not read: give {', '.join(FILES)}, packed or not "
            f"({', '.join(PACKED)}), or a folder of pictures."
        )
    if not path.stat().st_size:
        raise PrivetError(f"{path} is empty: make it again.")
    if layout.people is not None:
        refuse_if(kind not in PARQUET, ONLY_PARQUET)
        return read_parquet_files([path], path.stem, layout, progress)
    return FILES[kind](path, layout, progress)


def _read_folder(path: Path, layout: Layout, progress: bool) -> Dataset:
    """Released parts with a manifest, parquet files of one table, or pictures."""
    if is_parts_folder(Store(path)):
        return read_parts_folder(Store(path), layout, progress)
    parquet = next(path.glob("*.parquet"), None)
    if parquet is not None and not any(kind_of(one) in TABLES for one in path.iterdir()):
        return read_part_files(path / "*.parquet", layout, progress)
    refuse_if(layout.people is not None, ONLY_PARQUET)
    return read_folder(path, layout, progress)
