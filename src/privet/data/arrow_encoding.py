"""Rows of an Arrow batch as a network's input, column by column, with no frame of Python objects in
between.

What comes out is what TableSchema.encode makes of the same rows as a frame. Columns of words that
are strings (or dictionaries of strings) and of numbers that are floats or integers have a shorter
way here, and so have lists of numbers; what a frame makes of other kinds (a date, a truth value) is
left to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array
from privet.data.schema import Column, SignalSchema, TableSchema
from privet.data.vector_columns import depth, read_numbers

# Numbers that are standardised at once.
PIECE = 1 << 16


def encode_batch(schema: TableSchema, part: Any) -> Array:
    """The rows of a record batch or a table that has all of the schema's columns."""
    width = sum(column.size for column in schema.columns)
    x = numbers_of_arrow(len(part), width)
    x.fill(0.0)
    numbers, start = x.ravel(), 0
    rows = np.arange(0, len(numbers), width)
    for column in schema.columns:
        cells = _whole(part.column(column.name))
        if column.values and is_words(cells.type):
            places = _places(cells, column)
            if places.min(initial=0) < 0:
                known = places >= 0
                numbers[rows[known] + places[known] + start] = 1.0
            else:
                places += rows
                places += start
                numbers[places] = 1.0
        elif not column.values and _is_number(cells.type):
            values = cells.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
            x[:, start] = _finite((values - column.mean) / column.std)
        else:
            x[:, start : start + column.size] = column.encode(
                part.select([column.name]).to_pandas()[column.name]
            )
        start += column.size
    return x


def numbers_of_arrow(rows: int, width: int) -> Array:
    """An unset array of float32 from Arrow's allocator, which keeps pages for the next batch; numpy
    takes new ones from the system every time, and that costs more than to fill them."""
    buffer = pa.allocate_buffer(4 * rows * width)
    return np.frombuffer(buffer, dtype=np.float32).reshape(rows, width)


def encode_lists(schema: TableSchema, cells: Any, wrong: str) -> Array | None:
    """Rows of numbers that a column holds as lists, the i-th number as the column `v{i}`; None
    where they need a frame. `wrong` is said where the lists are not of one length."""
    cells = _whole(cells)
    if depth(cells.type) != 1 or cells.null_count or not len(cells):
        return None
    flat = cells.flatten()
    size, left = divmod(len(flat), len(cells))
    if not pa.types.is_fixed_size_list(cells.type):
        lengths = cells.value_lengths().to_numpy(zero_copy_only=False)
        refuse_if(bool(left or (lengths != size).any()), wrong)
    places = {f"v{i}": i for i in range(size)}
    if any(column.values or column.name not in places for column in schema.columns):
        return None
    # Through float32, as everywhere else: equal records must have equal content.
    numbers = flat.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    order = [places[column.name] for column in schema.columns]
    chosen = numbers.reshape(-1, size)
    chosen = chosen if order == list(range(size)) else chosen[:, order]
    return standardised(schema, chosen)


def standardised(schema: TableSchema, numbers: Array) -> Array:
    """Rows of numbers, one for each of the schema's columns, as `Column.encode` makes them column
    by column. A piece at a time, so that numbers of twice the size stay in a processor's cache."""
    mean = np.array([column.mean for column in schema.columns])
    std = np.array([column.std for column in schema.columns])
    x = numbers_of_arrow(*numbers.shape)
    step = max(1, PIECE // max(1, numbers.shape[1]))
    for at in range(0, len(x), step):
        values = numbers[at : at + step] - mean
        values /= std
        x[at : at + step] = _finite(values)
    return x


def encode_windows(schema: SignalSchema, cells: Any, wrong: str) -> Array | None:
    """Windows that a column holds as lists of any depth; None where they need a frame. `wrong` is
    said where they are not of the schema's size."""
    if not depth(cells.type) or not len(cells):
        return None
    try:
        numbers = read_numbers(cells, "")
    except PrivetError:
        raise PrivetError(wrong) from None
    refuse_if(numbers[0].size != schema.channels * schema.time, wrong)
    return schema.encode(numbers.reshape(len(cells), schema.channels, schema.time))


def _whole(cells: Any) -> Any:
    if not isinstance(cells, pa.ChunkedArray):
        return cells
    if cells.num_chunks == 1:
        return cells.chunk(0)
    return pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)


def is_words(kind: Any) -> bool:
    """Whether an Arrow type is of strings, or of a dictionary of strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _places(cells: Any, column: Column) -> Array:
    """Where in the column's values each cell is, -1 where it is missing or not among them."""
    if pa.types.is_dictionary(cells.type):
        words = cells.dictionary
        found = pc.index_in(words, pa.array(column.values, words.type)).fill_null(-1)
        codes = cells.indices.fill_null(len(words)) if cells.null_count else cells.indices
        places: Array = np.append(found.to_numpy(), -1).astype(np.int64)[codes.to_numpy()]
        return places
    found = pc.call_function("index_in", [cells], _values_of(column.values, cells.type))
    found = found.fill_null(-1) if found.null_count else found
    return found.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def _values_of(values: tuple[str, ...], kind: Any) -> Any:
    """What `index_in` looks for: made once for all batches."""
    return pc.SetLookupOptions(value_set=pa.array(values, kind))


def _finite(values: Array) -> Array:
    """A missing or endless number becomes 0, the mean."""
    if not np.isfinite(values).all():
        np.nan_to_num(values, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return values
