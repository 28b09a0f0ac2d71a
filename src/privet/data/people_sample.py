"""A large table in parquet files, read a little at a time: all of it where it fits, else all
records of some people, chosen by a hash of who they are.

A person is in the sample if the hash of their name is among the N smallest, which is a random
sample of people without replacement. It does not depend on the order of the files or rows, it is
the same in every run, and that of a larger N holds that of a smaller one. Which of the four parts a
sampled person is in is another hash of the name, so it does not depend on N either: nobody moves
from *fit* to *test* because N was changed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, first_line, refuse_if
from privet.core.progress import bar
from privet.core.stores import AnyFile
from privet.data.cell_text import cell_text
from privet.data.dataset import PARTS, Array, Sampled
from privet.data.schema_file import Layout
from privet.data.splitting import SHARES
from privet.data.stream import opened_parquet

# Bytes of a table, before packing, that are read whole where nobody says how many people to take.
SAMPLE_BYTES = 2 << 30
# Fewer people than this are no sample to say anything of.
LEAST_PEOPLE = 100
# People that are counted one by one; beyond them their number is estimated from their hashes.
COUNTED = 1 << 24
# Rows that are read at a time, and bytes that are written at a time.
ROWS_AT_ONCE = 4096
GROUP_BYTES = 64 << 20
# Columns that name a person, where nobody says which one does.
PEOPLE = ("person", "author")
SPLIT = "split"


class TableFile(NamedTuple):
    """One parquet file of a table; `name` tells its rows from those of the others."""

    name: str
    file: AnyFile


class Joined(NamedTuple):
    """Files of a table as one file.

    Parameters:
        path: Of the file, which is there for a while only.
        sampled: Whose records are in it, where not everybody's.
    """

    path: Path
    sampled: Sampled | None


@contextmanager
def joined(
    files: Sequence[TableFile], name: str, layout: Layout, progress: bool = True
) -> Iterator[Joined]:
    """All files as one, or the records of a sample of people.

    Parameters:
        files: With the same columns.
        name: What the file is called.
        layout: Says how many people to take, who names them, and what deals them out.
        progress: Whether to show a bar.
    """
    refuse_if(
        layout.people is not None and layout.people < LEAST_PEOPLE,
        f"--people is at least {LEAST_PEOPLE}: fewer are no sample to say anything of.",
    )
    schema, rows, size = _whole_schema(files)
    person = _person_column(layout, schema)
    reader = _Reader(files, rows, person, layout.seed, progress)
    sampled, last = None, None
    if layout.people is not None or size > SAMPLE_BYTES:
        deals = layout.split is None and SPLIT not in schema.names
        sampled, last = _choose(reader, layout.people, size, deals)
    with tempfile.TemporaryDirectory(prefix="privet-table-") as folder:
        path = Path(folder) / f"{name}.parquet"
        _write(path, schema, reader, last, sampled is not None and sampled.dealt)
        yield Joined(path, sampled)


def _whole_schema(files: Sequence[TableFile]) -> tuple[pa.Schema, int, int]:
    """The columns of all files together; how many rows they have, and bytes before packing."""
    schemas, rows, size = [], 0, 0
    for one in files:
        with _said(one.file), opened_parquet(one.file) as file:
            schemas.append(file.schema_arrow)
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            rows += sum(group.num_rows for group in groups)
            size += sum(group.total_byte_size for group in groups)
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise PrivetError(
            f"The files hold columns of the same name that do not go together "
            f"({first_line(error)})."
        ) from None
    return schema.with_metadata(schemas[0].metadata), rows, size


def _person_column(layout: Layout, schema: pa.Schema) -> str | None:
    if layout.person is False:
        return None
    if layout.person is not None:
        refuse_if(
            layout.person not in schema.names, f"There is no column '{layout.person}' of people."
        )
        return layout.person
    return next((name for name in PEOPLE if name in schema.names), None)


class _Reader(NamedTuple):
    """The files, read batch by batch with a hash of the person of each row."""

    files: Sequence[TableFile]
    rows: int
    person: str | None
    seed: int
    progress: bool

    def batches(self, title: str, columns: list[str] | None) -> Iterator[tuple[pa.Table, Array]]:
        """Tables, and 64 bits for the person of each of their rows."""
        done = 0
        with bar(title, self.rows, self.progress) as tick:
            for one in self.files:
                start = 0
                with _said(one.file), opened_parquet(one.file) as file:
                    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                        table = pa.Table.from_batches([batch])
                        yield table, self._who(table, one.name, start)
                        start += len(batch)
                        done += len(batch)
                        tick(done)

    def _who(self, table: pa.Table, name: str, start: int) -> Array:
        """Without a name, a record is a person of its own: its row's number tells it apart."""
        first = np.uint64(_hash(f"row\0{name}", self.seed))
        own = mixed(np.arange(start, start + len(table), dtype=np.uint64) + first)
        if self.person is None:
            return own
        column = table[self.person].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = [cell_text(value) for value in encoded.dictionary.to_pylist()]
        known = np.array([_hash(f"person\0{text}", self.seed) for text in texts], np.uint64)
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        named = np.array([bool(text) for text in texts])[places] & (places >= 0) if texts else False
        return np.where(named, known[places], own) if texts else own


