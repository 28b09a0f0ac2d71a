"""Encoded records of a file, batch by batch, for a schema that is already known: what `privet
apply` reads.

Unlike `load`, nothing is guessed about people, parts or labels, and nothing is learned: one row is
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, unknown
from privet.core.stores import AnyFile, opened
from privet.data.arrow_encoding import encode_batch, encode_lists, encode_windows, is_words
from privet.data.dataset import Array
from privet.data.images import is_picture, read_picture
from privet.data.known_attributes import Given
from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema
from privet.data.table_files import READERS, kind_of, read_in_parts
from privet.data.vector_columns import depth, is_bytes

# Encoded records, and the columns that are kept beside them.
Rows = tuple[Array, pd.DataFrame]


class Chunk(NamedTuple):
    """Some rows of a file, read and not yet encoded, so that another thread can do that.

    Parameters:
        start: Rows before them.
    """

    start: int
    encode: Callable[[], Rows]


def stream_file(
    schema: Schema, path: Path, keep: Sequence[str], column: str | None, batch: int
) -> Iterator[Rows]:
    """The records of a parquet or CSV file. `column` says which one holds the picture, text or
    window, if it is not plain to see."""
    return (chunk.encode() for chunk in chunks_of_file(schema, path, keep, column, batch))


def stream_pictures(schema: Schema, paths: Sequence[Path], batch: int) -> Iterator[Rows]:
    return (chunk.encode() for chunk in chunks_of_pictures(schema, paths, batch))


def chunks_of_file(
    schema: Schema,
    path: AnyFile,
    keep: Sequence[str],
    column: str | None,
    rows: int,
    read: Callable[[list[str] | None], Iterable[Any]] | None = None,
    start: int = 0,
    first: pd.DataFrame | None = None,
) -> Iterator[Chunk]:
    """The same as stream_file, `rows` at a time.

    Parameters:
        read: Reads these columns of some rows, where it is not the whole file. The first rows of
            the file say what its columns are all the same: all parts must choose alike.
        start: The number of the first row that is read.
        first: The first rows of the file, where they have been read already.
    """
    if first is None:
        first = next((frame for frame in frames_of(path, rows) if len(frame)), None)
    if first is None:
        return
    for name in keep:
        if name not in first.columns:
            raise unknown(f"column in {path.name}:", name, map(str, first.columns))
    # Chosen once: what is plain to see in the first rows need not be so in every batch.
    column = column or record_column(schema.plain, first, f"{path}, rows from 1 on")
    needed = needed_columns(schema, first, column, keep)
    for part in _parts(path, rows, needed) if read is None else read(needed):
        if len(part):
            yield Chunk(
                start,
                partial(
                    encoded_rows, schema, part, keep, column, f"{path}, rows from {start + 1} on"
                ),
            )
        start += len(part)


def chunks_of_pictures(schema: Schema, paths: Sequence[Path], rows: int) -> Iterator[Chunk]:
    plain = schema.plain
    if not isinstance(plain, ImageSchema):
        raise PrivetError(f"The release takes a {schema.modality}, not pictures.")
    size, channels = (plain.height, plain.width), plain.channels

    def encode(some: Sequence[Path]) -> Rows:
        x = np.stack([read_picture(path, size, channels) for path in some])
        return schema.beside(x, None, str(paths[0])), pd.DataFrame(
            {"file": [str(path) for path in some]}
        )

    for start in range(0, len(paths), rows):
        yield Chunk(start, partial(encode, paths[start : start + rows]))


def count(path: Path) -> int:
    """How many rows a parquet file has; 0 where counting would mean reading it all."""
    try:
        return 0 if kind_of(path) in READERS else int(pq.ParquetFile(path).metadata.num_rows)
    except (pa.ArrowException, OSError):
        return 0


def encoded_rows(
    schema: Schema, part: Any, keep: Sequence[str], column: str | None, where: str
) -> Rows:
    if isinstance(part, pd.DataFrame) or (x := _from_arrow(schema, part, column, where)) is None:
        frame = part if isinstance(part, pd.DataFrame) else part.to_pandas()
        x = _encode(schema.plain, frame, column, where)
    else:
        beside = list(dict.fromkeys([*_known(schema), *keep]))
        if not beside:
            return x, pd.DataFrame(index=range(len(x)))
        frame = part.select(beside).to_pandas()
    return schema.beside(x, frame, where), frame[list(keep)]


def encoded_table(schema: Schema, part: Any, column: str | None, where: str) -> Array:
    """Records of an Arrow table alone. A frame of nothing would take as long as small graphs do."""
    x = None if _known(schema) else _from_arrow(schema, part, column, where)
    return encoded_rows(schema, part, (), column, where)[0] if x is None else x


def _from_arrow(schema: Schema, part: Any, column: str | None, where: str) -> Array | None:
    """Records of a batch or a table without a frame of them; None where one is needed."""
    plain, names = schema.plain, set(part.schema.names)
    if not set(_known(schema)) <= names or (column is not None and column not in names):
        return None
    if isinstance(plain, TableSchema):
        if column is None:
            by_name = {c.name for c in plain.columns} <= names
            return encode_batch(plain, part) if by_name else None
        if plain.columns[0].name not in names:
            return encode_lists(plain, part.column(column), _unequal(where, column))
    if isinstance(plain, SignalSchema) and column is not None:
        return encode_windows(plain, part.column(column), _other_windows(plain, where))
    return None


def needed_columns(
    schema: Schema, first: pd.DataFrame, column: str | None, keep: Sequence[str]
) -> list[str] | None:
    """The columns that are looked at; None for all, where one of them is not there and has to be
    named beside those that are."""
    plain = schema.plain
    by_name = isinstance(plain, TableSchema) and (
        column is None or plain.columns[0].name in first.columns
    )
    own = (
        [c.name for c in plain.columns]
        if by_name and isinstance(plain, TableSchema)
        else [str(column)]
    )
    names = list(dict.fromkeys([*own, *_known(schema), *keep]))
    return names if all(name in first.columns for name in names) else None


def _known(schema: Schema) -> list[str]:
    """Columns whose values the release is given beside the record."""
    return [known.name for known in schema.known] if isinstance(schema, Given) else []


def frames_of(path: AnyFile, rows: int) -> Iterator[pd.DataFrame]:
    return (
        part if isinstance(part, pd.DataFrame) else part.to_pandas() for part in _parts(path, rows)
    )


def tables_of(path: AnyFile, rows: int) -> Iterator[pa.Table]:
    """The whole file as Arrow tables, `rows` rows at a time."""
    for part in _parts(path, rows):
        if isinstance(part, pd.DataFrame):
            yield pa.Table.from_pandas(part, preserve_index=False)
        else:
            yield pa.Table.from_batches([part])


def _parts(path: AnyFile, rows: int, columns: list[str] | None = None) -> Iterator[Any]:
    """Frames of a table in text, record batches of a parquet file: `rows` at a time, over the ends
    of row groups."""
    try:
        if isinstance(path, Path) and kind_of(path) in READERS:
            yield from read_in_parts(path, rows)
        else:
            with opened_parquet(path) as file:
                yield from file.iter_batches(batch_size=rows, columns=columns)
    except (
        pa.ArrowException,
        pd.errors.EmptyDataError,
        pd.errors.ParserError,
        UnicodeDecodeError,
        OSError,
    ) as error:
        raise PrivetError(
            f"{path} cannot be read as parquet or CSV"
            f" ({str(error).strip().splitlines()[0].rstrip('.')})."
        ) from None


def opened_parquet(path: AnyFile) -> Any:
    """A parquet file that is read a little at a time: without these two settings, the columns of a
    whole row group are in memory at once."""
    return pq.ParquetFile(opened(path), buffer_size=1 << 20, pre_buffer=False)


def record_column(schema: Schema, frame: pd.DataFrame, where: str) -> str | None:
    """The column that holds the picture, text, window or list; None where a table's columns are
    there by name."""
    if isinstance(schema, TableSchema):
        lists = [c for c in frame.columns if _cell(frame[c], np.ndarray, list) is not None]
        return lists[0] if lists and schema.columns[0].name not in frame.columns else None
    wanted = {"image": (bytes,), "signal": (np.ndarray, list, bytes), "text": (str,)}[
        schema.modality
    ]
    fitting = [c for c in frame.columns if _cell(frame[c], *wanted) is not None]
    if isinstance(schema, ImageSchema):
        fitting = [c for c in fitting if is_picture(_cell(frame[c], bytes) or b"")]
    if not fitting:
        raise PrivetError(
            f"{where}: no column holds a {schema.modality}, which is what the release takes."
        )
    return str(_likeliest(frame, fitting, schema))


def record_field(schema: Schema, fields: Any, beside: Sequence[str]) -> str | None:
    """The same from the types of an Arrow schema alone, so that every batch of a table chooses
    alike. `beside` names columns that are not the record."""
    plain = schema.plain
    if isinstance(plain, TableSchema) and plain.columns[0].name in fields.names:
        return None
    others = {*beside, *_known(schema)}
    fits = {"image": is_bytes, "text": is_words, "table": depth}.get(
        schema.modality, lambda kind: depth(kind) or is_bytes(kind)
    )
    fitting = [field.name for field in fields if field.name not in others and fits(field.type)]
    if not fitting and isinstance(plain, TableSchema):
        return None
    if not fitting:
        raise PrivetError(
            f"No column holds a {schema.modality}, which is what the release takes:"
            f" {', '.join(fields.names)}."
        )
    named = [name for name in fitting if name in ("image", "window")] or fitting
    if len(named) > 1:
        raise PrivetError(
            f"Say which column the release takes, column=...: {', '.join(named)} could be it."
        )
    return str(named[0])


def _encode(schema: Schema, frame: pd.DataFrame, column: str | None, where: str) -> Array:
    if column is not None and column not in frame.columns:
        raise unknown("column", column, map(str, frame.columns))
    if isinstance(schema, TableSchema):
        if column is not None and schema.columns[0].name not in frame.columns:
            flat = _numbers(frame[column].tolist(), _unequal(where, column))
            frame = pd.DataFrame(flat, columns=[f"v{i}" for i in range(flat.shape[1])])
        return schema.encode(frame)
    cells = frame[column]
    if isinstance(schema, ImageSchema):
        size = (schema.height, schema.width)
        if _cell(cells, bytes) is None:
            raise PrivetError(f"{where}: the column '{column}' holds no pictures.")
        return np.stack([read_picture(cell, size, schema.channels, where) for cell in cells])
    if isinstance(schema, SignalSchema):
        wrong = _other_windows(schema, where)
        flat = _numbers(cells.tolist(), wrong)
        if flat.shape[1] != schema.channels * schema.time:
            raise PrivetError(wrong)
        return schema.encode(flat.reshape(len(cells), schema.channels, schema.time))
    return schema.encode(cells.fillna("").astype(str).tolist())


def _unequal(where: str, column: str | None) -> str:
    return f"{where}: the lists in '{column}' do not hold equally many numbers."


def _other_windows(schema: SignalSchema, where: str) -> str:
    return f"{where}: the windows are not {schema.channels} channels x {schema.time} steps."


def _likeliest(frame: pd.DataFrame, names: list[Any], schema: Schema) -> Any:
    if schema.modality == "text":
        return max(names, key=lambda name: frame[name].astype(str).str.len().median())
    return next((name for name in names if name in ("image", "window")), names[0])


def _numbers(cells: list[Any], wrong: str) -> Array:
    """Cells of lists, nested lists or bytes as rows of numbers; `wrong` is said where they are not
    of one length."""
    try:
        rows = [
            (
                np.frombuffer(c, np.float16)
                if isinstance(c, bytes)
                else np.concatenate([np.ravel(v) for v in c])
            )
            for c in cells
        ]
        return np.stack(rows).astype(np.float32)
    except (TypeError, ValueError):
        raise PrivetError(wrong) from None


def _cell(column: pd.Series, *kinds: type) -> Any:
    """The first value that is there, if it is of one of these kinds."""
    value = next(iter(column.dropna()), None)
    return value if isinstance(value, kinds) else None
