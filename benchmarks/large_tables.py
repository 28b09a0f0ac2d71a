"""Peak private memory while a release is learned from a table that is kept on disk, by rows.

    OMP_NUM_THREADS=1 python benchmarks/large_tables.py --rows 1000000 3000000 --out FILE.json

For each number of rows a parquet file of 20 columns is drawn, then one child process for each
method reads it and learns, as `privet learn` would, with at most --limit bytes of private memory
(RLIMIT_DATA); this process reads RssAnon of the child all the while. `--in-memory ROWS` adds the
ordinary way for comparison, without a limit. Learning is short (--epochs): memory does not depend
on how long it goes on. The result is a results file, on standard output or in --out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from memory import machine, memory_of

from privet.core.progress import console

COLUMNS = 20
"""14 numbers, 3 categories, a person, the private attribute and a task."""
AT_ONCE = 250_000


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 3_000_000])
    words.add_argument("--in-memory", type=int, nargs="*", default=[])
    words.add_argument("--methods", nargs="+", default=["leace", "hedge", "veil"])
    words.add_argument("--epochs", type=float, default=0.05)
    words.add_argument("--limit", type=float, default=2e9, help="bytes of private memory")
    words.add_argument("--folder", type=Path, help="where files go for the time being")
    words.add_argument("--out", type=Path)
    given = words.parse_args()
    rows = []
    for n, on_disk in [(n, True) for n in given.rows] + [(n, False) for n in given.in_memory]:
        with tempfile.TemporaryDirectory(prefix="privet-large-", dir=given.folder) as folder:
            path = Path(folder) / "rows.parquet"
            write_rows(path, n)
            os.environ["PRIVET_CACHE"] = str(Path(folder) / "cache")
            for method in given.methods:
                limit = int(given.limit) if on_disk else None
                rows.append(measure(path, n, method, given.epochs, on_disk, limit))
                console.print(json.dumps(rows[-1]), highlight=False, soft_wrap=True)
    result = {
        "title": "Peak private memory of learning from a table of 20 columns, by rows",
        "command": " ".join(["OMP_NUM_THREADS=1 python benchmarks/large_tables.py", *sys.argv[1:]]),
        "data": "drawn: 14 numbers, 3 categories, a person with two rows on average, u, y",
        "machine": machine(),
        "rows": rows,
    }
    text = json.dumps(result, indent=1) + "\n"
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text)
    return 0


def write_rows(path: Path, n: int) -> None:
    """Numbers that depend on u and y, and words."""
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, _table(rng, 1, n).schema) as writer:
        for start in range(0, n, AT_ONCE):
            writer.write_table(_table(rng, min(AT_ONCE, n - start), n))


def _table(rng: np.random.Generator, rows: int, n: int) -> pa.Table:
    u, y = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    numbers = rng.standard_normal((14, rows)) + 0.5 * u + np.linspace(0, 1, 14)[:, None] * y
    columns = {f"x{i}": column for i, column in enumerate(numbers)}
    for name, values in (("w3", 3), ("w8", 8), ("w20", 20)):
        columns[name] = np.array([f"{name} {i}" for i in range(values)])[
            rng.integers(0, values, rows)
        ]
    person = rng.integers(0, max(n // 2, 1), rows)
    return pa.table({"person": person, **columns, "u": u, "y": y})


def measure(
    path: Path, n: int, method: str, epochs: float, on_disk: bool, limit: int | None
) -> dict[str, Any]:
    """One child, watched."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(path, method, epochs, on_disk, limit, there))
    began, peaks, doing = time.monotonic(), dict[str, int](), "starting"
    child.start()
    there.close()
    told: dict[str, Any] = {}
    while True:
        try:
            if here.poll(0.05):
                message = here.recv()
                if isinstance(message, dict):
                    told = message
                    break
                doing = message
            peaks[doing] = max(memory_of(child.pid or 0).get("RssAnon", 0), peaks.get(doing, 0))
        except (EOFError, FileNotFoundError):
            told = {"failed": "the child ended"}
            break
    child.join()
    return {
        "rows": n,
        "method": method,
        "on_disk": on_disk,
        "limit_bytes": limit,
        "file_bytes": path.stat().st_size,
        **{f"peak_bytes_{what}": size for what, size in peaks.items()},
        "peak_bytes": max(peaks.values()),
        "seconds": round(time.monotonic() - began, 1),
        **told,
    }


def work(
    path: Path, method: str, epochs: float, on_disk: bool, limit: int | None, out: Connection
) -> None:
    import privet
    from privet.commands.learn import learn
    from privet.data.schema_file import Layout

    out.send("importing")
    import privet.methods.registry
    import privet.train.game  # torch

    if limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    out.send("reading")
    data = privet.load(path, Layout(on_disk=on_disk))
    out.send("learning")
    settings = {
        "leace": [],
        "hedge": [f"epochs={epochs}", "width=0.25"],
        "veil": [f"epochs={epochs}", f"lessons={epochs}", "width=0.25", "dims=16"],
    }[method]
    release = learn(
        method, data, "u", "y", settings=settings, run=privet.Run(device="cpu", progress=False)
    )
    out.send({"fit_records": release.card["data"]["fit_records"]})


if __name__ == "__main__":
    sys.exit(main())