def _hash(text: str, seed: int) -> int:
    """64 bits of a name. The salt is public: whoever reads the same data takes the same people."""
    salt = f"privet people {seed}".encode()[:64]
    return int.from_bytes(hashlib.blake2b(text.encode(), key=salt, digest_size=8).digest(), "big")


def mixed(words: Array) -> Array:
    """Words of 64 bits whose every bit depends on all bits of the given ones (splitmix64)."""
    x = words + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), np.uint64)


def _choose(
    reader: _Reader, asked: int | None, size: int, deals: bool
) -> tuple[Sampled | None, int | None]:
    """The sample, and the largest hash that is in it; None twice where everybody is."""
    columns = [reader.person] if reader.person is not None else []
    smallest, people = distinct(who for _, who in reader.batches("counting people", columns))
    wanted = asked or max(LEAST_PEOPLE, int(people * SAMPLE_BYTES / size))
    if wanted >= people:
        return None, None
    wanted = min(wanted, len(smallest))
    exact = people == len(smallest)
    sampled = Sampled(wanted, people, exact, reader.person, asked, deals)
    return sampled, int(smallest[wanted - 1])


def distinct(hashes: Iterable[Array], most: int | None = None) -> tuple[Array, int]:
    """The smallest distinct hashes, sorted, and how many there are: counted up to `most`, beyond
    that estimated from how far the smallest reach (Bar-Yossef et al. 2002)."""
    most = most or COUNTED
    kept, new, cut = np.empty(0, np.uint64), [], False
    for some in hashes:
        new.append(np.unique(some))
        if sum(map(len, new)) > max(1 << 20, len(kept) // 4):
            kept, new = np.unique(np.concatenate([kept, *new])), []
            cut, kept = cut or len(kept) > most, kept[:most]
    kept = np.unique(np.concatenate([kept, *new]))
    cut, kept = cut or len(kept) > most, kept[:most]
    return kept, int((len(kept) - 1) / (float(kept[-1]) / 2.0**64)) if cut else len(kept)


def parts_of(who: Array) -> Array:
    """The part of each person, by a hash of theirs that has nothing to do with being sampled."""
    ends = np.cumsum(SHARES)[:-1]
    return np.searchsorted(ends, mixed(mixed(who)).astype(np.float64) / 2.0**64, side="right")


def _write(path: Path, schema: pa.Schema, reader: _Reader, last: int | None, deals: bool) -> None:
    """Write the rows of everybody whose hash is at most `last`; `deals` adds their parts."""
    full = schema.append(pa.field(SPLIT, pa.string())) if deals else schema
    names, held, size = np.array(PARTS), [], 0
    with pq.ParquetWriter(path, full) as writer:
        for table, who in reader.batches("reading", None):
            if last is not None:
                chosen = who <= np.uint64(last)
                table, who = table.filter(pa.array(chosen)), who[chosen]
            table = _alike(table, schema)
            if deals:
                table = table.append_column(SPLIT, pa.array(names[parts_of(who)], pa.string()))
            held.append(table)
            size += table.nbytes
            if size > GROUP_BYTES:
                writer.write_table(pa.concat_tables(held))
                held, size = [], 0
        writer.write_table(pa.concat_tables(held) if held else full.empty_table())


def _alike(table: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise PrivetError(
            f"A column holds other kinds of values in one file than in another "
            f"({first_line(error)})."
        ) from None


@contextmanager
def _said(file: Any) -> Iterator[None]:
    """Errors of a broken file as one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{file} cannot be read as parquet ({first_line(error)}).") from None
