"""Decoding and packing a folder of JPEGs, against bare Pillow on as many threads in the same run.
The goal: 0.8 of its speed.

    python benchmarks/loading.py

The two take turns; a ratio is one turn's time of Pillow decoding the files and keeping nothing over
that of `privet.load` with an empty cache (reading the table, hashing the files, decoding, writing
the packed set and syncing it to disk). Beside it, the same of processor seconds, which other
programs on the machine hardly change; and for information: the same load once it is packed, a bare
write of as many bytes to the same disk, and 20,000 portraits drawn. The exit code is 1 under the
goal.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memory import machine, write_folder

import privet
from privet.benchmarking.cases import bare_pillow
from privet.core.progress import console
from privet.data.portraits.source import portraits

GOAL = 0.8


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument(
        "--folder", type=Path, help="where the pictures and the cache go for the time being"
    )
    words.add_argument("--pictures", type=int, default=8_000)
    words.add_argument("--repetitions", type=int, default=3)
    words.add_argument("--portraits", type=int, default=20_000, help="how many to draw; 0 for none")
    given = words.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory(prefix="privet-loading-", dir=given.folder) as name:
        folder = Path(name)
        write_folder(folder / "pictures", given.pictures, 2_000)
        turns = [turn(folder) for _ in range(given.repetitions + 1)][
            1:
        ]  # the first warms the page cache and the imports
    result: dict[str, Any] = {
        "pictures": given.pictures,
        "threads": before["cores"],
        "goal": GOAL,
        "speed_over_bare_pillow": spread([t["pillow"][0] / t["packing"][0] for t in turns]),
        "processor_over_bare_pillow": spread([t["pillow"][1] / t["packing"][1] for t in turns]),
        "seconds": {key: spread([t[key][0] for t in turns]) for key in turns[0]},
        "pictures_packed_per_second": round(
            given.pictures / statistics.median(t["packing"][0] for t in turns), 1
        ),
    }
    if given.portraits:
        result["portraits"] = {
            "n": given.portraits,
            "seconds": round(seconds(lambda: portraits(given.portraits, progress=False))[0], 2),
        }
    sys.stdout.write(json.dumps({**result, "machine": before}, indent=2) + "\n")
    return int(result["speed_over_bare_pillow"]["median"] < GOAL)


def turn(folder: Path) -> dict[str, tuple[float, float]]:
    """Seconds, and processor seconds, of one repetition of everything that is compared."""
    pictures, cache = folder / "pictures", folder / "cache"
    paths = sorted(pictures.glob("*.jpg"))
    os.environ["PRIVET_CACHE"] = str(cache)
    took = {
        "pillow": seconds(lambda: bare_pillow(paths)),
        "packing": seconds(lambda: privet.load(pictures, progress=False)),
        "packed": seconds(lambda: privet.load(pictures, progress=False)),
    }
    content = next(cache.glob("*.npy")).read_bytes()
    took["disk"] = seconds(lambda: write_and_sync(cache / "same-bytes", content))
    shutil.rmtree(cache)
    console.print(
        "  ".join(f"{key} {value[0]:.2f} s" for key, value in took.items()), highlight=False
    )
    return took


def write_and_sync(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    start, worked = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - start, time.process_time() - worked


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The median, the ends and the values themselves, in the order they were measured."""
    return {
        "median": round(statistics.median(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
        "all": [round(v, 3) for v in values],
    }


if __name__ == "__main__":
    sys.exit(main())
