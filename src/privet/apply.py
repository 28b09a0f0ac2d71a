"""Privatize files: photos, folders of photos, tables, texts and signals go in, one parquet file of released records comes out.

Runs the exported graph with onnxruntime, as a participant would, batch by batch. Raw columns do not come out again;
labels do if they are asked for, a private attribute never.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.data.stream import Rows, count, stream_file, stream_pictures
from privet.errors import PrivetError
from privet.files import replacing, writable_folder
from privet.graph import session
from privet.progress import bar
from privet.release import Release, read_graph

BATCH = 256
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")


def apply(
    folder: str | Path, inputs: Sequence[str | Path], out: str | Path,
    keep: Sequence[str] = (), column: str | None = None, seed: int | None = None, progress: bool = True,
) -> Path:  # fmt: skip
    """Release the records of `inputs` with the release in `folder`; returns the parquet file written at or under `out`.

    `keep` names columns to write beside the released records, `column` the one that holds the picture, text or window.
    `seed` makes the noise repeatable, for tests; without it, noise comes from the operating system.
    """
    folder, out = Path(folder), Path(out)
    release = Release.load(folder)
    forbidden = set(keep) & set(release.private)
    if forbidden:
        raise PrivetError(f"'{min(forbidden)}' is what the release hides; it cannot be written beside it.")
    if "z" in keep:
        raise PrivetError("The released records are written as 'z': rename the column 'z' before keeping it.")
    run = session(read_graph(folder))
    files = [path for item in inputs for path in _expand(Path(item))]
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    if not files or (len(files) != 1 and len(pictures) != len(files)):
        raise PrivetError("Give pictures, a folder of pictures, or one parquet or CSV file.")
    if pictures and (keep or column):
        raise PrivetError("Pictures have no columns: leave out --keep and --column, or give a parquet file.")
    if pictures:
        total, rows = len(pictures), stream_pictures(release.schema, pictures, BATCH)
    else:
        total, rows = count(files[0]), stream_file(release.schema, files[0], keep, column, BATCH)
    target = out if out.suffix == ".parquet" else out / "released.parquet"
    undo = writable_folder(target.parent)
    try:
        with replacing(target) as temporary, bar("releasing", total, progress) as tick:
            done = 0
            with pq.ParquetWriter(temporary, *_first(parts := _tables(release, run, rows, seed))) as writer:
                for table in parts:
                    writer.write_table(table)
                    done += len(table)
                    tick(done)
    except BaseException:
        undo()
        raise
    return target


def _first(parts: Any) -> tuple[pa.Schema]:
    return (next(parts),)


def _tables(release: Release, run: Any, rows: Iterator[Rows], seed: int | None) -> Iterator[Any]:
    """First the schema of the output, then the tables."""
    about = {key: release.card.get(key) for key in ("method", "private", "sha256")} | {"shape": list(release.shape)}
    schema = None
    start = 0
    for x, beside in rows:
        inputs = {"x": x}
        if release.noise is not None:
            mixed = None if seed is None else int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
            inputs["noise"] = release.noise.draw(len(x), x.shape[1], mixed)
        start += len(x)
        z = run.run(["z"], inputs)[0]
        table = pa.table({**{str(name): pa.array(beside[name], from_pandas=True) for name in beside}, "z": _column(z, x)})
        if schema is None:
            schema = table.schema.with_metadata({"privet": json.dumps(about)})
            yield schema
        try:
            yield table.cast(schema)
        except pa.ArrowInvalid:
            raise PrivetError("A kept column holds other kinds of values further down: save the file as parquet, or keep less.") from None
    if schema is None:
        raise PrivetError("There are no records to release.")


def _column(z: Array, x: Array) -> pa.Array:
    """Released records as lists of numbers, laid flat; of a text, only the positions that hold a word."""
    if x.dtype == np.int64 and z.ndim == 3:
        lengths = (x != PAD).sum(1)
        values = np.concatenate([line[:size].ravel() for line, size in zip(z, lengths, strict=True)])
        offsets = np.concatenate([[0], np.cumsum(lengths * z.shape[2])]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, pa.float32()))
    flat = np.ascontiguousarray(z.reshape(len(z), -1), dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def _expand(path: Path) -> list[Path]:
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
