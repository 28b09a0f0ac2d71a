"""Labels from another table, put beside records that do not hold them: the private attribute is
never written with released records, and whoever attacks them has to have it from elsewhere."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, first_line, refuse, refuse_if
from privet.data.stream import opened_parquet

ROWS_AT_ONCE = 1 << 16


def add_labels(path: Path, labels: str | Path, by: str, wanted: Sequence[str]) -> str:
    """Write columns of the table `labels` into a parquet file; gives a sentence about it.

    Parameters:
        path: The file, which fits in memory.
        labels: A parquet file, or a pattern of several; only rows that are needed are held.
        by: The column, in both, that says which record is which.
        wanted: The columns to add; those that the file has already are left as they are.
    """
    table = pq.read_table(path)
    names = [name for name in wanted if name not in table.column_names]
    refuse_if(
        by not in table.column_names,
        f"{path.stem} has no column '{by}' to find labels by: release it with --keep {by}.",
    )
    ids = pc.cast(table[by], pa.string()).combine_chunks()
    beside = _rows_for(ids, labels, by, names)
    known = beside[by].combine_chunks()
    refuse_if(
        len(known) != len(pc.unique(known)),
        f"{labels} has several rows for one value of '{by}': it must have one for each record.",
    )
    places = pc.index_in(ids, value_set=known)
    found = len(places) - places.null_count
    refuse_if(not found, f"No '{by}' of the released records is in {labels}.")
    for name in names:
        table = table.append_column(name, beside[name].take(places))
    pq.write_table(table, path)
    return f"{found:,} of {len(places):,} records have labels from {Path(labels).name}."


def _rows_for(ids: Any, labels: str | Path, by: str, names: Sequence[str]) -> pa.Table:
    """The rows of the labels that are needed, with `by` as text."""
    files = sorted(glob.glob(str(labels)))  # noqa: PTH207 - a pattern may have any folder in it
    refuse(
        (not files, f"There is no table of labels {labels}."),
        (not all(file.endswith(".parquet") for file in files), "Labels are read from parquet."),
    )
    rows = []
    for file in files:
        try:
            with opened_parquet(Path(file)) as opened:
                for name in (by, *names):
                    refuse_if(
                        name not in opened.schema_arrow.names, f"{file} has no column '{name}'."
                    )
                for batch in opened.iter_batches(ROWS_AT_ONCE, columns=[by, *names]):
                    text = pc.cast(batch.column(by), pa.string())
                    needed = pa.Table.from_batches([batch]).set_column(
                        batch.schema.get_field_index(by), by, text
                    )
                    rows.append(needed.filter(pc.is_in(text, value_set=ids)))
        except (pa.ArrowException, OSError) as error:
            raise PrivetError(f"{file} cannot be read as parquet ({first_line(error)}).") from None
    return pa.concat_tables(rows, promote_options="permissive")
