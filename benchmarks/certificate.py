"""Time and memory of a certificate for codes of four dimensions. The goal: 20,000 people of each value under 60 s and 2 GB.

    python benchmarks/certificate.py

Each size runs in a process of its own, so that its peak memory is its own. Beside it, the error of the Monte Carlo integral over
the slack for people: where that is well below 1, fewer draws would do. The result is JSON on standard output; the exit code is
1 over the goal.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (5_000, 10_000, 20_000, 40_000)
GOAL = {"people_of_each_value": 20_000, "seconds": 60.0, "bytes": 2e9}


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="people of each of two values")
    words.add_argument("--d", type=int, default=4, help="dimensions of the code")
    words.add_argument("--sigma", type=float, default=0.4, help="noise, in standard deviations of the code")
    words.add_argument("--draws", type=int, default=100_000)
    given = words.parse_args()
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        rows = [pool.apply(measure, (n, given.d, given.sigma, given.draws)) for n in given.sizes]
    within = [row for row in rows if row["n"] <= GOAL["people_of_each_value"]]
    met = all(row["seconds"] < GOAL["seconds"] and row["peak_bytes"] < GOAL["bytes"] for row in within)
    settings = {"d": given.d, "sigma": given.sigma, "draws": given.draws}
    result = {"goal": GOAL, "goal_met": met, "sizes": rows, "settings": settings, "machine": machine()}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0 if met else 1


def measure(n: int, d: int, sigma: float, draws: int) -> dict[str, Any]:
    import torch  # noqa: F401  # loading it is not what is measured

    from privet.evidence.certificate import certify

    labels = np.arange(2 * n) % 2
    codes = np.random.default_rng(0).normal(size=(2 * n, d)) + 0.1 * labels[:, None]
    before, worked = time.monotonic(), time.process_time()
    found = certify(codes, sigma, labels, np.arange(2 * n), "value", ("a", "b"), draws=draws)
    people = float(np.sqrt(np.log(1 / 0.009) / (4 * n)))
    return {
        "n": n,
        "seconds": round(time.monotonic() - before, 2),
        "processor_seconds": round(time.process_time() - worked, 2),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "bound": found.bound,
        "slack": round(found.slack, 5),
        "integral_error_over_people_slack": round((found.slack - people) / people, 4),
    }


def machine() -> dict[str, Any]:
    """What a figure has to be read with."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "processor": next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in ("privet", "torch", "numpy", "scipy")},
    }


if __name__ == "__main__":
    sys.exit(main())
