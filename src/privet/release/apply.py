"""Privatize files: photos, folders of photos, tables, texts and signals go in, one parquet file of
released records comes out.

Runs the exported graph with onnxruntime, as a participant would. One thread reads, as many as there
are cores encode, draw noise and run the graph, and one writes; each is a few chunks ahead of the
next and no more, so memory does not grow with the file. Raw columns do not come out again; labels
do if they are asked for, a private attribute never.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.core.files import replacing, writable_folder
from privet.core.parallel_map import cores, in_order
from privet.core.progress import bar
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema
from privet.data.stream import Chunk, chunks_of_file, chunks_of_pictures, count
from privet.release.runtime import NOISE_BATCH, Runnable, read_graph, session

# Most records that are read and encoded at once.
CHUNK = 16 * NOISE_BATCH
# Most numbers that the graph is given at once: what networks make of a record in between is some
# hundred times as large.
INPUTS = 1 << 18
# Encoded and released records that may be on their way.
FLYING_BYTES = 256 << 20
# Released records are written in groups of at least so many bytes, or CHUNK records.
GROUP_BYTES = 8 << 20
# Where chunks are released elsewhere: folder, schema, source, records, columns to keep, record
# column, seed.
Spread = Callable[
    [Path, Schema, Path | Sequence[Path], int, Sequence[str], str | None, int | None],
    Iterator[pa.Table],
]

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")


def apply(
    folder: str | Path,
    inputs: Sequence[str | Path],
    out: str | Path,
    keep: Sequence[str] = (),
    column: str | None = None,
    seed: int | None = None,
    progress: bool = True,
    spread: Spread | None = None,
) -> Path:
    """Release the records of `inputs` with the release in `folder`; returns the parquet file
    written at or under `out`.

    `keep` names columns to write beside the released records, `column` the one that holds the
    picture, text or window. `seed` makes the noise repeatable, for tests; without it, noise comes
    from the operating system. `spread` releases the chunks elsewhere, such as on a Ray cluster; the
    file is the same.
    """
    folder, out = Path(folder), Path(out)
    release = Runnable.load(folder)
    _check_kept(release, keep)
    run = session(read_graph(folder), threads=1)
    files, pictures = _find_files(inputs, bool(keep or column))
    rows = chunk_rows(release.schema)
    if pictures:
        total, chunks = len(pictures), chunks_of_pictures(release.schema, pictures, rows)
    else:
        total, chunks = (
            count(files[0]),
            chunks_of_file(release.schema, files[0], keep, column, rows),
        )
    target = out if out.suffix == ".parquet" else out / "released.parquet"
    undo = writable_folder(target.parent)
    try:
        with replacing(target) as temporary, bar("releasing", total, progress) as tick:
            done = 0
            if spread is None:
                parts = tables(release, run, chunks, seed)
            else:
                parts = spread(
                    folder, release.schema, pictures or files[0], total, keep, column, seed
                )
            for size in _write(temporary, release, parts):
                done += size
                tick(done)
    except BaseException:
        undo()
        raise
    return target


def _check_kept(release: Runnable, keep: Sequence[str]) -> None:
    forbidden = set(keep) & set(release.private)
    if forbidden:
        raise PrivetError(
            f"'{min(forbidden)}' is what the release hides; it cannot be written beside it."
        )
    if "z" in keep:
        raise PrivetError(
            "The released records are written as 'z': rename the column 'z' before keeping it."
        )


def _find_files(inputs: Sequence[str | Path], columns: bool) -> tuple[list[Path], list[Path]]:
    """All files, and those of them that are pictures; `columns` says whether columns were named."""
    files = [path for item in inputs for path in expand(Path(item))]
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    if not files or (len(files) != 1 and len(pictures) != len(files)):
        raise PrivetError("Give pictures, a folder of pictures, or one parquet or CSV file.")
    if pictures and columns:
        raise PrivetError(
            "Pictures have no columns: leave out --keep and --column, or give a parquet file."
        )
    return files, pictures


def tables(
    release: Runnable,
    run: Any,
    chunks: Iterator[Chunk],
    seed: int | None,
    workers: int | None = None,
) -> Iterator[pa.Table]:
    """Released records of chunks, with what is kept beside them. Chunks start at multiples of
    at_once(schema) in the whole file."""
    few = at_once(release.schema)

    def work(chunk: Chunk) -> pa.Table:
        x, beside = chunk.encode()
        parts = [
            _column(*release.release(run, x[at : at + few], chunk.start + at, seed))
            for at in range(0, len(x), few)
        ]
        kept = {str(name): pa.array(beside[name], from_pandas=True) for name in beside}
        return pa.table({**kept, "z": pa.chunked_array(parts)})

    record = _size(release.schema.shape) * 4 + _size(release.shape) * (
        4 if release.noise is None else 8
    )
    ahead = FLYING_BYTES // (record * chunk_rows(release.schema))
    workers = workers or cores()
    return in_order(work, chunks, workers, max(2, min(2 * workers, ahead)))


def at_once(schema: Schema) -> int:
    """How many records the graph is given at once: NOISE_BATCH, or a smaller power of two where a
    record is large."""
    if schema.modality == "text":
        return NOISE_BATCH
    few = min(NOISE_BATCH, INPUTS // _size(schema.shape))
    return 1 << max(0, few.bit_length() - 1)


def chunk_rows(schema: Schema) -> int:
    """How many records are read and encoded at once: a multiple of at_once(schema); many where
    encoding is a matter of whole columns."""
    return max(
        at_once(schema), min(CHUNK, INPUTS // _size(schema.shape) // NOISE_BATCH * NOISE_BATCH)
    )


def _size(shape: Sequence[int | None]) -> int:
    """Numbers in a record; a text is taken to be a hundred words."""
    return int(np.prod([100 if size is None else size for size in shape], dtype=np.int64)) or 1


def _write(path: Path, release: Runnable, parts: Iterator[pa.Table]) -> Iterator[int]:
    """Write tables to `path` by a thread of their own, and say how many records are on their way to
    the disk."""
    about = {key: release.card.get(key) for key in ("method", "private", "sha256")} | {
        "shape": list(release.shape)
    }
    first = next(parts, None)
    if first is None:
        raise PrivetError("There are no records to release.")
    schema = first.schema.with_metadata({"privet": json.dumps(about)})
    kept = [name for name in schema.names if name != "z"]
    # Released numbers hardly repeat and nobody looks for a range of them: a dictionary and
    # statistics would cost time for nothing. Packing them takes longer than writing them, and saves
    # a third where a network gives many zeros, nothing where there is noise.
    form = {
        "use_dictionary": kept,
        "write_statistics": kept,
        "compression": dict.fromkeys(kept, "snappy"),
    }
    with pq.ParquetWriter(path, schema, **form) as writer, ThreadPoolExecutor(1) as pool:
        writing: Future[None] | None = None
        for table in _groups(chain([first], parts), schema):
            if writing is not None:
                writing.result()
            writing = pool.submit(writer.write_table, table, len(table))
            yield len(table)
        if writing is not None:
            writing.result()


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same records in tables that are worth a row group each."""
    held: list[pa.Table] = []
    for table in parts:
        try:
            held.append(table.cast(schema))
        except pa.ArrowInvalid:
            raise PrivetError(
                "A kept column holds other kinds of values further down: save the file as parquet,"
                " or keep less."
            ) from None
        if sum(map(len, held)) >= CHUNK or sum(one["z"].nbytes for one in held) >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _column(z: Array, x: Array) -> pa.Array:
    """Released records as lists of numbers, laid flat; of a text, only the positions that hold a
    word."""
    if x.dtype == np.int64 and z.ndim == 3:
        lengths = (x != PAD).sum(1)
        values = np.concatenate(
            [line[:size].ravel() for line, size in zip(z, lengths, strict=True)]
        )
        offsets = np.concatenate([[0], np.cumsum(lengths * z.shape[2])]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, pa.float32()))
    flat = np.ascontiguousarray(z.reshape(len(z), -1), dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def expand(path: Path) -> list[Path]:
    if not path.exists():
        raise PrivetError(f"There is no file or folder {path}.")
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in PICTURES)
        if not found:
            raise PrivetError(f"There are no pictures in {path}.")
        return found
    if not path.stat().st_size:
        raise PrivetError(f"{path} is empty.")
    return [path]
