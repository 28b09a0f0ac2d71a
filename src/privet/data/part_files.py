"""Several files of one table: `parts/*.parquet`, `people-*.csv`, a folder of parts with a manifest.

Parts have the same columns. The rows are taken in the order of the files' names. Parquet files are
read a little at a time. A large table of them is kept on disk (large_tables.py), or people are
sampled (people_sample.py).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, first_line, refuse_if
from privet.core.progress import bar
from privet.core.stores import Store, StoredFile, matching
from privet.data.cache import content_of, digest
from privet.data.dataset import Dataset, Sampled
from privet.data.large_tables import is_large, read_large
from privet.data.part_manifest import check_part, finished_manifest, is_parts_folder
from privet.data.people_sample import ROWS_AT_ONCE, SAMPLE_BYTES, Joined, TableFile, joined
from privet.data.schema_file import Layout
from privet.data.stream import opened_parquet
from privet.data.table_files import READERS, kind_of, read_table
from privet.data.tables import from_plain, read_parquet

PARQUET = (".parquet", ".pq")
# Files that a note names.
NAMED = 6
ONLY_PARQUET = "--people samples the people of tables in parquet: save the table as parquet first."


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
    name = Path(pattern.name.replace("*", "").strip("-_.") or "parts").stem
    if all(kind in PARQUET for kind in kinds):
        # A folder of parts is called after itself.
        name = name if name != "parquet" else pattern.resolve().parent.name
        return read_parquet_files(paths, name, layout, progress)
    if not all(kind in READERS for kind in kinds):
        raise PrivetError(
            f"{pattern} matches files that are not parts of one table ({', '.join(kinds)}): give "
            "parquet files, or tables in text."
        )
    refuse_if(layout.people is not None, ONLY_PARQUET)
    tables, names, broken = _read_all(paths, lambda path: read_table(path)[0], layout.skip_broken)
    frame = pd.concat(tables, ignore_index=True)
    return from_plain(Path(name), frame, layout, content_of(names), _notes(names, paths, broken))


def read_parquet_files(
    paths: Sequence[Path], name: str, layout: Layout, progress: bool = True
) -> Dataset:
    """Parquet files as one table, read a little at a time. A large one is kept on disk unless a
    number of people is asked for; of what cannot be, people are sampled where they are too many."""
    if layout.people is None and (large := _large(paths, name, layout, progress)) is not None:
        return large
    read = _read_through if layout.skip_broken else _read_schema
    _, whole, broken = _read_all(list(paths), read, layout.skip_broken)
    root = os.path.commonpath([path.resolve().parent for path in whole])
    files = [TableFile(str(path.resolve().relative_to(root)), path) for path in whole]
    notes = _notes(whole, paths, broken) if len(paths) > 1 else ()
    return _read_joined(files, name, layout, progress, content_of(whole), notes)


def read_parts_folder(store: Store, layout: Layout, progress: bool = True) -> Dataset:
    """A folder of parts with a manifest, each checked against its hash."""
    files, content = checked_parts(store, progress)
    name = store.address.rpartition("/")[2] or "parts"
    notes = (f"{len(files)} parts were read, and their hashes are those of the manifest.",)
    return _read_joined(files, name, layout, progress, content, notes)


@contextmanager
def parts_as_file(store: Store, layout: Layout, progress: bool = True) -> Iterator[Joined]:
    """A folder of parts with a manifest, each checked against its hash, as one file for a while; a
    sample of its people where they are too many."""
    files, _ = checked_parts(store, progress)
    name = store.address.rpartition("/")[2] or "parts"
    with joined(files, name, layout, progress) as table:
        yield table


def checked_parts(store: Store, progress: bool = True) -> tuple[list[TableFile], str]:
    """The parts that a folder's manifest names, and a digest that stands for their bytes;
    PrivetError where one is not what the manifest says."""
    manifest = finished_manifest(store)
    with bar("checking parts", len(manifest.parts), progress) as tick:
        for done, part in enumerate(manifest.parts, 1):
            check_part(store, part)
            tick(done)
    files = [TableFile(part.name, store.file(part.name)) for part in manifest.parts]
    return files, digest(*(part.sha256 for part in manifest.parts))


def read_stored_files(address: str, layout: Layout, progress: bool = True) -> Dataset:
    """A folder of parts, or parquet files, in an object store."""
    store = Store(address)
    if not glob.has_magic(address) and is_parts_folder(store):
        return read_parts_folder(store, layout, progress)
    pattern = f"{address}*.parquet" if address.endswith("/") else address
    found = [StoredFile(one) for one in matching(pattern)]
    refuse_if(not found, f"No file matches {pattern}.")
    refuse_if(any(Path(one.name).suffix not in PARQUET for one in found), ONLY_PARQUET)
    files = [TableFile(str(one), one) for one in found]
    content = digest(*(word for one in found for word in (one, one.version())))
    name = Path(found[0].name).stem if len(found) == 1 else "parts"
    return _read_joined(files, name, layout, progress, content, ())


def _read_joined(
    files: Sequence[TableFile],
    name: str,
    layout: Layout,
    progress: bool,
    content: str,
    notes: tuple[str, ...],
) -> Dataset:
    with joined(files, name, layout, progress) as table:
        sampled = table.sampled
        read = content if sampled is None else digest(content, "people", *sampled)
        data = read_parquet(table.path, layout, progress, read)
    if sampled is not None:
        notes = (*notes, sample_note(sampled))
    return replace(data, notes=(*notes, *data.notes), content=content, sampled=sampled)


def sample_note(sampled: Sampled) -> str:
    """What is said of a sample where data is read."""
    if sampled.asked is not None:
        return sampled.sentence
    return (
        f"{sampled.sentence} Its table is to fit into {SAMPLE_BYTES >> 30} GB of memory; --people "
        "N takes another number."
    )


def _large(paths: Sequence[Path], name: str, layout: Layout, progress: bool) -> Dataset | None:
    """The files as one table on disk, where it is large."""
    files, whole, broken = _read_all(list(paths), _opened, layout.skip_broken)
    try:
        if not is_large(files, layout):
            return None
        data = read_large(name, files, layout, content_of(whole), progress)
    finally:
        for file in files:
            file.close()
    return data and replace(data, notes=(*_notes(whole, paths, broken), *data.notes))


def _notes(names: Sequence[Path], paths: Sequence[Path], broken: Sequence[str]) -> tuple[str, ...]:
    notes = [f"{len(names)} files were read as one table: {_listed(names)}."]
    if broken:
        notes.append(
            f"{len(broken)} of {len(paths)} files cannot be read and were left out:\n  "
            + "\n  ".join(broken)
        )
    return tuple(notes)


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
        table = table.schema_arrow
    return [str(name) for name in (table.names if isinstance(table, pa.Schema) else table.columns)]


def _listed(names: Sequence[Path]) -> str:
    shown = ", ".join(path.name for path in names[:NAMED])
    return shown + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _opened(path: Path) -> Any:
    try:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{path} cannot be read as parquet ({first_line(error)}).") from None


def _read_schema(path: Path) -> pa.Schema:
    try:
        with opened_parquet(path) as file:
            return file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{path} cannot be read as parquet ({first_line(error)}).") from None


def _read_through(path: Path) -> pa.Schema:
    """The same after all of the file was read, a little at a time."""
    schema = _read_schema(path)
    try:
        with opened_parquet(path) as file:
            for _ in file.iter_batches(batch_size=ROWS_AT_ONCE):
                pass
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{path} cannot be read as parquet ({first_line(error)}).") from None
    return schema
