"""Records in random order, also where they do not fit in memory.

Every record carries a random word of 64 bits, and records are sorted by it: with independent words
that is a uniformly random order, which does not depend on how a file was cut into tables. What does
not fit in memory is sorted in two passes: first into 256 buckets by the leading bits, in a file
without a name that vanishes with the process, then bucket by bucket.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from privet.core.errors import PrivetError
from privet.data.dataset import Array

# The column of the random words.
PLACE = "__place__"
# Bytes of records that are held in memory.
ROOM = 16 << 20
# A bucket is chosen by so many bits.
BITS = 8


def shuffled(
    tables: Iterable[pa.Table], folder: Path, rows: int, room: int = ROOM, used_bits: int = 0
) -> Iterator[pa.Table]:
    """The records of all tables, sorted by their random words, without these.

    Parameters:
        tables: With a column PLACE of words.
        folder: On a disk with room for all records.
        rows: How many records a table that comes out has, at most.
        room: Bytes of records to hold in memory.
        used_bits: Leading bits that are alike in all words.
    """
    held: list[pa.Table] = []
    size = 0
    spill: _Spill | None = None
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size > room and used_bits < 64:
            spill = spill or _Spill(folder, 64 - BITS - used_bits)
            spill.add(pa.concat_tables(held))
            held, size = [], 0
    if spill is None:
        if held:
            whole = pa.concat_tables(held)
            whole = _take(whole, np.argsort(_places(whole), kind="stable")).drop_columns([PLACE])
            yield from (whole.slice(start, rows) for start in range(0, len(whole), rows))
        return
    if held:
        spill.add(pa.concat_tables(held))
    del held
    with spill:
        for bucket in range(1 << BITS):
            yield from shuffled(spill.read(bucket), folder, rows, room, used_bits + BITS)


class _Spill:
    """Buckets of records in one file that has no name."""

    def __init__(self, folder: Path, shift: int) -> None:
        self.shift = np.uint64(shift)
        self.pieces: list[list[tuple[int, int]]] = [[] for _ in range(1 << BITS)]
        try:
            self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise PrivetError(f"Cannot write to {folder}: {error.strerror}.") from None

    def __enter__(self) -> _Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def add(self, table: pa.Table) -> None:
        buckets = (_places(table) >> self.shift) & np.uint64((1 << BITS) - 1)
        sorted_table = _take(table, np.argsort(buckets, kind="stable"))
        ends = np.cumsum(np.bincount(buckets.astype(np.int64), minlength=1 << BITS))
        start = 0
        for bucket, end in enumerate(ends.tolist()):
            if end > start:
                self._write(bucket, sorted_table.slice(start, end - start))
            start = end

    def _write(self, bucket: int, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        try:
            start = self.file.seek(0, 2)
            self.file.write(content)
        except OSError as error:
            raise PrivetError(
                f"There is no room for the records while they are shuffled ({error.strerror}): "
                "free some of the disk, or keep their order with --ordered."
            ) from None
        self.pieces[bucket].append((start, len(content)))

    def read(self, bucket: int) -> Iterator[pa.Table]:
        for start, size in self.pieces[bucket]:
            self.file.seek(start)
            yield pa.ipc.open_stream(pa.py_buffer(self.file.read(size))).read_all()


def _places(table: pa.Table) -> Array:
    return table[PLACE].to_numpy()  # type: ignore[no-any-return]


def _take(table: pa.Table, order: Array) -> pa.Table:
    """Rows in another order. Lists of one length are moved as a matrix, which is faster."""
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # more than one array can hold
            column = pa.concat_arrays(column.chunks)
        if pa.types.is_fixed_size_list(column.type) and not column.null_count:
            size = column.type.list_size
            values = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), size)
            columns[name] = pa.FixedSizeListArray.from_arrays(
                pa.array(np.ascontiguousarray(values[order]).ravel()), size
            )
        else:
            columns[name] = column.take(pa.array(order))
    return pa.table(columns, schema=None)
