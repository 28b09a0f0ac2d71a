"""Cost against rows: `privet apply` and a stage over 10^6, 3 * 10^6 and 10^7 drawn rows, each in a
process of its own. Memory should be flat, and time a straight line.

    OMP_NUM_THREADS=1 nice -n 10 python benchmarks/cost_of_rows.py --out benchmarks/results

A row has six numbers and seven columns of words; the release is a hedge of a twentieth of the width
with keyed noise. `apply` shuffles and writes one parquet file; the stage reads batches and writes
released ones in the same order. Counted are processor seconds (others may use the machine), wall
time and the peak memory of the process, and that as many rows come out as go in. The line is fitted
to all but the largest size, and the largest is compared with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from drawn_rows import release, write_rows
from memory import machine

from privet.core.files import write_text
from privet.core.progress import console

BATCH = 1 << 14
WAYS = {"privet apply": "apply", "privet.Stage": "stage"}
CHILD = """
import json, re, resource, sys, time
from pathlib import Path
import pyarrow.parquet as pq
way, release, source, out, home, batch = sys.argv[1:]
start = time.perf_counter()
if way == "apply":
    from privet.release.apply import ApplyOptions, apply
    options = ApplyOptions(home=Path(home), id="id", force=True)
    apply(release, [source], out, progress=False, options=options)
else:
    from privet.scale.stage import Stage
    stage = Stage(release, id="id", home=home)
    with pq.ParquetFile(source, pre_buffer=False) as file:
        schema = stage.schema(file.schema_arrow)
        with pq.ParquetWriter(out, schema, use_dictionary=False, write_statistics=False) as writer:
            for part in file.iter_batches(int(batch)):
                writer.write_batch(stage(part), row_group_size=int(batch))
used = resource.getrusage(resource.RUSAGE_SELF)
peak = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(json.dumps({"seconds": time.perf_counter() - start,
                  "processor": used.ru_utime + used.ru_stime, "peak_mb": int(peak) / 1024}))
"""


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    words.add_argument("--folder", type=Path, help="where files go for the time being")
    words.add_argument("--out", type=Path, help="folder for cost-of-rows.json and the plot")
    given = words.parse_args()
    before, measured = machine(), []
    with tempfile.TemporaryDirectory(prefix="privet-rows-", dir=given.folder) as name:
        folder = Path(name)
        made = release("small hedge", "rows", folder)
        for n in given.sizes:
            source = write_rows(folder / "rows.parquet", n)
            for title, way in WAYS.items():
                row = {"way": title, "rows": n, **once(way, made, source, folder)}
                console.print(json.dumps(row), highlight=False)
                measured.append(row)
    result = {"rows": measured, "lines": lines(measured), "machine": before}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    if given.out:
        write_text(given.out / "cost-of-rows-raw.json", json.dumps(result, indent=1) + "\n")
    return 0 if all(row["rows_out"] == row["rows"] for row in measured) else 1


def once(way: str, made: Path, source: Path, folder: Path) -> dict[str, Any]:
    out = folder / "out.parquet"
    words = [sys.executable, "-c", CHILD, way, made, source, out, folder / "home", str(BATCH)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return {
        **{key: round(value, 1) for key, value in told.items()},
        "rows_out": pq.ParquetFile(out).metadata.num_rows,
        "bytes_in": source.stat().st_size,
        "bytes_out": out.stat().st_size,
    }


def lines(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Processor seconds = start + rate * rows, fitted to all but the largest size; and how far the
    largest is from that line."""
    fitted = {}
    for way in WAYS:
        some = [(row["rows"], row["processor"]) for row in measured if row["way"] == way]
        (*smaller, (most, took)) = sorted(some)
        rate, start = np.polyfit(*zip(*smaller, strict=True), 1)
        fitted[way] = {
            "microseconds_per_row": round(1e6 * rate, 2),
            "start_seconds": round(start, 2),
            "largest_over_line": round(took / (start + rate * most), 3),
            "seconds_of_1e8_by_the_line": round(start + rate * 1e8),
        }
    return fitted


if __name__ == "__main__":
    sys.exit(main())
