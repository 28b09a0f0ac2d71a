"""A parquet file or another table: what each column is, which one is the record itself, and what
the others say about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.data.assemble import assemble, check_columns
from privet.data.cache import content_of, digest
from privet.data.column_roles import Choice, Role, choose, roles_of
from privet.data.dataset import Dataset
from privet.data.large_tables import is_large, read_large
from privet.data.packing import BrokenPictures, Picture, pack
from privet.data.schema_file import Layout
from privet.data.spaces import space_in
from privet.data.table_files import read_table, stem_of
from privet.data.vector_columns import as_windows, read_numbers

_ROWS_AT_ONCE = 64


def read_table_file(path: Path, layout: Layout, progress: bool = True) -> Dataset:
    """A table in any of the forms that table_files.py reads."""
    frame, notes = read_table(path)
    return from_plain(path, frame, layout, content_of([path]), notes)


def from_frame(frame: pd.DataFrame, layout: Layout | None = None, name: str = "frame") -> Dataset:
    """The rows of a pandas frame, which become a table or, where a column holds texts, texts.

    >>> rows = pd.DataFrame({"age": range(40), "sex": ["f", "m"] * 20})
    >>> from_frame(rows).attribute("sex").values
    ('f', 'm')
    """
    plain = frame.reset_index(drop=True).rename(columns=str)
    rows = pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes()
    content = hashlib.sha256(rows + "\0".join(plain.columns).encode()).hexdigest()
    return from_plain(Path(name), plain, layout or Layout(), content)


def from_plain(
    path: Path, frame: pd.DataFrame, layout: Layout, content: str, notes: tuple[str, ...] = ()
) -> Dataset:
    """A table whose cells hold single values."""
    check_columns(layout, frame.columns, path.name)
    roles: dict[str, Role] = {c: "plain" for c in frame.columns if c not in layout.drop}
    choice = choose(roles, frame, layout, path.name)
    choice = choice._replace(notes=(*notes, *choice.notes))
    return _finish(path, choice, frame, layout, content)


def read_parquet(
    path: Path, layout: Layout, progress: bool = True, content: str | None = None
) -> Dataset:
    """A parquet file; `content` is the digest of what is in it, where it is known."""
    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            return _read_parquet(path, file, layout, progress, content or content_of([path]))
    except pa.ArrowException as error:
        raise PrivetError(
            f"{path} cannot be read as parquet ({str(error).splitlines()[0].rstrip('.')})."
        ) from None
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None


def _read_parquet(path: Path, file: Any, layout: Layout, progress: bool, content: str) -> Dataset:
    schema = file.schema_arrow
    if twice := [name for name in schema.names if schema.names.count(name) > 1]:
        raise PrivetError(f"{path} has two columns called '{twice[0]}': rename one.")
    if not file.metadata.num_rows:
        raise PrivetError(f"{path} has no rows: add records.")
    if is_large([file], layout):
        large = read_large(stem_of(path), [file], layout, content, progress)
        if large is not None:
            return large
    roles = roles_of(file, [name for name in schema.names if not name.startswith("__index_level_")])
    single = [name for name, role in roles.items() if role == "plain"]
    check_columns(layout, single, path.name, beside=[name for name in roles if name not in single])
    plain = _plain_frame(file, single)
    choice = choose(
        {name: role for name, role in roles.items() if name not in layout.drop},
        plain,
        layout,
        path.name,
    )
    return _finish(path, choice, plain, layout, content, file, progress)


def _finish(
    path: Path,
    choice: Choice,
    plain: pd.DataFrame,
    layout: Layout,
    content: str,
    file: Any = None,
    progress: bool = True,
) -> Dataset:
    x, where, masks, records = choice.x, f"The column '{choice.x}' of {path}", {}, None
    notes, space = choice.notes, None
    if choice.modality == "image":
        pictures = _Pictures(path, file, content, progress)
        try:
            records = pictures.pack(str(x), layout.size)
        except BrokenPictures as error:
            if not layout.skip_broken or len(error.rows) == len(plain):
                raise
            pictures = pictures._replace(broken=frozenset(error.rows))
            records = pictures.pack(str(x), layout.size)
            plain = plain.drop(index=plain.index[list(error.rows)])
            notes = (*notes, error.left_out)
        for mask in choice.masks:
            masks[mask] = pictures.pack(mask, records.shape[2:], mask=True)[:, 0]
    elif choice.modality == "text":
        records, plain = (
            plain[x].fillna("").astype(str).to_numpy(dtype=object),
            plain.drop(columns=[str(x)]),
        )
    elif x is not None:
        numbers = read_numbers(file.read(columns=[x]).column(0), where, layout.dtype)
        if choice.modality == "signal":
            records = as_windows(numbers, layout.shape, where)
        else:
            flat = numbers.reshape(len(numbers), -1)
            space = layout.space or space_in(file.schema_arrow.metadata)
            records = pd.DataFrame(flat, columns=[f"v{i}" for i in range(flat.shape[1])])
    name, kind = stem_of(path), choice.modality
    data = assemble(name, kind, records, plain, layout, content, masks, notes)
    return replace(data, space=space)


class _Pictures(NamedTuple):
    """Pictures in the cells of an open parquet file.

    Parameters:
        content: Digest of what is in the file.
        broken: Numbers of rows that are left out.
    """

    path: Path
    file: Any
    content: str
    progress: bool
    broken: frozenset[int] = frozenset()

    def one_by_one(self, column: str) -> Iterator[Picture]:
        """What is in the column, row by row."""
        row = 0
        for batch in self.file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[column]):
            for cell in batch.column(0):
                row += 1
                if row - 1 not in self.broken:
                    name = f"Row {row} of the column '{column}' in {self.path}"
                    yield Picture(name, cell.as_py() or b"")

    def pack(self, column: str, size: tuple[int, int] | None, mask: bool = False) -> Any:
        """The column as one array of pictures or masks."""
        n = self.file.metadata.num_rows - len(self.broken)
        content = digest(self.content, column, *sorted(self.broken))
        return pack(lambda: self.one_by_one(column), n, content, size, mask, self.progress)


def _plain_frame(file: Any, names: list[str]) -> pd.DataFrame:
    """The columns of single values as pandas knows them: categories as what they stand for,
    decimals as floats."""
    if not names:
        return pd.DataFrame(index=pd.RangeIndex(file.metadata.num_rows))
    table = file.read(columns=names)
    for i, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(column.type.value_type))
        elif pa.types.is_decimal(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(pa.float64()))
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame
