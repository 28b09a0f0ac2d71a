"""Cost against rows: `privet apply` and a stage over 10^6, 3 * 10^6 and 10^7 drawn rows, each in a
process of its own. Memory should be flat, and time a straight line.

    OMP_NUM_THREADS=1 nice -n 10 python benchmarks/cost_of_rows.py --out benchmarks/results \
        --plot docs/cost-of-rows.svg

A row has six numbers and seven columns of words; the release is a hedge of a twentieth of the width
with keyed noise. `apply` shuffles and writes one parquet file; the stage reads batches and writes
released ones in the same order. Counted are processor seconds (others may use the machine), wall
time and the peak memory of the process, and that as many rows come out as go in. The line is fitted
to all but the largest size, and the largest is compared with it. `--log FILE` takes what was
measured before from a file of lines of JSON, as they are printed, instead of measuring, and `--ways`
measures one of the two alone.
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
from tables import store

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
    words.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    words.add_argument("--folder", type=Path, help="where files go for the time being")
    words.add_argument("--out", type=Path, help="folder for cost-of-rows.json")
    words.add_argument("--plot", type=Path, help="the plot, as SVG")
    words.add_argument("--log", type=Path, help="lines of an earlier run, instead of measuring")
    given = words.parse_args()
    before = machine()
    if given.log:
        measured = [json.loads(line) for line in given.log.read_text().splitlines()]
    else:
        measured = measure(given.sizes, given.ways, given.folder)
    result = {"rows": measured, "lines": lines(measured), "machine": before}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    if given.out:
        store(given.out / "cost-of-rows.json", study(measured, before))
    if given.plot:
        draw(measured, given.plot)
    return 0 if all(row["rows_out"] == row["rows"] for row in measured) else 1


def measure(sizes: list[int], ways: list[str], scratch: Path | None) -> list[dict[str, Any]]:
    measured = []
    with tempfile.TemporaryDirectory(prefix="privet-rows-", dir=scratch) as name:
        folder = Path(name)
        made = release("small hedge", "rows", folder)
        for n in sizes:
            source = write_rows(folder / "rows.parquet", n)
            for title in ways:
                row = {"way": title, "rows": n, **once(WAYS[title], made, source, folder)}
                sys.stderr.write(json.dumps(row) + "\n")
                measured.append(row)
    return measured


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
    """Processor seconds = start + rate * rows, fitted to all but the largest size, and how far the
    largest is from that line; nothing for a way of which there are not three sizes."""
    fitted = {}
    for way in WAYS:
        some = sorted((row["rows"], row["processor"]) for row in measured if row["way"] == way)
        if len(some) < 3:
            continue
        (*smaller, (most, took)) = some
        rate, start = np.polyfit(*zip(*smaller, strict=True), 1)
        fitted[way] = {
            "microseconds_per_row": round(1e6 * rate, 2),
            "start_seconds": round(start, 2),
            "largest_over_line": round(took / (start + rate * most), 3),
        }
    return fitted


def study(measured: list[dict[str, Any]], before: dict[str, Any]) -> dict[str, Any]:
    """The results file that docs/scale.md shows."""
    rows: list[dict[str, Any]] = [
        {
            "way": f"`{row['way']}`",
            "rows": row["rows"],
            "out": row["rows_out"],
            "processor": row["processor"],
            "each": round(1e6 * row["processor"] / row["rows"], 1),
            "wall": round(row["seconds"]),
            "peak": round(row["peak_mb"]),
        }
        for row in sorted(measured, key=lambda row: (row["way"], row["rows"]))
    ]
    fits = lines(measured).items()
    return {
        "title": "Cost against rows: processor seconds and peak memory of apply and of a stage",
        "command": [
            "OMP_NUM_THREADS=1 nice -n 10 python benchmarks/cost_of_rows.py \\",
            "    --out benchmarks/results --plot docs/cost-of-rows.svg",
        ],
        "data": "drawn rows of six numbers and seven columns of words",
        "n": None,
        "seeds": None,
        "confidence": None,
        "machine": f"two cores of an {before['processor']} that others used at the same time (load"
        " 2 to 20)",
        "commit": None,
        "published_in": None,
        "source": None,
        "columns": [
            {"key": "way", "title": "what"},
            {"key": "rows", "title": "rows in"},
            {"key": "out", "title": "rows out"},
            {"key": "processor", "title": "processor time", "unit": "s"},
            {"key": "each", "title": "a row", "unit": "µs"},
            {"key": "wall", "title": "wall time", "unit": "s"},
            {"key": "peak", "title": "peak memory", "unit": "MB"},
        ],
        "rows": rows,
        "notes": [
            f"{way}: the largest run took {fit['largest_over_line']:.2f} times what the line through"
            f" the smaller ones says ({fit['microseconds_per_row']:.1f} µs a row)."
            for way, fit in fits
        ],
    }


def draw(measured: list[dict[str, Any]], path: Path) -> None:
    """Processor seconds and peak memory against rows, with the line through the smaller runs."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "privet", "font.size": 9})
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for way, mark in zip(WAYS, "os", strict=True):
        some = sorted(
            (row["rows"] / 1e6, row["processor"], row["peak_mb"])
            for row in measured
            if row["way"] == way
        )
        rows, processor, peak = zip(*some, strict=True)
        (dots,) = time.plot(rows, processor, mark, label=way)
        smaller = rows[:2], processor[:2]
        rate, start = np.polyfit(*smaller, 1)
        time.plot([0, 10], [start, start + 10 * rate], ":", color=dots.get_color())
        memory.plot(rows, peak, f"{mark}-", label=way)
    time.set(xlabel="million rows", ylabel="processor seconds", xlim=(0, None), ylim=(0, None))
    memory.set(xlabel="million rows", ylabel="peak memory, MB", xlim=(0, None), ylim=(0, None))
    time.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
