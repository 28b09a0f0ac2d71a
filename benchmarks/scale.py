"""One worker against two on a Ray cluster of two nodes on this machine: how nearly `privet compare`
takes half the time.

    OMP_NUM_THREADS=1 python benchmarks/scale.py

The same cells are done in empty folders by one worker and by two, in turn, each with one thread;
the ratio is one turn's time of one over that of two, 2 at best. Both nodes run here, on two cores:
whatever the cluster itself takes, and whoever else works here, is taken from them. Beside it, what
the arithmetic of docs/scale.md needs: processor time and bytes per record of `privet apply`, memory
of a worker, bytes of a cell. Needs `privet[ray]`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loading import spread
from memory import machine

from privet.core.progress import console

GOAL = 1.8
DIARY = "PRIVET_SCALE_DIARY"
LOOPBACK = ("127.0.0.2", "127.0.0.3")
STORE = 200 * 2**20


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--seeds", type=int, default=6, help="cells, beside the raw records")
    words.add_argument("--records", type=int, default=4000)
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--rows", type=int, default=200_000, help="of the table that is released")
    words.add_argument("--pictures", type=int, default=2000)
    words.add_argument("--parts", default="compare,apply")
    given = words.parse_args()
    told: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="privet-scale-") as scratch:
        if "compare" in given.parts:
            told["compare"] = compared(Path(scratch), given.seeds, given.records, given.turns)
        if "apply" in given.parts:
            told["apply"] = applied(Path(scratch), given.rows, given.pictures)
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return int("compare" in told and told["compare"]["one_over_two"]["median"] < GOAL)


def compared(room: Path, seeds: int, records: int, turns: int) -> dict[str, Any]:
    """Seconds of one worker and of two; the first turn, in which processes are started, is not
    counted."""
    rows(room / "records.parquet", records)
    os.environ[DIARY] = str(room / "diary.jsonl")
    with cluster() as address:
        once(address, room / "warm", room, 2, 2)
        took = []
        for turn in range(turns):
            pair = [
                once(address, room / f"{turn}-{workers}", room, seeds, workers)
                for workers in (1, 2)
            ]
            console.print(
                f"one worker {pair[0]:.1f} s, two {pair[1]:.1f} s: {pair[0] / pair[1]:.2f}",
                highlight=False,
            )
            took.append(pair)
    notes = [json.loads(line) for line in Path(os.environ[DIARY]).read_text().splitlines()]
    sizes = [
        sum(p.stat().st_size for p in cell.rglob("*") if p.is_file())
        for cell in (room / "0-2" / "cells").iterdir()
    ]
    return {
        "goal": GOAL,
        "cells": seeds + 1,
        "one_over_two": spread([one / two for one, two in took]),
        "seconds_of_one": spread([one for one, _ in took]),
        "seconds_of_two": spread([two for _, two in took]),
        "peak_bytes_of_a_worker": max(note["peak"] for note in notes),
        "bytes_of_a_cell": spread(sizes),
    }


def once(address: str, out: Path, room: Path, seeds: int, workers: int) -> float:
    from privet.scale import ray_cells as cells
    from privet.studies.compare import run_study
    from privet.studies.study import Study

    cells.WORK = "scale:do"
    study = Study.of(
        str(room / "records.parquet"),
        ["u"],
        ["y"],
        methods=["tiprdc"],
        budgets={"tiprdc": [0.5]},
        settings={"tiprdc": {"width": 0.5, "warmup": 1, "epochs": 6}},
        seeds=seeds,
    )
    with cells.worker_pool(address, workers) as pool:
        started = time.monotonic()
        found = run_study(
            study,
            out,
            workers=pool.workers,
            device=pool.device,
            start_worker=pool.start_worker,
        )
    if found.count("done") != seeds + 1:
        raise SystemExit(f"Only {found.count('done')} of {seeds + 1} cells were done.")
    return time.monotonic() - started


def do(job: dict[str, Any]) -> None:
    """The work of a task, and how much memory its process has had at most."""
    from privet.studies import worker

    worker.do(job)
    with Path(os.environ[DIARY]).open("a") as diary:
        diary.write(
            json.dumps(
                {"do": job["do"], "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
            )
            + "\n"
        )


@contextmanager
def cluster() -> Iterator[str]:
    """Two nodes of one core each, with addresses of their own."""
    from ray.cluster_utils import Cluster

    from privet.scale.cluster import connected

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    own = [
        {"num_cpus": 1, "object_store_memory": STORE, "node_ip_address": address}
        for address in LOOPBACK
    ]
    nodes = Cluster(initialize_head=True, head_node_args={**own[0], "include_dashboard": False})
    try:
        nodes.add_node(**own[1])
        with connected(nodes.address):
            yield nodes.address
    finally:
        nodes.shutdown()


def rows(path: Path, n: int) -> None:
    """A table of fourteen columns in which u and y leave their traces."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    u, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    frame = pd.DataFrame(
        rng.standard_normal((n, 14)) + np.outer(u, rng.standard_normal(14)),
        columns=[f"c{i}" for i in range(14)],
    )
    frame["c0"] += y
    frame.assign(u=u, y=y).to_parquet(path, index=False, row_group_size=50_000)


def applied(room: Path, table: int, pictures: int) -> dict[str, Any]:
    """Processor seconds and bytes per record, of a table and of 48 x 48 pictures, released here."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    from privet.data.portraits.source import portraits
    from privet.data.sources import load

    rows(room / "few.parquet", 2000)
    rows(room / "rows.parquet", table)
    found = {
        "table": _applied(
            room / "table",
            load(str(room / "few.parquet"), progress=False),
            "u",
            room / "rows.parquet",
            table,
            ["y"],
        )
    }
    drawn = portraits(400)
    cells = []
    for picture in np.asarray(drawn.records[:400]):
        sink = room / "one.jpg"
        Image.fromarray(np.moveaxis(picture, 0, 2)).save(sink, quality=90)
        cells.append(sink.read_bytes())
    pq.write_table(
        pa.table({"image": [cells[i % 400] for i in range(pictures)]}),
        room / "pictures.parquet",
        row_group_size=1000,
    )
    return {
        **found,
        "pictures": _applied(
            room / "faces", drawn, "beard", room / "pictures.parquet", pictures, []
        ),
    }


def _applied(
    folder: Path, data: Any, private: str, source: Path, n: int, without: list[str]
) -> dict[str, Any]:
    from privet.methods.registry import METHODS
    from privet.release.apply import apply
    from privet.train.game import Run

    settings = ["width=0.25", "warmup=0.1", "epochs=0.1", "noise=0.1"]
    made = (
        METHODS["tiprdc"]
        .parse(settings)
        .fit(data, [private], without=without, run=Run(progress=False, device="cpu"))
    )
    made.save(folder)
    weighs = sum(p.stat().st_size for p in folder.iterdir())
    cpu, wall = time.process_time(), time.monotonic()
    out = apply(folder, [source], folder / "released.parquet", progress=False)
    return {
        "records": n,
        "numbers_released": made.shape,
        "processor_microseconds_per_record": round(1e6 * (time.process_time() - cpu) / n, 1),
        "records_per_second": round(n / (time.monotonic() - wall)),
        "bytes_in_per_record": round(source.stat().st_size / n),
        "bytes_out_per_record": round(out.stat().st_size / n),
        "bytes_of_the_release": weighs,
    }


if __name__ == "__main__":
    raise SystemExit(main())
