"""Decoding and packing a folder of JPEGs, against bare Pillow on as many threads in the same run.

    python benchmarks/loading.py

The two take turns; a ratio is one turn's time of `privet.load` with an empty cache (reading the table, hashing the files,
decoding, writing the packed set and syncing it to disk) over that of Pillow decoding the same files and keeping nothing.
Beside it, for information: the same load once it is packed, a bare write of as many bytes to the same disk, and
20,000 portraits drawn.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from memory import machine, write_folder
from PIL import Image

import privet
from privet.data.portraits import portraits
from privet.progress import console

CHUNK = 64
"""Files handed to a thread at once."""


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--folder", type=Path, help="where the pictures and the cache go for the time being")
    words.add_argument("--pictures", type=int, default=2_000)
    words.add_argument("--repetitions", type=int, default=3)
    words.add_argument("--portraits", type=int, default=20_000, help="how many to draw; 0 for none")
    given = words.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory(prefix="privet-loading-", dir=given.folder) as name:
        folder = Path(name)
        write_folder(folder / "pictures", given.pictures, given.pictures)
        turns = [turn(folder) for _ in range(given.repetitions + 1)][1:]  # the first warms the page cache and the imports
    result: dict[str, Any] = {
        "pictures": given.pictures,
        "threads": before["cores"],
        "packing_over_bare_pillow": spread([t["packing"] / t["pillow"] for t in turns]),
        "seconds": {key: spread([t[key] for t in turns]) for key in turns[0]},
        "pictures_packed_per_second": round(given.pictures / statistics.median(t["packing"] for t in turns), 1),
    }
    if given.portraits:
        result["portraits"] = {"n": given.portraits, "seconds": round(seconds(lambda: portraits(given.portraits, progress=False)), 2)}
    sys.stdout.write(json.dumps({**result, "machine": before}, indent=2) + "\n")
    return 0


def turn(folder: Path) -> dict[str, float]:
    """Seconds of one repetition of everything that is compared."""
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
    console.print("  ".join(f"{key} {value:.2f} s" for key, value in took.items()), highlight=False)
    return took


def bare_pillow(paths: Sequence[Path]) -> None:
    """Every picture decoded to an array, in the number of threads that Privet takes, and forgotten."""

    def decode(chunk: Sequence[Path]) -> None:
        for path in chunk:
            with Image.open(path) as picture:
                np.asarray(picture)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(decode, [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]))


def write_and_sync(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


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
