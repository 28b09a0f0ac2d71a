"""A whole audit with the standard battery: a private attribute, a task, undeclared attributes and people. The goal: 60 s on two cores.

    python benchmarks/auditing.py --data adult.parquet

The release is the identity, so that every attacker has all there is to learn; figures of raw records, which an earlier audit of the
same data has (`raw_from`), are left out. Beside the seconds of the whole, those of every adversary on the private attribute
and the task, in which the two of them that run at the same time count both. The exit code is 1 over the goal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch is loaded

import torch
from loading import spread
from memory import machine

import privet
from privet.data.schema import learn_schema
from privet.progress import console
from privet.release import Release

GOAL = 60.0


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--data", required=True, help="like adult.parquet")
    words.add_argument("--private", default="sex")
    words.add_argument("--utility", default="income")
    words.add_argument("--battery", default="standard")
    words.add_argument("--repetitions", type=int, default=3)
    given = words.parse_args()
    before = machine()
    data = privet.load(given.data)
    release = Release.identity(learn_schema(data, [given.private, given.utility]))
    turns, last = [], None
    for _ in range(given.repetitions):
        start, worked = time.monotonic(), time.process_time()
        last = privet.audit(release, data, [given.utility], given.battery, private=[given.private], raw=False, device="cpu", progress=False)
        turns.append((time.monotonic() - start, time.process_time() - worked, last))
        console.print(f"{turns[-1][0]:.1f} s, of processors {turns[-1][1]:.1f} s", highlight=False)
    assert last is not None, "at least one repetition"
    result: dict[str, Any] = {
        "battery": given.battery,
        "records": {part: size["records"] for part, size in last.data["parts"].items()},
        "goal": GOAL,
        "seconds": spread([wall for wall, _, _ in turns]),
        "processor_seconds": spread([worked for _, worked, _ in turns]),
        "seconds_of": {
            reading.attribute: {
                finding.adversary: spread([said.reading(reading.attribute).released[place].seconds for _, _, said in turns])
                for place, finding in enumerate(reading.released)
            }
            for reading in last.readings
        },
        "balanced_accuracy": {r.attribute: {f.adversary: round(f.score.value, 4) for f in r.released} for r in last.readings},
        "threads": torch.get_num_threads(),
        "machine": before,
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return int(result["seconds"]["median"] > GOAL)


if __name__ == "__main__":
    sys.exit(main())
