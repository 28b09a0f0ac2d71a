"""Vectors that a user already has: numpy's .npy and .npz with a table of labels, parquet, or the
export of a vector store; as Arrow tables, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array
from privet.data.table_files import kind_of
from privet.data.vector_columns import depth, read_numbers
from privet.data.vector_stores import is_export, read_export
from privet.data.word_vectors import read_table

# Rows at a time.
AT_ONCE = 4096
NUMPY = (".npy", ".npz")
# The name of the array of vectors, where an archive holds several of two axes.
USUAL = ("vectors", "embeddings", "vector", "embedding", "x", "X")


def holds_vectors(path: Path) -> bool:
    """Whether a file holds vectors already: one that nobody has to make them for."""
    if path.suffix in NUMPY or is_export(path):
        return True
    if path.suffix not in (".parquet", ".pq"):
        return False
    try:
        return any(depth(field.type) == 1 for field in pq.read_schema(path))
    except (pa.ArrowException, OSError):
        return False


def given_vectors(path: Path, labels: Path | None = None) -> Iterator[pa.Table]:
    """The records of a file of vectors as tables with a column `vector`.

    Parameters:
        path: .npy, .npz, .parquet, or the export of a vector store as JSON lines.
        labels: A table with as many rows in the same order, for .npy and .npz.
    """
    refuse_if(
        labels is not None and path.suffix not in NUMPY,
        f"{path.name} holds its own labels: --labels goes with .npy and .npz.",
    )
    if path.suffix in NUMPY:
        return _from_numpy(path, labels)
    if kind_of(path) in (".jsonl", ".ndjson"):
        return read_export(path)
    return _from_parquet(path)


def _from_parquet(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        lists = [field.name for field in file.schema_arrow if depth(field.type) == 1]
        name = "vector" if "vector" in lists else lists[0]
        for batch in file.iter_batches(AT_ONCE):
            table = pa.Table.from_batches([batch])
            numbers = read_numbers(table.column(name), f"The column '{name}' of {path.name}")
            yield with_vectors(table.drop_columns([name]), numbers)


def _from_numpy(path: Path, labels: Path | None) -> Iterator[pa.Table]:
    vectors, columns = _arrays(path)
    beside = pa.table(columns) if labels is None else read_table(labels)
    refuse_if(
        beside.num_columns and len(beside) != len(vectors),
        f"{path.name} has {len(vectors)} vectors, and there are labels for {len(beside)}: one row "
        "for each, in the same order.",
    )
    for start in range(0, len(vectors), AT_ONCE):
        some = np.asarray(vectors[start : start + AT_ONCE], dtype=np.float32)
        yield with_vectors(beside.slice(start, AT_ONCE), some)


def _arrays(path: Path) -> tuple[Array, dict[str, Any]]:
    """The vectors, and the other arrays with one value for each."""
    try:
        content = np.load(
            path, allow_pickle=False, mmap_mode="r" if path.suffix == ".npy" else None
        )
        arrays = {"vectors": content} if isinstance(content, np.ndarray) else dict(content)
    except (OSError, ValueError, EOFError) as error:
        raise PrivetError(f"{path} cannot be read as numpy's arrays ({error}).") from None
    tables = {k: a for k, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "fiu"}
    name = next((name for name in USUAL if name in tables), next(iter(tables), None))
    if name is None or (len(tables) > 1 and name not in USUAL):
        raise PrivetError(
            f"{path.name} has no array of two axes called {USUAL[0]}: {', '.join(arrays)}."
        )
    vectors = tables[name]
    others = {k: a for k, a in arrays.items() if k != name and a.shape == (len(vectors),)}
    return vectors, {k: pa.array(a.tolist()) for k, a in others.items()}


def with_vectors(table: pa.Table, vectors: Array) -> pa.Table:
    """A table with a column `vector`, instead of one that is there."""
    refuse_if(not np.isfinite(vectors).all(), "A vector holds something that is no finite number.")
    cells = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel()), vectors.shape[1]
    )
    others = table.drop_columns(["vector"]) if "vector" in table.column_names else table
    return (
        others.append_column("vector", cells) if others.num_columns else pa.table({"vector": cells})
    )
