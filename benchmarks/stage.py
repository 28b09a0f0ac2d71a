"""A stage against onnxruntime alone on one resident batch, and against an earlier version of itself:
processes that take turns. Two more of them do nothing but encode the records, or draw their noise.

    OMP_NUM_THREADS=1 nice -n 10 python benchmarks/stage.py --before OLD/src \
        --out benchmarks/results

The reference reads, encodes, draws and writes nothing: it runs the same graph again and again on
the same batch. A stage takes tables of 4,096 rows of thirteen columns, or of 16 JPEGs of 64 x 64,
with an id, and gives lists. Counted are processor seconds of one thread. The goals: 0.85 for hedge
and veil, 0.6 for LEACE, the smallest graph. The exit code is 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from drawn_rows import pictures, release, rows
from memory import machine
from tables import store

from privet.core.progress import console

# Of each: release, kind of record, records, goal.
CASES = [
    ("leace", "rows", 40_960, 0.6),
    ("hedge", "rows", 4_096, 0.85),
    ("veil", "rows", 4_096, 0.85),
    ("hedge", "pictures", 16, 0.85),
    ("veil", "pictures", 16, 0.85),
]
TITLES = {"leace": "LEACE, the smallest graph", "hedge": "hedge", "veil": "veil, a code of 128"}
BATCH = 4096
KEYS = ("bare_us", "after_us", "encoding_us", "noise_us", "after", "goal", "before")
CHILD = """
import sys, time
from pathlib import Path
import pyarrow.parquet as pq
way, folder, source, home, batch = sys.argv[1:]
folder, batch = Path(folder), int(batch)
table = pq.read_table(source).combine_chunks()
parts = [table.slice(at, batch) for at in range(0, len(table), batch)]
if way == "bare":
    from privet.release.apply import at_once
    from privet.release.runtime import Runnable, read_graph, session
    release, run = Runnable.load(folder), session(read_graph(folder), threads=1)
    few = min(at_once(release.schema), len(table))
    inputs = {"x": release.schema.random(few)}
    if release.noise is not None:
        inputs["noise"] = release.noise.draw(few, seed=0)
    def work():
        for _ in range(len(table) // few):
            run.run(["z"], inputs)
else:
    from privet.scale.stage import Stage
    stage = Stage(folder, id="id", home=home)
    def work():
        for part in parts:
            stage(part)
if way in ("encoding", "noise"):
    from privet.data.stream import encoded_table, record_field
    from privet.release.apply import at_once
    release, _ = stage._loaded()
    def encode(part):
        column = record_field(release.schema, part.schema, stage._beside)
        return encoded_table(release.schema, part, column, "The table")
    encoded = [(encode(part), stage._ids(part, release)) for part in parts]
    def work():
        if way == "encoding":
            for part in parts:
                encode(part)
            return
        few = at_once(release.schema)
        for x, ids in encoded if release.noise is not None else ():
            for at in range(0, len(x), few):
                stage.randomness.draw(release.noise, x[at : at + few], at, ids[at : at + few])
work()
print("ready", flush=True)
for _ in sys.stdin:
    start = time.process_time()
    work()
    print(time.process_time() - start, flush=True)
"""


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--before", type=Path, help="the sources of an earlier version")
    words.add_argument("--turns", type=int, default=7)
    words.add_argument("--cases", type=int, nargs="+", default=list(range(len(CASES))))
    words.add_argument("--out", type=Path, help="folder for stage.json")
    given = words.parse_args()
    before, measured = machine(), []
    with tempfile.TemporaryDirectory(prefix="privet-stage-") as name:
        for which in given.cases:
            measured.append(measure(CASES[which], Path(name), given.before, given.turns))
            console.print(json.dumps(measured[-1]), highlight=False)
            if given.out:
                store(given.out / "stage.json", study(measured, before))
    return int(any(one["after"]["value"] < one["goal"] for one in measured))


def measure(
    case: tuple[str, str, int, float], folder: Path, before: Path | None, turns: int
) -> dict[str, Any]:
    name, kind, n, goal = case
    made = release(name, kind, folder)
    source = folder / f"{kind}-{n}.parquet"
    pq.write_table(rows(n) if kind == "rows" else pictures(n), source)
    sources = {"bare": "", "after": "", "encoding": "", "noise": ""}
    sources |= {"before": str(before)} if before else {}
    words = [str(made), str(source), str(folder / "home"), str(BATCH)]
    running = {way: started(way, words, path) for way, path in sources.items()}
    try:
        took = [{way: ask(child) for way, child in running.items()} for _ in range(turns)]
    finally:
        for child in running.values():
            child.kill()
            child.wait()
    told = {"release": name, "kind": kind, "n": n, "goal": goal, "turns": turns}
    for way in sources:
        least = min(turn[way] for turn in took)
        told[f"{way}_us"] = round(1e6 * least / n, 2)
        if way in ("encoding", "noise"):
            continue
        each = [turn["bare"] / turn[way] for turn in took]
        told[way] = {
            "value": round(statistics.median(each), 2),
            "low": round(min(each), 2),
            "high": round(max(each), 2),
        }
    return told


def started(way: str, words: list[str], path: str) -> subprocess.Popen[str]:
    env = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, way, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )
    if child.stdout is None or child.stdout.readline().strip() != "ready":
        raise SystemExit(f"{way} did not start.")
    return child


def ask(child: subprocess.Popen[str]) -> float:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def study(measured: list[dict[str, Any]], before: dict[str, Any]) -> dict[str, Any]:
    """The results file that docs/scale.md shows."""
    return {
        "title": "A stage against onnxruntime alone on one resident batch, before and after",
        "command": [
            "OMP_NUM_THREADS=1 nice -n 10 python benchmarks/stage.py --before OLD/src \\",
            "    --out benchmarks/results",
        ],
        "data": "drawn rows of six numbers and seven columns of words; drawn JPEGs of 64 x 64",
        "n": None,
        "seeds": None,
        "confidence": None,
        "machine": f"one core of an {before['processor']} that others used at the same time (load"
        f" {before['load_average'][0]:.0f})",
        "commit": None,
        "published_in": None,
        "source": None,
        "columns": [
            {"key": "release", "title": "release"},
            {"key": "records", "title": "records"},
            {"key": "bare_us", "title": "onnxruntime alone, a record", "unit": "µs"},
            {"key": "after_us", "title": "stage, a record", "unit": "µs"},
            {"key": "encoding_us", "title": "encoding alone", "unit": "µs"},
            {"key": "noise_us", "title": "noise alone", "unit": "µs"},
            {"key": "after", "title": "share of onnxruntime's speed"},
            {"key": "goal", "title": "goal"},
            {"key": "before", "title": "before (8c70498)"},
            {"key": "turns", "title": "turns"},
        ],
        "rows": [
            {
                "release": TITLES[one["release"]],
                "records": one["kind"],
                **{key: one.get(key) for key in KEYS},
                "n": one["n"],
                "turns": one["turns"],
            }
            for one in measured
        ],
        "notes": [
            "Processor time; the share is the median of the turns, in brackets the lowest and"
            " highest; µs are those of the fastest turn."
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
