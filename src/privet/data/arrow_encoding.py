"""Rows of an Arrow batch as a network's input, column by column, with no frame of Python objects in
between.

What comes out is what TableSchema.encode makes of the same rows as a frame. Only columns of words
that are strings and of numbers that are floats or integers have a shorter way here; what a frame
makes of other kinds (a whole number with gaps, a date) is left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privet.data.dataset import Array
from privet.data.schema import TableSchema


def encode_batch(schema: TableSchema, part: Any) -> Array:
    """The rows of a record batch or a table that has all of the schema's columns."""
    width = sum(column.size for column in schema.columns)
    x: Array = np.zeros((len(part), width), dtype=np.float32)
    numbers, start = x.ravel(), 0
    rows = np.arange(0, len(numbers), width)
    for column in schema.columns:
        cells = part.column(column.name)
        if isinstance(cells, pa.ChunkedArray):
            cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
        if column.values and (
            pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)
        ):
            places = (
                pc.index_in(cells, pa.array(column.values, cells.type)).fill_null(-1).to_numpy()
            )
            numbers[(rows + places)[places >= 0] + start] = 1.0
        elif not column.values and (
            pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)
        ):
            x[:, start : start + 1] = column.encode(pd.Series(cells.to_numpy(zero_copy_only=False)))
        else:
            x[:, start : start + column.size] = column.encode(
                part.select([column.name]).to_pandas()[column.name]
            )
        start += column.size
    return x
