"""`privet apply` on a cluster: ranges of rows are released by Ray Data wherever there is room, and
written here, in order.

The file comes out byte for byte as on one machine, for the same seed: ranges are cut where the
local run cuts its chunks, the noise of a record follows from the seed and from where its batch of
256 starts in the whole file, and Ray Data keeps the order. Every node must see the records under
the same path; the release itself, which is small, travels.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from privet.core.errors import PrivetError
from privet.data.stream import Chunk, chunks_of_pictures
from privet.release.apply import chunk_rows, tables
from privet.release.runtime import Runnable, read_graph, session
from privet.scale.cluster import connected
from privet.scale.ray_cells import files
from privet.scale.row_ranges import chunks_within

# Most chunks of a range: a task has them in memory at once.
CHUNKS = 8
# Ranges that there are at least for every core, where there are chunks enough: the last one to
# finish is not waited for long.
PER_CORE = 4
# Releases that a process keeps loaded.
LOADED = 4


def spread(
    address: str,
    folder: Path,
    schema: Any,
    source: Path | Sequence[Path],
    total: int,
    keep: Sequence[str],
    column: str | None,
    seed: int | None,
) -> Iterator[pa.Table]:
    """Released records of a parquet file or of pictures, in the tables and in the order that
    privet.release.apply.tables gives them."""
    if isinstance(source, Path) and source.suffix.lower() == ".csv":
        raise PrivetError(
            "--ray takes a parquet file or pictures: nobody can start in the middle of a CSV file."
        )
    with connected(address) as ray, _ordered() as data:
        rows = chunk_rows(schema)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        span = rows * min(CHUNKS, max(1, total // rows // (PER_CORE * cores)))
        starts = range(0, total, span)
        cut = [pa.table({"start": [start], "stop": [min(start + span, total)]}) for start in starts]
        given = files(folder)
        words = {
            "path": str(source.resolve()) if isinstance(source, Path) else None,
            "bytes": source.stat().st_size if isinstance(source, Path) else 0,
            "keep": list(keep),
            "column": column,
            "seed": seed,
            "rows": rows,
            "print": _print(given),
        }
        # In lists, so that they are fetched once by a process and not once by a task.
        sent = {
            "given": [ray.put(given)],
            "pictures": [] if isinstance(source, Path) else [ray.put([str(p) for p in source])],
        }
        todo = data.from_arrow(cut).map_batches(
            release_range,
            fn_kwargs={"words": words, **sent},
            batch_size=None,
            batch_format="pyarrow",
        )
        for block in todo.iter_batches(batch_size=None, batch_format="pyarrow"):
            for error in filter(None, block["error"].to_pylist()):
                raise PrivetError(error)
            for parts in block["tables"]:
                for part in parts:
                    yield _read(part.as_buffer())


def release_range(
    cut: pa.Table, words: dict[str, Any], given: list[Any], pictures: list[Any]
) -> pa.Table:
    """What one task does: its rows released, as one value, so that Ray Data neither looks into it
    nor joins or splits it."""
    found: list[bytes] = []
    error = None
    start, stop = cut["start"][0].as_py(), cut["stop"][0].as_py()
    try:
        release, run = _loaded(words["print"], given[0])
        chunks = _chunks(release, words, range(start, stop), pictures)
        found = [
            _written(table) for table in tables(release, run, chunks, words["seed"], workers=1)
        ]
    except PrivetError as refused:
        error = str(refused)
    return pa.table(
        {
            "start": [start],
            "tables": pa.array([found], pa.list_(pa.large_binary())),
            "error": pa.array([error], pa.string()),
        }
    )


def _chunks(
    release: Runnable, words: dict[str, Any], within: range, pictures: list[Any]
) -> Iterator[Chunk]:
    if pictures:
        paths = [Path(p) for p in _fetched(pictures[0])[within.start : within.stop]]
        for chunk in chunks_of_pictures(release.schema, paths, words["rows"]):
            yield Chunk(within.start + chunk.start, chunk.encode)
        return
    path = Path(words["path"])
    if not path.is_file() or path.stat().st_size != words["bytes"]:
        raise PrivetError(
            f"{socket.gethostname()} does not have the same {path}: put it on a disk that all nodes"
            " see."
        )
    yield from chunks_within(
        release.schema, path, words["keep"], words["column"], words["rows"], within
    )


@lru_cache(maxsize=LOADED)
def _loaded(_key: str, given: Any) -> tuple[Runnable, Any]:
    with tempfile.TemporaryDirectory(prefix="privet-release-") as scratch:
        for name, content in _fetched(given).items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Runnable.load(Path(scratch)), session(read_graph(Path(scratch)), threads=1)


@lru_cache(maxsize=LOADED)
def _fetched(reference: Any) -> Any:
    return importlib.import_module("ray").get(reference)


def _print(given: dict[str, bytes]) -> str:
    found = hashlib.sha256()
    for name, content in given.items():
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _read(buffer: Any) -> pa.Table:
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
    before = context.execution_options.preserve_order, context.enable_progress_bars
    logger = logging.getLogger("ray.data")
    level = logger.level
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    logger.setLevel(logging.CRITICAL)
    try:
        yield data
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before
        logger.setLevel(level)
