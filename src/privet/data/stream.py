"""Encoded records of a file, batch by batch, for a schema that is already known: what `privet apply` reads.

Unlike `load`, nothing is guessed about people, parts or labels, and nothing is learned: one row is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.data.dataset import Array
from privet.data.images import is_picture, read_picture
from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema
from privet.errors import PrivetError, unknown

Rows = tuple[Array, pd.DataFrame]
"""Encoded records, and the columns that are kept beside them."""


def stream_file(schema: Schema, path: Path, keep: Sequence[str], column: str | None, batch: int) -> Iterator[Rows]:
    """The records of a parquet or CSV file. `column` says which one holds the picture, text or window, if it is not plain to see."""
    for start, frame in enumerate(_frames(path, batch)):
        if not len(frame):
            continue
        for name in keep:
            if name not in frame.columns:
                raise unknown(f"column in {path.name}:", name, map(str, frame.columns))
        where = f"{path}, rows from {start * batch + 1} on"
        # Chosen once: what is plain to see in the first rows need not be so in every batch.
        column = column or _record(schema.plain, frame, where)
        yield schema.beside(_encode(schema.plain, frame, column, where), frame, where), frame[list(keep)]


def stream_pictures(schema: Schema, paths: Sequence[Path], batch: int) -> Iterator[Rows]:
    plain = schema.plain
    if not isinstance(plain, ImageSchema):
        raise PrivetError(f"The release takes a {schema.modality}, not pictures.")
    size = (plain.height, plain.width)
    for start in range(0, len(paths), batch):
        chunk = paths[start : start + batch]
        x = np.stack([read_picture(p, size, plain.channels) for p in chunk])
        yield schema.beside(x, None, str(paths[0])), pd.DataFrame({"file": [str(p) for p in chunk]})


def count(path: Path) -> int:
    """How many rows a parquet file has; 0 where counting would mean reading it all."""
    try:
        return int(pq.ParquetFile(path).metadata.num_rows) if path.suffix.lower() != ".csv" else 0
    except (pa.ArrowException, OSError):
        return 0


def _frames(path: Path, batch: int) -> Iterator[pd.DataFrame]:
    try:
        if path.suffix.lower() == ".csv":
            yield from pd.read_csv(path, chunksize=batch)
        else:
            with pq.ParquetFile(path) as file:
                for part in file.iter_batches(batch_size=batch):
                    yield part.to_pandas()
    except (pa.ArrowException, pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise PrivetError(f"{path} cannot be read as parquet or CSV ({str(error).strip().splitlines()[0].rstrip('.')}).") from None


def _record(schema: Schema, frame: pd.DataFrame, where: str) -> str | None:
    """The column that holds the picture, text, window or list; None where a table's columns are there by name."""
    if isinstance(schema, TableSchema):
        lists = [c for c in frame.columns if _cell(frame[c], np.ndarray, list) is not None]
        return lists[0] if lists and schema.columns[0].name not in frame.columns else None
    wanted = {"image": (bytes,), "signal": (np.ndarray, list, bytes), "text": (str,)}[schema.modality]
    fitting = [c for c in frame.columns if _cell(frame[c], *wanted) is not None]
    if isinstance(schema, ImageSchema):
        fitting = [c for c in fitting if is_picture(_cell(frame[c], bytes) or b"")]
    if not fitting:
        raise PrivetError(f"{where}: no column holds a {schema.modality}, which is what the release takes.")
    return str(_likeliest(frame, fitting, schema))


def _encode(schema: Schema, frame: pd.DataFrame, column: str | None, where: str) -> Array:
    if column is not None and column not in frame.columns:
        raise unknown("column", column, map(str, frame.columns))
    if isinstance(schema, TableSchema):
        if column is not None and schema.columns[0].name not in frame.columns:
            flat = _numbers(frame[column].tolist(), f"{where}: the lists in '{column}' do not hold equally many numbers.")
            frame = pd.DataFrame(flat, columns=[f"v{i}" for i in range(flat.shape[1])])
        return schema.encode(frame)
    cells = frame[column]
    if isinstance(schema, ImageSchema):
        size = (schema.height, schema.width)
        if _cell(cells, bytes) is None:
            raise PrivetError(f"{where}: the column '{column}' holds no pictures.")
        return np.stack([read_picture(cell, size, schema.channels, where) for cell in cells])
    if isinstance(schema, SignalSchema):
        wrong = f"{where}: the windows are not {schema.channels} channels x {schema.time} steps."
        flat = _numbers(cells.tolist(), wrong)
        if flat.shape[1] != schema.channels * schema.time:
            raise PrivetError(wrong)
        return schema.encode(flat.reshape(len(cells), schema.channels, schema.time))
    return schema.encode(cells.fillna("").astype(str).tolist())


def _likeliest(frame: pd.DataFrame, names: list[Any], schema: Schema) -> Any:
    if schema.modality == "text":
        return max(names, key=lambda name: frame[name].astype(str).str.len().median())
    return next((name for name in names if name in ("image", "window")), names[0])


def _numbers(cells: list[Any], wrong: str) -> Array:
    """Cells of lists, nested lists or bytes as rows of numbers; `wrong` is said where they are not of one length."""
    try:
        rows = [np.frombuffer(c, np.float16) if isinstance(c, bytes) else np.concatenate([np.ravel(v) for v in c]) for c in cells]
        return np.stack(rows).astype(np.float32)
    except (TypeError, ValueError):
        raise PrivetError(wrong) from None


def _cell(column: pd.Series, *kinds: type) -> Any:
    """The first value that is there, if it is of one of these kinds."""
    value = next(iter(column.dropna()), None)
    return value if isinstance(value, kinds) else None
