"""Ranges of rows of a parquet file, a few rows at a time.

A row group can be read from its beginning only. Ranges that follow each other are therefore read in
one pass: else cutting one large row group into n parts would read its first rows n times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privet.core.errors import PrivetError, first_line
from privet.core.stores import AnyFile
from privet.data.stream import frames_of, opened_parquet


class RangeReader:
    """Reads ranges of rows, each from where the one before it ended if it can.

    Parameters:
        rows: Of a table that is given, at most.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._looked_at: tuple[AnyFile, pd.DataFrame | None] | None = None
        self._file: Any = None
        # What the pass is over: a file and some of its columns.
        self._pass: tuple[AnyFile, tuple[str, ...] | None] | None = None
        self._starts: Any = np.empty(0, np.int64)
        self._batches: Iterator[Any] = iter(())
        # The number of the next row, and what is left of the batch that it is in.
        self._at, self._rest = 0, None

    def first(self, path: AnyFile) -> pd.DataFrame | None:
        """The first rows of a file, which say what its columns are; None where it has none."""
        if self._looked_at is None or self._looked_at[0] != path:
            frames = (frame for frame in frames_of(path, self.rows) if len(frame))
            self._looked_at = path, next(frames, None)
        return self._looked_at[1]

    def read(
        self, path: AnyFile, within: range, columns: list[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows of a range; no more than a table of them is in memory."""
        try:
            self._go_to(path, within.start, columns)
            held, waiting = [], 0
            while (batch := self._next(within)) is not None:
                held.append(batch)
                waiting += len(batch)
                if waiting >= self.rows:
                    table = pa.Table.from_batches(held)
                    yield table.slice(0, self.rows)
                    held, waiting = table.slice(self.rows).to_batches(), waiting - self.rows
            if waiting:
                yield pa.Table.from_batches(held)
        except (pa.ArrowException, OSError) as error:
            raise PrivetError(f"{path} cannot be read as parquet ({first_line(error)}).") from None

    def close(self) -> None:
        """Close the file; a reader that is used again opens it again."""
        if self._file is not None:
            self._file.close()
        self._file = self._pass = self._rest = None
        self._batches = iter(())

    def _go_to(self, path: AnyFile, row: int, columns: list[str] | None) -> None:
        """Go on with the pass if the row is ahead in it and in the row group that it has come to;
        else begin another at the row's group."""
        wanted = path, None if columns is None else tuple(columns)
        if wanted == self._pass and self._group_of(row) <= self._at <= row:
            return
        self.close()
        self._file, self._pass = opened_parquet(path), wanted
        about = self._file.metadata
        sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])
        self._at = self._group_of(row)
        groups = np.flatnonzero(self._starts[:-1] >= self._at).tolist()
        if groups:
            self._batches = self._file.iter_batches(
                batch_size=self.rows, row_groups=groups, columns=columns
            )

    def _group_of(self, row: int) -> int:
        """The first row of the row group that holds a row."""
        return int(self._starts[np.searchsorted(self._starts, row, "right") - 1])

    def _next(self, within: range) -> Any:
        """The next rows of the range, from one batch of the file; None at its end."""
        while self._at < within.stop:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                return None
            low, high = max(within.start - self._at, 0), min(within.stop - self._at, len(batch))
            self._at += high
            self._rest = batch.slice(high) if high < len(batch) else None
            if low < high:
                return batch.slice(low, high - low)
        return None


def rows_of_range(
    path: AnyFile, rows: int, within: range, columns: list[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of one range of a parquet file, `rows` at a time, from the row groups that it
    touches."""
    with closing(RangeReader(rows)) as reader:
        yield from reader.read(path, within, columns)
