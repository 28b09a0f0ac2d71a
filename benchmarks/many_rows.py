"""A table of 100,000 people through learn, certify, audit and apply, as four commands: seconds and
peak memory of each.

    OMP_NUM_THREADS=1 python benchmarks/many_rows.py --rows 100000

The rows are drawn, so that no two people are copies of each other: `sex` is a fair coin; ten
numbers are normal with means that differ between the sexes by 0 to 0.5 deviations; three classes of
4, 6 and 8 values depend on a number and on sex; `income` is high with the logistic probability of
three numbers and a class. The result is JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privet import Audit

SHIFTS = np.linspace(0.0, 0.5, 10)
"""By how many deviations the numbers of the two sexes differ."""
CLASSES = (4, 6, 8)
"""Values of the columns that hold classes."""


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """n rows of the law above."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    numbers = rng.standard_normal((n, len(SHIFTS))) + sex[:, None] * SHIFTS
    columns: dict[str, Any] = {f"number{i}": column for i, column in enumerate(numbers.T)}
    for i, size in enumerate(CLASSES):
        drawn = numbers[:, i] + 0.3 * sex + rng.standard_normal(n)
        codes = np.clip(np.floor((drawn + 2) * size / 4), 0, size - 1).astype(int)
        columns[f"class{i}"] = np.array([f"value {code}" for code in range(size)])[codes]
    pull = numbers[:, 0] - numbers[:, 1] + 0.5 * numbers[:, 9] + (columns["class0"] == "value 1")
    columns["income"] = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * pull)), "high", "low")
    columns["sex"] = np.where(sex == 1, "f", "m")
    return pd.DataFrame(columns)


def timed(folder: Path, *words: str) -> dict[str, Any]:
    """One command in a process of its own: seconds, processor seconds and peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    # A child of its own for each, because the peak is that of all children so far.
    code = (
        "import resource, subprocess, sys;"
        "done = subprocess.run(sys.argv[1:], stdout=sys.stderr);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss);"
        "sys.exit(done.returncode)"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "privet", *words]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "command": " ".join(["privet", *words]),
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1
        ),
        "peak_mb": round(int(done.stdout) / 1024),
    }


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--rows", type=int, default=100_000)
    words.add_argument("--battery", default="quick")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="privet-rows-") as name:
        folder = Path(name)
        os.environ |= {"PRIVET_HOME": f"{name}/home", "PRIVET_CACHE": f"{name}/cache"}
        people(given.rows).to_csv(folder / "people.csv", index=False)
        data = ("--data", "people.csv")
        tasks = ("--private", "sex", "--utility", "income", "--target", "0.56")
        steps = [
            timed(folder, "data", "show", "people.csv"),
            timed(folder, "learn", "hedge", *data, *tasks, "--out", "r"),
            timed(folder, "certify", "r", *data, "--out", "c"),
            timed(
                folder, "audit", "r", *data, "--utility", "income", "--battery", given.battery,
                "--out", "a",
            ),
            timed(folder, "apply", "r", "people.csv", "--out", "released.csv"),
        ]  # fmt: skip
        audit = Audit.load(folder / "a" / "audit.json")
        result = {
            "rows": given.rows,
            "csv_mb": round((folder / "people.csv").stat().st_size / 1e6, 1),
            "released_rows": len(pd.read_csv(folder / "released.csv")),
            "steps": steps,
            "read": {one.attribute: asdict(one.worst.score) for one in audit.readings},
            "certified": {one.attribute: one.bound for one in audit.certificates},
        }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
