"""A whole audit, in seconds: a private attribute, a task where there is one, undeclared attributes,
people, what can be rebuilt.

    python benchmarks/auditing.py --data adult.parquet                                                      goal: 60 s on two cores
    python benchmarks/auditing.py --data celeba64.parquet --release r --private Male --utility "" --battery strong --device cuda --goal 180

Without a release it is the identity, so that every attacker has all there is to learn; figures of
raw records, which an earlier audit of the same data has (`raw_from`), are left out. Beside the
seconds of the whole, those of every adversary on the private attribute and the task, in which the
two of them that run at the same time count both. The exit code is 1 over the goal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does, before torch is loaded

import torch
from loading import spread
from memory import machine

import privet
from privet.core.progress import console
from privet.data.schema import learn_schema
from privet.release.release import Release


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--data", required=True, help="like adult.parquet")
    words.add_argument("--private", default="sex")
    words.add_argument("--utility", default="income")
    words.add_argument("--battery", default="standard")
    words.add_argument(
        "--release",
        type=Path,
        help="a folder of `privet learn`; the records as they are without it",
    )
    words.add_argument("--device", default="cpu")
    words.add_argument("--goal", type=float, default=60.0)
    words.add_argument("--repetitions", type=int, default=3)
    given = words.parse_args()
    before = machine()
    data = privet.load(given.data)
    utility = [given.utility] if given.utility else []
    release = (
        Release.load(given.release)
        if given.release
        else Release.identity(learn_schema(data, [given.private, *utility]))
    )
    turns, last = [], None
    for _ in range(given.repetitions):
        start, worked = time.monotonic(), time.process_time()
        last = privet.audit(
            release,
            data,
            utility,
            given.battery,
            private=[given.private],
            raw=False,
            device=given.device,
            progress=False,
        )
        turns.append((time.monotonic() - start, time.process_time() - worked, last))
        console.print(f"{turns[-1][0]:.1f} s, of processors {turns[-1][1]:.1f} s", highlight=False)
    assert last is not None, "at least one repetition"
    result: dict[str, Any] = {
        "battery": given.battery,
        "records": {part: size["records"] for part, size in last.data["parts"].items()},
        "goal": given.goal,
        "seconds": spread([wall for wall, _, _ in turns]),
        "processor_seconds": spread([worked for _, worked, _ in turns]),
        "seconds_of": {
            reading.attribute: {
                finding.adversary: spread(
                    [
                        said.reading(reading.attribute).released[place].seconds
                        for _, _, said in turns
                    ]
                )
                for place, finding in enumerate(reading.released)
            }
            for reading in last.readings
        },
        "rebuilt": {one.decoder: round(one.value, 4) for one in last.rebuilt},
        "people": {
            one.attack: {name: round(figure.value, 4) for name, figure in one.figures.items()}
            for one in last.people
        },
        "balanced_accuracy": {
            r.attribute: {f.adversary: round(f.score.value, 4) for f in r.released}
            for r in last.readings
        },
        "threads": torch.get_num_threads(),
        "machine": before,
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return int(result["seconds"]["median"] > given.goal)


if __name__ == "__main__":
    sys.exit(main())
