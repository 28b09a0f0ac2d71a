"""A range of a parquet file's rows, in the very chunks that data/stream.py would cut the whole file
into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, unknown
from privet.data.schema import Schema
from privet.data.stream import Chunk, encoded_rows, frames_of, needed_columns, record_column


def chunks_within(
    schema: Schema, path: Path, keep: Sequence[str], column: str | None, rows: int, within: range
) -> Iterator[Chunk]:
    """As data.stream.chunks_of_file, of the rows `within` a range that starts at a multiple of
    `rows`."""
    first = next((frame for frame in frames_of(path, rows) if len(frame)), None)
    if first is None:
        return
    for name in keep:
        if name not in first.columns:
            raise unknown(f"column in {path.name}:", name, map(str, first.columns))
    # By the first rows of the file and not of the range: all ranges must choose alike.
    column = column or record_column(schema.plain, first, f"{path}, rows from 1 on")
    table = _read(path, rows, needed_columns(schema, first, column, keep), within)
    for start in range(0, len(table), rows):
        where = f"{path}, rows from {within.start + start + 1} on"
        yield Chunk(
            within.start + start,
            partial(encoded_rows, schema, table.slice(start, rows), keep, column, where),
        )


def _read(path: Path, rows: int, columns: list[str] | None, within: range) -> pa.Table:
    """The rows of the range, from the row groups that it touches."""
    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            ends = np.cumsum(
                [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            )
            starts = np.concatenate([[0], ends[:-1]])
            groups = np.flatnonzero((ends > within.start) & (starts < within.stop))
            at, found = int(starts[groups[0]]), []
            for batch in file.iter_batches(
                batch_size=rows, row_groups=groups.tolist(), columns=columns
            ):
                low, high = max(within.start - at, 0), min(within.stop - at, len(batch))
                found += [batch.slice(low, high - low)] if low < high else []
                at += len(batch)
            return pa.Table.from_batches(found)
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(
            f"{path} cannot be read as parquet ({str(error).strip().splitlines()[0].rstrip('.')})."
        ) from None
