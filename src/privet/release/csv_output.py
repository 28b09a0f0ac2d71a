"""Released records as a CSV file, for recipients who have no parquet: a column for each number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from privet.core.errors import PrivetError


def write_csv(path: Path, about: dict[str, Any], parts: Iterator[pa.Table]) -> None:
    """Write tables to `path` one after the other; `about` has no place in such a file."""
    first = next(parts, None)
    if first is None:
        raise PrivetError("There are no records to release.")
    spread = spread_numbers if "z" in first.column_names else _as_it_is
    columns = spread(first)
    with pyarrow.csv.CSVWriter(path, columns.schema) as writer:
        for table in chain([columns], map(spread, parts)):
            writer.write_table(table.cast(columns.schema))


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


def spread_numbers(table: pa.Table) -> pa.Table:
    """The same records with a column z0, z1, ... for each released number.

    >>> z = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
    >>> spread_numbers(pa.table({"income": ["low", "high"], "z": z})).to_pydict()
    {'income': ['low', 'high'], 'z0': [1.0, 3.0], 'z1': [2.0, 4.0]}
    """
    numbers = table["z"].combine_chunks()
    if not pa.types.is_fixed_size_list(numbers.type):
        raise PrivetError(
            "Texts are released at their own length, which a CSV file cannot hold: write .parquet."
        )
    width, flat = numbers.type.list_size, numbers.flatten().to_numpy(zero_copy_only=False)
    each = flat.reshape(-1, width)
    beside = {name: table[name] for name in table.schema.names if name != "z"}
    return pa.table({**beside, **{f"z{i}": each[:, i] for i in range(width)}})
