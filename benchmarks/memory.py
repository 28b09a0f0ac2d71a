"""Peak private memory while a release is learned on a packed picture set of 5 GB. The goal: under
1.5 GB.

    python benchmarks/memory.py

A folder of JPEGs is written, then one child process packs it through `privet.load` and learns
TIPRDC on it, as a first `privet learn` would; this process reads RssAnon of the child all the
while. Pages of the mapped set itself are not private: the kernel takes them back when it needs
them. The result is JSON on standard output; the exit code is 1 over the goal.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import privet
from privet.core.progress import bar, console
from privet.data.portraits.source import portraits

GOAL = 1.5e9
"""Bytes."""
HEIGHT, WIDTH = 218, 178
"""Of a CelebA picture."""


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument(
        "--folder",
        type=Path,
        help="where the pictures and the cache go for the time being; needs 6 GB",
    )
    words.add_argument(
        "--pictures", type=int, default=43_500, help=f"of 3x{HEIGHT}x{WIDTH} bytes each"
    )
    words.add_argument("--drawn", type=int, default=2_000, help="different ones among them")
    words.add_argument(
        "--rounds", type=int, default=60, help="of the game, a sixth of them warm-up"
    )
    words.add_argument("--batch", type=int, default=64)
    words.add_argument(
        "--width", type=float, default=0.0625, help="of the networks; 1 is the published size"
    )
    words.add_argument("--every", type=float, default=0.05, help="seconds between two readings")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="privet-memory-", dir=given.folder) as folder:
        pictures = Path(folder) / "pictures"
        write_folder(pictures, given.pictures, given.drawn)
        os.environ["PRIVET_CACHE"] = str(Path(folder) / "cache")
        peaks, told = watch((pictures, given.rounds, given.batch, given.width), given.every)
    learning = peaks["learning"]["RssAnon"]
    result = {
        "set_bytes": told["set_bytes"],
        "goal_bytes": int(GOAL),
        "peak_private_bytes_packing": peaks["packing"]["RssAnon"],
        "peak_private_bytes_learning": learning,
        "peak_private_over_set": round(learning / told["set_bytes"], 4),
        "peak_mapped_bytes_learning": peaks["learning"]["RssFile"],
        "goal_met": learning < GOAL,
        **told,
        "settings": {
            "pictures": given.pictures,
            "batch": given.batch,
            "width": given.width,
            "seconds_between_readings": given.every,
        },
        "machine": machine(),
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0 if learning < GOAL else 1


def write_folder(folder: Path, n: int, drawn: int) -> None:
    """n JPEGs with a CSV: drawn portraits, enlarged. Repeats differ in a comment and belong to the
    same people."""
    folder.mkdir(parents=True)
    data = portraits(max(20, min(n, drawn)), progress=False)
    encoded = [_jpeg(picture) for picture in data.records]
    names = [f"{i:06d}.jpg" for i in range(n)]
    with bar("Writing JPEGs", n, n > 2000) as tick:
        for i, name in enumerate(names):
            (folder / name).write_bytes(_with_comment(encoded[i % len(encoded)], name.encode()))
            tick(i + 1)
    which = np.arange(n) % len(encoded)
    said = {
        name: np.array(a.values)[data.labels[name][which]] for name, a in data.attributes.items()
    }
    pd.DataFrame({"file": names, "person": data.people[which], **said}).to_csv(
        folder / "labels.csv", index=False
    )


def _jpeg(picture: np.ndarray) -> bytes:
    target = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0)).resize(
        (WIDTH, HEIGHT), Image.Resampling.BICUBIC
    ).save(target, "JPEG", quality=90)
    return target.getvalue()


def _with_comment(jpeg: bytes, words: bytes) -> bytes:
    """A COM segment straight after the marker that starts the picture."""
    return jpeg[:2] + b"\xff\xfe" + (len(words) + 2).to_bytes(2, "big") + words + jpeg[2:]


def watch(
    work: tuple[Path, int, int, float], every: float
) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """The largest readings of a child that packs and learns, by what it was doing; and what it
    tells at the end."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=pack_and_learn, args=(*work, there))
    child.start()
    there.close()
    peaks: dict[str, dict[str, int]] = {}
    doing, since = "starting", time.monotonic()
    try:
        while True:
            if here.poll(every):
                message = here.recv()
                if isinstance(message, dict):
                    return peaks, message
                doing = message
                console.print(f"{time.monotonic() - since:6.1f} s  {doing}", highlight=False)
            largest = peaks.setdefault(doing, {})
            for key, size in memory_of(child.pid or 0).items():
                largest[key] = max(size, largest.get(key, 0))
    except EOFError:
        sys.exit("The child ended without a result: what it said stands above.")
    finally:
        if child.is_alive() and sys.exc_info()[0] is not None:
            child.terminate()
        child.join()


def memory_of(pid: int) -> dict[str, int]:
    """Bytes of private and of mapped memory that a process has in use now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {
        key: 1024 * int(value.split()[0])
        for key, _, value in (line.partition(":") for line in lines)
        if key in ("RssAnon", "RssFile")
    }


def pack_and_learn(folder: Path, rounds: int, batch: int, width: float, out: Connection) -> None:
    os.environ.setdefault(
        "GOMP_SPINCOUNT", "10000"
    )  # as the command line does, before torch is loaded
    import privet
    from privet.train.game import Game

    played: dict[str, float] = {}
    play = Game.play

    def timed(game: Game, run: privet.Run) -> None:
        start = time.monotonic()
        play(game, run)
        played["seconds"], played["rounds"] = (
            time.monotonic() - start,
            sum(game.rounds(phase) for phase in game.phases),
        )

    Game.play = timed  # type: ignore[method-assign]  # the game alone, without the pass over *select* that ends a fit
    out.send("packing")
    start = time.monotonic()
    data = privet.load(folder)
    packed = time.monotonic()
    out.send("learning")
    per_epoch = len(data.part("fit")) // batch
    warmup = max(1, rounds // 6)
    method = privet.TIPRDC(
        width=width, batch=batch, warmup=warmup / per_epoch, epochs=(rounds - warmup) / per_epoch
    )
    method.fit(data, private=["beard"], run=privet.Run(device="cpu"))
    out.send(
        {
            "set_bytes": data.records.nbytes,
            "packing_seconds": round(packed - start, 2),
            "pictures_packed_per_second": round(len(data) / (packed - start), 1),
            "rounds": played["rounds"],
            "learning_seconds": round(played["seconds"], 2),
            "records_seen_per_second": round(played["rounds"] * batch / played["seconds"], 1),
        }
    )


def machine() -> dict[str, Any]:
    """What a figure has to be read with."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "processor": next(
            (line.partition(":")[2].strip() for line in info if line.startswith("model name")),
            platform.machine(),
        ),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "privet": privet.__version__,
        **{name: version(name) for name in ("torch", "numpy", "pillow")},
    }


if __name__ == "__main__":
    sys.exit(main())
