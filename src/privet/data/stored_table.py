"""A table larger than memory: its columns lie on disk, mapped into memory, and are read a column or
a few rows at a time.

What a column or some rows give is what a frame of the same rows in memory would: whoever learns
from one learns the same from the other, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.data.cache import digest, find_array, keep_array, send_on
from privet.data.dataset import Array, LabelsByName

# Rows that are read at once.
ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class StoredColumn:
    """One column.

    Parameters:
        cells: A mapped array: numbers as they are; of words, the place of each in `values`, -1
            where it is missing; of names, of which there are too many to list, 64 bits of a hash.
        kind: numbers, words or names.
        values: Of words, the different ones, as pandas would hold them; of numbers, the different
            ones in order where they are few, else None.
    """

    cells: Array
    kind: str
    values: Any = None

    def at(self, rows: Array | slice) -> pd.Series:
        """Some rows, as pandas would hold them in memory."""
        cells = np.asarray(self.cells[rows])
        if self.kind != "words":
            return pd.Series(cells)
        if isinstance(self.values, np.ndarray):  # yes and no with gaps
            words: Array = np.array([*self.values, None], dtype=object)
            return pd.Series(words[cells])
        return pd.Series(self.values.take(cells, allow_fill=True))

    def labels(self, table: Array | None, rows: Array) -> Array:
        """The label of some rows: `table` has that of each of `values`, and then that of a missing
        cell; None where a number is its own label."""
        cells = np.asarray(self.cells[rows])
        if table is None:
            return cells.astype(np.float64)
        if self.kind == "words":
            return np.asarray(table[cells])
        places = np.searchsorted(self.values, cells)
        return np.asarray(table[np.where(np.isnan(cells), len(self.values), places)])


class StoredTable:
    """A table on disk, or some rows and columns of one, with the few ways into it that a frame has.

    Parameters:
        stored: The columns by name.
        content: Digest of what is in them.
        rows: Which rows; None for all.
    """

    def __init__(
        self, stored: Mapping[str, StoredColumn], content: str, rows: Array | None = None
    ) -> None:
        self.stored, self.content, self.rows = dict(stored), content, rows

    @property
    def columns(self) -> pd.Index:
        return pd.Index(list(self.stored))

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(next(iter(self.stored.values())).cells)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.stored)

    @property
    def iloc(self) -> StoredTable:
        return self

    def __getitem__(self, key: Any) -> Any:
        """A column by name as a pandas series, some columns by a list of names, or some rows."""
        if isinstance(key, str):
            return self.stored[key].at(slice(None) if self.rows is None else self.rows)
        if isinstance(key, list):
            return StoredTable({name: self.stored[name] for name in key}, self.content, self.rows)
        return StoredTable(self.stored, self.content, key if self.rows is None else self.rows[key])

    def frames(self) -> Iterator[pd.DataFrame]:
        """All rows, so many at a time that memory does not notice."""
        for start in range(0, len(self), ROWS):
            some = slice(start, min(start + ROWS, len(self)))
            rows = some if self.rows is None else self.rows[some]
            yield pd.DataFrame({name: column.at(rows) for name, column in self.stored.items()})

    def packed(self, encode: Callable[[pd.DataFrame], Array], width: int, key: str) -> Array:
        """Every row of the whole table as `encode` makes it, (rows, width), in a mapped file that
        is made once; `key` says what `encode` is."""
        whole = StoredTable(self.stored, self.content)
        name = digest("rows", self.content, *self.stored, key)

        def blocks() -> Iterator[Array]:
            return (np.ascontiguousarray(encode(frame), np.float32) for frame in whole.frames())

        return packed_array(name, (len(whole), width), np.float32, blocks, "Encoding rows")


def packed_array(
    key: str,
    shape: tuple[int, ...],
    dtype: Any,
    blocks: Callable[[], Iterator[Array]],
    title: str,
) -> Array:
    """The array kept under `key`, mapped; where there is none it is written, block after block."""
    if (found := find_array(key, shape[0], dtype)) is not None:
        return found
    with bar(title, shape[0], shape[0] > 10 * ROWS) as tick, keep_array(key, shape, dtype) as file:
        done, place = 0, file.tell()
        for block in blocks():
            file.write(block.data)
            done += len(block)
            place = send_on(file, place, block.nbytes)
            tick(done)
    if (made := find_array(key, shape[0], dtype)) is None:
        raise PrivetError("What was packed was removed from the cache meanwhile: run it again.")
    return made


class StoredLabels(LabelsByName):
    """Labels of a stored table, made when asked for.

    Parameters:
        columns: Per attribute its column, and the label of each of the column's values.
        rows: Which rows of the table.
        known: Labels that are in memory already, for all rows of the table.
    """

    def __init__(
        self,
        columns: Mapping[str, tuple[StoredColumn, Array | None]],
        rows: Array,
        known: Mapping[str, Array],
    ) -> None:
        self.columns, self.rows, self.known = columns, rows, dict(known)

    def __getitem__(self, name: str) -> Array:
        if name in self.known:
            return np.asarray(self.known[name][self.rows])
        column, table = self.columns[name]
        return column.labels(table, self.rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def of_rows(self, rows: Array) -> StoredLabels:
        return StoredLabels(self.columns, rows, self.known)

    def changed(self, labels: Mapping[str, Array]) -> StoredLabels:
        return StoredLabels(self.columns, self.rows, {**self.known, **labels})


def some_rows(n: int, most: int) -> Array:
    """At most so many of n rows, drawn once and for all, in order."""
    if n <= most:
        return np.arange(n)
    return np.unique(np.random.default_rng(0).integers(0, n, most))
