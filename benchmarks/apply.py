"""`privet apply` against bare onnxruntime: the same graph, batches and threads on one batch that
stays in memory. The goal: 0.85.

    python benchmarks/apply.py                                   rows and pictures, a few minutes
    python benchmarks/apply.py --rows 1000000 --pictures 100000  the sizes of the goal

Releases are of networks at their published width that have learned nothing: hedge and TIPRDC's
extractor, on rows of thirteen columns and on JPEGs of CelebA's size brought to 64 x 64. Ours and
the reference take turns; a ratio is the reference's seconds over ours for as many records, reading,
decoding, encoding, noise, shuffling, writing and syncing included. Beside it: the same of processor
seconds, which other programs on the machine do not change; how much noise from a key costs over
noise from the operating system, and shuffling over keeping the order, in processor seconds; the
ratio to onnxruntime's default settings (all cores on one batch of 256); and the peak memory of the
command in a process of its own. The exit code is 1 under the goal or over 1 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from loading import spread

from privet.benchmarking.cases import bare, extractor, hedge, photographs
from privet.benchmarking.ratios import machine
from privet.core.progress import console
from privet.data.schema import ImageSchema, learn_schema
from privet.data.sources import load
from privet.release.apply import ApplyOptions, apply
from privet.release.randomness import NOISE_BATCH
from privet.release.release import Release
from privet.release.runtime import read_graph, session

GOAL, MEMORY = 0.85, 1e9


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--rows", type=int, default=100_000)
    words.add_argument("--pictures", type=int, default=1_000)
    words.add_argument("--turns", type=int, default=3)
    words.add_argument(
        "--cases",
        nargs="+",
        default=["hedge-rows", "tiprdc-rows", "hedge-pictures", "tiprdc-pictures"],
    )
    words.add_argument("--folder", type=Path, help="where files go for the time being")
    given = words.parse_args()
    before, result = machine(), {}
    with tempfile.TemporaryDirectory(prefix="privet-apply-", dir=given.folder) as name:
        folder = Path(name)
        makers = {"hedge": hedge, "tiprdc": extractor}
        for case in given.cases:
            method, kind = case.split("-")
            source, schema, n = inputs(
                folder, kind, given.rows if kind == "rows" else given.pictures
            )
            result[case] = measure(
                makers[method](schema, folder / case), source, n, folder, given.turns
            )
            console.print(case, json.dumps(result[case]), highlight=False)
    met = all(
        found["over_bare"]["median"] >= GOAL and found["peak_bytes"] < MEMORY
        for found in result.values()
    )
    sys.stdout.write(
        json.dumps({"goal": GOAL, "goal_met": met, **result, "machine": before}, indent=2) + "\n"
    )
    return 0 if met else 1


def inputs(folder: Path, kind: str, n: int) -> tuple[Path, Any, int]:
    if kind == "pictures":
        if not (folder / "photos").exists():
            photographs(folder / "photos", n)
        return folder / "photos", ImageSchema(3, 64, 64), n
    path, rng = folder / "rows.parquet", np.random.default_rng(0)
    if not path.exists():
        columns: dict[str, Any] = {f"n{i}": rng.standard_normal(n) for i in range(6)}
        sizes = (7, 16, 7, 15, 6, 5, 42)
        columns |= {
            f"c{i}": np.array([f"value {j}" for j in range(size)])[rng.integers(0, size, n)]
            for i, size in enumerate(sizes)
        }
        pd.DataFrame(columns).to_parquet(path)
        pd.read_parquet(path).head(2_000).to_parquet(folder / "some.parquet")
    return path, learn_schema(load(folder / "some.parquet", progress=False)), n


def measure(release: Path, source: Path, n: int, folder: Path, turns: int) -> dict[str, Any]:
    peak = peak_bytes(release, source, folder / "out.parquet")
    works: dict[str, Callable[[], object]] = {
        "ours": applied(release, source, folder),
        "ordered": applied(release, source, folder, ordered=True),
        "fresh": applied(release, source, folder, ordered=True, fresh=True),
        "bare": bare(release, n),
        "default": default(release, n),
    }
    for work in works.values():
        work()
    taken = [{name: seconds(work) for name, work in works.items()} for _ in range(turns)]
    return {
        "records": n,
        "over_bare": spread([turn["bare"][0] / turn["ours"][0] for turn in taken]),
        "over_bare_processor": spread([turn["bare"][1] / turn["ours"][1] for turn in taken]),
        "keyed_over_fresh": spread([turn["ordered"][1] / turn["fresh"][1] for turn in taken]),
        "shuffled_over_ordered": spread([turn["ours"][1] / turn["ordered"][1] for turn in taken]),
        "over_default": spread([turn["default"][0] / turn["ours"][0] for turn in taken]),
        "records_per_second": round(n / float(np.median([turn["ours"][0] for turn in taken])), 1),
        "peak_bytes": peak,
    }


def applied(release: Path, source: Path, folder: Path, **options: bool) -> Callable[[], object]:
    given = ApplyOptions(home=folder, **options)
    out = folder / "out.parquet"
    return lambda: apply(release, [source], out, progress=False, options=given)


def default(release: Path, n: int) -> Callable[[], object]:
    loaded = Release.load(release)
    run, x = session(read_graph(release)), {"x": loaded.schema.random(NOISE_BATCH)}
    if loaded.noise is not None:
        x["noise"] = loaded.noise.draw(NOISE_BATCH, seed=0)
    return lambda: [run.run(["z"], x) for _ in range(-(-n // NOISE_BATCH))]


def peak_bytes(release: Path, source: Path, out: Path) -> int:
    """Of the command, told by itself: what a parent is told about its child counts the parent's own
    memory, too."""
    code = (
        "import re, sys; from pathlib import Path; from privet.cli.main import app;"
        " app(sys.argv[1:], standalone_mode=False); "
    )
    code += "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    words = [sys.executable, "-c", code, "apply", release, source, "--out", out]
    return 1024 * int(
        subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    )


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    start, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - worked


if __name__ == "__main__":
    sys.exit(main())
