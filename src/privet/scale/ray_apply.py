"""`privet apply` on a cluster: ranges of rows are released by Ray Data wherever there is room, and
written here, in order.

The file comes out byte for byte as on one machine: ranges are cut where the local run cuts its
chunks, the noise of a record follows from the campaign's key and the record, and Ray Data keeps the
order in which they are handed over to be shuffled. Every node must see the records under the same
path; the release, which is small, and the key travel.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from privet.core.errors import PrivetError
from privet.data.row_ranges import rows_of_range
from privet.data.stream import Chunk, chunks_of_file, chunks_of_pictures
from privet.data.table_files import READERS, kind_of
from privet.release.apply import Records, chunk_rows, tables
from privet.release.runtime import Runnable, read_graph
from privet.release.strangers import release_session
from privet.scale.cluster import connected, read_files, write_files

# Most chunks of a range: a task has them in memory at once.
RANGE_CHUNKS = 8
# Ranges that there are at least for every core, where there are chunks enough: the last one to
# finish is not waited for long.
RANGES_PER_CORE = 4
# Releases that a process keeps loaded.
LOADED_RELEASES = 4


def spread(address: str, folder: Path, schema: Any, records: Records) -> Iterator[pa.Table]:
    """Released records, in the tables and in the order that `privet.release.apply.tables` gives
    them.

    Parameters:
        address: Of the Ray cluster.
        folder, schema: Of the release.
        records: What is released, and how. The key of the noise travels with it.
    """
    file = records.source if isinstance(records.source, Path) else None
    if file is not None and kind_of(file) in READERS:
        raise PrivetError(
            "--ray takes a parquet file or pictures: nobody can start in the middle of another "
            "kind of table."
        )
    with connected(address) as ray, _ordered() as data:
        rows, total = chunk_rows(schema), records.total
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        span = rows * min(RANGE_CHUNKS, max(1, total // rows // (RANGES_PER_CORE * cores)))
        starts = range(0, total, span)
        ranges = [
            pa.table({"start": [start], "stop": [min(start + span, total)]}) for start in starts
        ]
        release = read_files(folder)
        options = {
            "bytes": file and file.stat().st_size,
            "records": replace(records, source=file.resolve() if file else ()),
            "rows": rows,
            "fingerprint": hashlib.sha256(release["card.json"]).hexdigest(),
        }
        # In lists, so that they are fetched once by a process and not once by a task.
        stored = {
            "release": [ray.put(release)],
            "pictures": []
            if isinstance(records.source, Path)
            else [ray.put([str(path) for path in records.source])],
        }
        released = data.from_arrow(ranges).map_batches(
            release_range,
            fn_kwargs={"options": options, **stored},
            batch_size=None,
            batch_format="pyarrow",
        )
        for block in released.iter_batches(batch_size=None, batch_format="pyarrow"):
            for error in filter(None, block["error"].to_pylist()):
                raise PrivetError(error)
            for serialised in block["tables"]:
                yield from (_deserialise(one.as_buffer()) for one in serialised)


def release_range(
    within: pa.Table, options: dict[str, Any], release: list[Any], pictures: list[Any]
) -> pa.Table:
    """What one task does: its rows released, as one value, so that Ray Data neither looks into it
    nor joins or splits it."""
    released: list[bytes] = []
    error = None
    rows = range(within["start"][0].as_py(), within["stop"][0].as_py())
    try:
        loaded, run = load_release(options["fingerprint"], release[0])
        chunks = _chunks(loaded, options, rows, pictures)
        parts = tables(loaded, run, chunks, options["records"], workers=1)
        released = [_serialise(table) for table in parts]
    except PrivetError as refused:
        error = str(refused)
    return pa.table(
        {
            "start": [rows.start],
            "tables": pa.array([released], pa.list_(pa.large_binary())),
            "error": pa.array([error], pa.string()),
        }
    )


def _chunks(
    release: Runnable, options: dict[str, Any], within: range, pictures: list[Any]
) -> Iterator[Chunk]:
    if pictures:
        paths = [Path(path) for path in fetched(pictures[0])[within.start : within.stop]]
        for chunk in chunks_of_pictures(release.schema, paths, options["rows"]):
            yield Chunk(within.start + chunk.start, chunk.encode)
        return
    records, rows = options["records"], options["rows"]
    path = records.source
    if not path.is_file() or path.stat().st_size != options["bytes"]:
        raise PrivetError(
            f"{socket.gethostname()} does not have the same {path}: put it on a disk that all "
            "nodes see."
        )
    read = partial(rows_of_range, path, rows, within)
    yield from chunks_of_file(
        release.schema, path, records.columns, records.column, rows, read, within.start
    )


@lru_cache(maxsize=LOADED_RELEASES)
def load_release(_fingerprint: str, release: Any) -> tuple[Runnable, Any]:
    with tempfile.TemporaryDirectory(prefix="privet-release-") as scratch:
        write_files(Path(scratch), fetched(release))
        return Runnable.load(Path(scratch)), release_session(read_graph(Path(scratch)), threads=1)


@lru_cache(maxsize=LOADED_RELEASES)
def fetched(reference: Any) -> Any:
    return importlib.import_module("ray").get(reference)


def _serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _deserialise(buffer: Any) -> pa.Table:
    """The table as it was: what is kept beside the records was in one piece, and where pieces end
    shows in the bytes of a parquet file."""
    table = pa.ipc.open_stream(buffer).read_all()
    columns = {
        name: table[name] if name == "z" else table[name].combine_chunks()
        for name in table.column_names
    }
    return pa.table(columns)


@contextmanager
def _ordered() -> Iterator[Any]:
    """Ray Data, told to keep the order and to be quiet."""
    data = importlib.import_module("ray.data")
    context = data.DataContext.get_current()
    logger = logging.getLogger("ray.data")
    options = context.execution_options
    before = options.preserve_order, context.enable_progress_bars, logger.level
    options.preserve_order, context.enable_progress_bars = True, False
    logger.setLevel(logging.CRITICAL)
    try:
        yield data
    finally:
        options.preserve_order, context.enable_progress_bars = before[:2]
        logger.setLevel(before[2])
