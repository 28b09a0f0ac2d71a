"""A stage in every engine against a bare onnxruntime function in the same engine, in turn: rows a
second, the ratio, the peak memory of a worker, and what comes out where a worker is killed.

    OMP_NUM_THREADS=1 nice -n 10 python benchmarks/engines.py --out benchmarks/results

Both functions take the same batches of the same table: an id and lists of 104 numbers, or an id and
JPEGs of 64 x 64, which the bare function decodes with Pillow. Releases are of networks that have
learned nothing: LEACE, the smallest graph, and hedge and veil at their full width. Every engine
runs in a process of its own (`engine_runs.py`). Processor seconds are those of the engine with all
of its processes; other programs on the machine hardly change them. Killed is the worker
that has the middle row: on Ray and Spark the engine does its task again, of Hugging Face the whole
map is asked for again; the others have no workers, and are asked a second time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from drawn_rows import pictures, save_release
from memory import machine
from tables import store

from privet.core.progress import console
from privet.data.schema import Column, ImageSchema, TableSchema

NUMBERS = 104
TITLES = {
    "arrow": "plain Arrow, one process",
    "duckdb": "DuckDB",
    "hugging_face": "Hugging Face, 2 processes",
    "ray": "Ray Data, 2 nodes",
    "spark": "Spark, 2 workers",
    "scikit_learn": "scikit-learn (`Privatizer`)",
}
RELEASES = {
    "leace": "LEACE",
    "hedge": "hedge",
    "veil": "veil, a code of 128",
    "pictures": "hedge, pictures",
}


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--leace", type=int, default=100_000, help="rows for LEACE")
    words.add_argument("--hedge", type=int, default=10_000, help="rows for hedge")
    words.add_argument("--veil", type=int, default=10_000, help="rows for veil")
    words.add_argument("--pictures", type=int, default=128, help="pictures for hedge")
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--engines", nargs="+", default=list(TITLES))
    words.add_argument("--releases", nargs="+", default=list(RELEASES))
    words.add_argument("--folder", type=Path, help="where files go for the time being")
    words.add_argument("--out", type=Path, help="folder for engines.json")
    given = words.parse_args()
    before, measured = machine(), []
    for name in given.releases:
        rows = getattr(given, name)
        with tempfile.TemporaryDirectory(prefix="privet-engines-", dir=given.folder) as scratch:
            folder = Path(scratch)
            prepare(folder, name, rows)
            for engine in given.engines:
                if name == "pictures" and engine == "scikit_learn":
                    continue  # which takes rows of numbers and words
                told = {"release": name, "load": round(os.getloadavg()[0])}
                told |= run(engine, folder, rows, given.turns)
                console.print(json.dumps(told), highlight=False)
                measured.append(told)
                if given.out:  # as far as it has come: it takes a while
                    write(given.out / "engines.json", measured, before)
    sys.stdout.write(json.dumps({"measured": measured, "machine": before}, indent=1) + "\n")
    return int(any(row["lost"] or row["doubled"] or not row["same_bytes"] for row in measured))


def write(path: Path, measured: list[dict[str, Any]], before: dict[str, Any]) -> None:
    """What is in the file about other engines and releases stays."""
    found, order = study(measured), [*product(TITLES.values(), RELEASES.values())]
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    rows = [row for row in rows if "load" in row]
    by_name = {(row["engine"], row["release"]): row for row in [*rows, *found["rows"]]}
    found["rows"] = [by_name[key] for key in order if key in by_name]
    loads = [row["load"] for row in found["rows"]]
    found["machine"] = (
        f"two cores of an {before['processor']} that others used at the same time"
        f" (load {min(loads)} to {max(loads)}), one thread a worker"
    )
    store(path, found)


def prepare(folder: Path, name: str, rows: int) -> None:
    if name == "pictures":
        save_release("hedge", ImageSchema(3, 64, 64), folder / "release")
        pq.write_table(pictures(rows), folder / "rows.parquet", row_group_size=16)
        return
    schema = TableSchema(tuple(Column(f"v{i}", 0.0, 1.0) for i in range(NUMBERS)))
    save_release(name, schema, folder / "release")
    values = np.random.default_rng(0).standard_normal(rows * NUMBERS, dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values), NUMBERS)
    table = pa.table({"id": np.arange(rows), "vector": lists})
    pq.write_table(table, folder / "rows.parquet", row_group_size=1 << 12)


def run(engine: str, folder: Path, rows: int, turns: int) -> dict[str, Any]:
    script = Path(__file__).with_name("engine_runs.py")
    command = [sys.executable, script, engine, folder, rows, turns]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def study(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """The results file that docs/scale.md shows."""
    rows = [
        {
            "engine": TITLES[one["engine"]],
            "release": RELEASES[one["release"]],
            "rate": one["rows_per_second"],
            "per_processor": one["rows_per_processor_second"],
            "over": figure(one["over_bare_processor"]),
            "wall": figure(one["over_bare"]),
            "peak": one["peak_mb"],
            "killed": "yes" if one["killed"] else "no workers",
            "lost": one["lost"],
            "doubled": one["doubled"],
            "same": "yes" if one["same_bytes"] else "no",
            "n": one["rows"],
            "load": one["load"],
            "turns": len(one["turns"]),
        }
        for one in measured
    ]
    return {
        "title": "A stage against bare onnxruntime in the same engine, in turn",
        "command": [
            "OMP_NUM_THREADS=1 nice -n 10 python benchmarks/engines.py --out benchmarks/results"
        ],
        "data": f"drawn vectors of {NUMBERS} numbers; drawn JPEGs of 64 x 64",
        "n": None,
        "seeds": None,
        "confidence": None,
        "machine": None,
        "commit": None,
        "published_in": None,
        "source": None,
        "columns": [
            {"key": "engine", "title": "engine"},
            {"key": "release", "title": "release"},
            {"key": "n", "title": "records"},
            {"key": "rate", "title": "records a second"},
            {"key": "per_processor", "title": "records a processor second"},
            {"key": "over", "title": "speed over bare onnxruntime, by processor time"},
            {"key": "wall", "title": "by wall time"},
            {"key": "peak", "title": "peak memory of a worker", "unit": "MB"},
            {"key": "killed", "title": "a worker killed"},
            {"key": "lost", "title": "lost"},
            {"key": "doubled", "title": "doubled"},
            {"key": "same", "title": "same bytes"},
            {"key": "turns", "title": "turns"},
            {"key": "load", "title": "load before"},
        ],
        "rows": rows,
        "notes": [
            "Medians of the turns, each of all records; in brackets the lowest and highest turn.",
            "The bare function draws noise with numpy's generator, without key and id.",
            "Of Hugging Face the killed worker ends the map with an error, and it was run again.",
        ],
    }


def figure(spread: dict[str, float]) -> dict[str, float]:
    low, high = (round(spread[key], 2) for key in ("least", "most"))
    return {"value": round(spread["median"], 2), "low": low, "high": high}


if __name__ == "__main__":
    sys.exit(main())
