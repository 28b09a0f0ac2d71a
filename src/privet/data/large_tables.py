"""A parquet table, or its parts, that is larger than memory: read batch by batch, twice. First for
what its columns are, then into one mapped file for each.

Memory holds a few numbers for each row (its number, part and person) and nothing for its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privet.core.errors import refuse
from privet.core.progress import bar
from privet.data.assemble import check_columns, named_column, people_of
from privet.data.attribute_codes import MANY, code
from privet.data.cache import digest
from privet.data.cell_text import cell_text
from privet.data.column_meaning import NO_INPUT, NUMBER_NAMES, looks_like
from privet.data.column_roles import choose, roles_of
from privet.data.dataset import Array, Attribute, Dataset
from privet.data.schema_file import Layout, Wish
from privet.data.splitting import assign
from privet.data.stored_table import (
    ROWS,
    StoredColumn,
    StoredLabels,
    StoredTable,
    packed_array,
)

# Cells of a table from which on it is read this way unless a schema file says otherwise. It does
# not depend on the machine, so that the same file is read the same way everywhere.
LARGE = 50_000_000
# Rows that show what the columns are.
_SAMPLE = 10_000


@dataclass
class _Seen:
    """What the first reading tells of one column.

    Parameters:
        values: The different values, up to MANY and one more.
        empty: Whether a cell is.
        kinds: Of numpy, of its batches.
    """

    values: set[Any] = field(default_factory=set)
    empty: bool = False
    kinds: set[Any] = field(default_factory=set)

    def add(self, cells: pd.Series) -> None:
        present = cells.dropna()
        self.empty |= len(present) < len(cells)
        self.kinds.add(cells.dtype)
        if len(self.values) <= MANY:
            self.values.update(present.unique()[: MANY + 1].tolist())

    @property
    def many(self) -> bool:
        return len(self.values) > MANY


def is_large(files: Sequence[Any], layout: Layout) -> bool:
    """Whether open parquet files are a table to be kept on disk."""
    if layout.on_disk is not None:
        return layout.on_disk
    cells = sum(int(file.metadata.num_rows * file.metadata.num_columns) for file in files)
    return cells >= LARGE


def read_large(
    name: str, files: Sequence[Any], layout: Layout, content: str, progress: bool = True
) -> Dataset | None:
    """Open parquet files as one table on disk; None where records are not rows of single values.

    Parameters:
        name: What to call the table.
        files: With the same columns.
        layout: What a schema file says.
        content: Digest of what is in the files.
        progress: Whether to show a bar.
    """
    names = [name for name in files[0].schema_arrow.names if not name.startswith("__index_level_")]
    roles = roles_of(files[0], names)
    plain = [name for name, role in roles.items() if role == "plain"]
    if not plain:
        return None
    first = next(_batches(files, plain, _SAMPLE))
    used = {name: role for name, role in roles.items() if name not in layout.drop}
    choice = choose(used, first, layout, name)
    if choice.modality != "table" or choice.x is not None:
        return None
    refuse(
        (
            bool(layout.keep or layout.balance),
            "keep and balance are for tables that are read into memory: choose the rows before,"
            " or set  on_disk = false  in the schema file.",
        ),
    )
    check_columns(layout, plain, name, beside=[c for c in names if c not in plain])
    columns = [column for column in plain if column not in layout.drop]
    return _read(name, files, columns, layout, content, progress)


def _frame(batch: Any) -> pd.DataFrame:
    """A batch as pandas holds it: categories as what they stand for, decimals as floats."""
    table = pa.Table.from_batches([batch])
    for i, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(column.type.value_type))
        elif pa.types.is_decimal(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(pa.float64()))
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame


def _batches(files: Sequence[Any], names: list[str], rows: int = ROWS) -> Iterator[pd.DataFrame]:
    for file in files:
        for batch in file.iter_batches(rows, columns=names, use_threads=False):
            yield _frame(batch)


def _read(
    name: str,
    files: Sequence[Any],
    names: list[str],
    layout: Layout,
    content: str,
    progress: bool,
) -> Dataset:
    n = sum(file.metadata.num_rows for file in files)
    seen: dict[str, _Seen] = {column: _Seen() for column in names}
    with bar("Looking at columns", n, progress and n > 10 * ROWS) as tick:
        done = 0
        for frame in _batches(files, names):
            for column in names:
                seen[column].add(frame[column])
            tick(done := done + len(frame))
    kinds = {column: _kind(seen[column]) for column in names}
    stored = {
        column: _stored(column, kinds[column], seen[column], files, n, content)
        for column in names
        if kinds[column]
    }
    notes = _left_out({column: "dates or mixed values" for column in names if not kinds[column]})
    return _assembled(name, stored, layout, content, notes)


def _kind(seen: _Seen) -> str:
    """How a column is kept: numbers, words, names, or not at all."""
    kinds = seen.kinds
    if all(kind.kind in "iuf" for kind in kinds):
        return "numbers"
    if all(kind.kind == "b" for kind in kinds):
        return "numbers" if not seen.empty else "words"
    if all(isinstance(value, bool) for value in seen.values):
        return "words"
    if all(isinstance(value, str) for value in seen.values):
        return "names" if seen.many else "words"
    return ""


def _stored(
    name: str, kind: str, seen: _Seen, files: Sequence[Any], n: int, content: str
) -> StoredColumn:
    """The column as a mapped file."""
    cells = partial(_cells, name, files)
    values: Any
    key = digest("column", content, name, kind)
    if kind == "numbers":
        dtype: Any = np.result_type(*seen.kinds)
        blocks = partial(_converted, cells, lambda column: column.to_numpy(dtype))
        values = None if seen.many else np.array(sorted(seen.values), dtype)
    elif kind == "names":
        dtype, values = np.uint64, None
        blocks = partial(_converted, cells, _hashes)
    else:
        dtype, known = np.int16, sorted(seen.values)
        is_words = all(isinstance(value, str) for value in known)
        values = pd.array(known, dtype="str") if is_words else np.array(known, dtype=object)
        index = pd.Index(known, dtype=object)
        blocks = partial(_converted, cells, partial(_places, index))
    return StoredColumn(packed_array(key, (n,), dtype, blocks, f"Reading {name}"), kind, values)


def _cells(name: str, files: Sequence[Any]) -> Iterator[pd.Series]:
    return (frame[name] for frame in _batches(files, [name]))


def _converted(cells: Any, convert: Any) -> Iterator[Array]:
    return (np.ascontiguousarray(convert(column)) for column in cells())


def _places(known: pd.Index, column: pd.Series) -> Array:
    return known.get_indexer(pd.Index(column.to_numpy(dtype=object))).astype(np.int16)


def _hashes(column: pd.Series) -> Array:
    """64 bits of each name, 0 where it is missing."""
    hashes = pd.util.hash_array(column.to_numpy(dtype=object), categorize=False)
    return np.where(column.isna(), np.uint64(0), np.maximum(hashes, np.uint64(1)))


def _assembled(
    name: str,
    stored: dict[str, StoredColumn],
    layout: Layout,
    content: str,
    notes: tuple[str, ...],
) -> Dataset:
    """Attributes, people and parts, as assemble.py makes them of a frame."""
    table = StoredTable(stored, content)
    person_column = named_column(layout.person, ("person", "author"), table)
    split_column = named_column(layout.split, ("split",), table)
    attributes: dict[str, Attribute] = {}
    coded: dict[str, tuple[StoredColumn, Array | None]] = {}
    known: dict[str, Array] = {}
    for column in stored:
        if column == split_column:
            continue
        wish = layout.attributes.get(
            column, Wish("identity") if column == person_column else Wish()
        )
        attributes[column], codes = _attribute(column, stored[column], wish)
        coded[column] = stored[column], codes
        if attributes[column].kind == "identity" and codes is None:
            if column == person_column:
                known[column] = _people_codes(stored[column])
            else:
                del attributes[column], coded[column]
    person, lost = people_of(known | _small(coded, person_column, len(table)), person_column)
    split = None if split_column is None else _texts(stored[split_column])
    classes = {} if person is None else _classes(attributes, coded, person)
    part_of, moved = assign(len(table), person, split, layout.seed, classes)
    inputs, left_out = _inputs(stored, layout, (person_column, split_column))
    records, rows = table[inputs], np.arange(len(table))
    described = [digest(a.name, a.kind, *a.values) for a in attributes.values()]
    return Dataset(
        name=name,
        modality="table",
        records=records,
        attributes=attributes,
        labels=StoredLabels(coded, rows, known),
        part_of=part_of,
        rows=rows,
        fingerprint=digest("on disk", content, *inputs, *described, part_of.tobytes()),
        person=person,
        notes=(*notes, *lost, *moved, *left_out),
    )


def _attribute(name: str, column: StoredColumn, wish: Wish) -> tuple[Attribute, Array | None]:
    """The attribute, and the label of each of the column's values and of a missing cell; None where
    a number is its own label, or every person has another one."""
    if column.values is not None:
        attribute, labels = code(name, pd.Series(column.values), wish.kind, list(wish.bins))
        return attribute, np.append(labels, np.nan if attribute.kind == "number" else -1)
    if wish.kind == "identity" or column.kind == "names":
        asked = wish.kind not in (None, "identity")
        refuse((asked, f"'{name}' has more than {MANY:,} values and cannot be a {wish.kind}."))
        return Attribute(name, "identity"), None
    refuse(
        (
            bool(wish.bins) or wish.kind not in (None, "number"),
            f"'{name}' has more than {MANY:,} values, and a table on disk takes it as a number"
            " only: make its classes a column of their own.",
        ),
    )
    return Attribute(name, "number"), None


def _people_codes(column: StoredColumn) -> Array:
    """Codes of people without gaps, -1 where nobody is named."""
    cells = np.asarray(column.cells)
    missing = cells == 0 if column.kind == "names" else np.isnan(cells)
    codes = np.full(len(cells), -1, dtype=np.int64)
    codes[~missing] = np.unique(cells[~missing], return_inverse=True)[1]
    return codes


def _small(
    coded: dict[str, tuple[StoredColumn, Array | None]], name: str | None, n: int
) -> dict[str, Array]:
    """The codes of people whose names are few."""
    if name is None or name not in coded or coded[name][1] is None:
        return {}
    column, labels = coded[name]
    return {name: column.labels(labels, np.arange(n))}


def _classes(
    attributes: dict[str, Attribute],
    coded: dict[str, tuple[StoredColumn, Array | None]],
    person: Array,
) -> dict[str, Array]:
    """Labels by which few people are dealt out evenly; of many people they are not asked for."""
    if len(np.unique(person)) > MANY:
        return {}
    rows = np.arange(len(person))
    return {
        name: column.labels(labels, rows)
        for name, (column, labels) in coded.items()
        if attributes[name].is_class
    }


def _texts(column: StoredColumn) -> Array:
    """The split of every row; its values are few."""
    refuse((column.values is None, "The split column has too many values: use train, valid, test."))
    words = np.array([*(cell_text(value) for value in column.values), ""])
    return words[column.labels(np.arange(len(words)), np.arange(len(column.cells)))]


def _inputs(
    stored: dict[str, StoredColumn], layout: Layout, taken: Sequence[str | None]
) -> tuple[list[str], tuple[str, ...]]:
    """The columns that are input, and notes on those that are not."""
    if layout.features is not None:
        return list(layout.features), ()
    usable = [name for name in stored if name not in taken and name not in layout.labels]
    reasons = {name: _why_no_input(name, stored[name]) for name in usable}
    notes = _left_out({name: reason for name, reason in reasons.items() if reason})
    inputs = [name for name in usable if not reasons[name]]
    refuse((not inputs, "No column can be the input of a release: " + " ".join(notes)))
    return inputs, notes


def _why_no_input(name: str, column: StoredColumn) -> str:
    """As column_meaning.py says of a frame."""
    if column.kind == "names":
        return "names of individuals"
    if column.values is not None:
        if len(column.values) <= 1:
            return "one value"
        return looks_like(column.at(slice(0, _SAMPLE))) if column.kind == "words" else ""
    numbered = column.cells.dtype.kind in "iu" and NUMBER_NAMES.fullmatch(name)
    if numbered and len(np.unique(column.cells)) == len(column.cells):
        return "row numbers"
    return ""


def _left_out(reasons: dict[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{NO_INPUT} {reason}: {', '.join(n for n, r in reasons.items() if r == reason)}."
        for reason in dict.fromkeys(reasons.values())
    )
