"""Donors at several targets: how many there are, what is certified, and what is read of them.

    python benchmarks/donors.py --data adult.parquet --private sex --task income --targets 0.6,0.64

A release is one symbol, so the best reader is a histogram: of the values of *attack* and *select* at
each symbol, counted on *test*. The task is told to nobody and, of a table, no input.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import privet
from privet.auditing.certify import certificates
from privet.core.progress import console
from privet.data.dataset import Dataset
from privet.evidence.intervals import balanced_interval
from privet.methods.donors import Donors
from privet.release.release import Release


def read(release: Release, data: Dataset, name: str) -> dict[str, float]:
    """Balanced accuracy of the best reader of a symbol, with its 95 % interval, in per cent."""
    symbols, labels = {}, {}
    for part in ("attack", "select", "test"):
        view = data.part(part)
        symbols[part] = release(release.schema.inputs(view), seed=1).argmax(1)
        labels[part] = view.labels[name]
    seen = np.concatenate([symbols["attack"], symbols["select"]])
    truth = np.concatenate([labels["attack"], labels["select"]])
    size, classes = int(release.shape[0] or 0), data.attribute(name).classes
    shares = np.stack(
        [np.bincount(seen[truth == c], minlength=size) / (truth == c).sum() for c in range(classes)]
    )
    guess = shares.argmax(0)[symbols["test"]]
    n = [int((labels["test"] == c).sum()) for c in range(classes)]
    right = [int(((labels["test"] == c) & (guess == c)).sum()) for c in range(classes)]
    found = balanced_interval(right, n)
    value = float(np.mean([r / k for r, k in zip(right, n, strict=True)]))
    return {"value": 100 * value, "low": 100 * found.low, "high": 100 * found.high}


def row(
    data: Dataset, private: str, task: str, without: list[str], settings: dict[str, Any]
) -> dict[str, Any]:
    begin = time.monotonic()
    left_out = [*([task] if data.modality == "table" else []), *without]
    run = privet.Run(progress=False, device="cpu")
    release = Donors(**settings).fit(data, private, without=left_out, run=run)
    bound = certificates(release, data, private=[private])[0].bound
    return {
        "data": data.name,
        **settings,
        **{key: release.card["chosen"][key] for key in ("donors", "flip", "price")},
        "lost": release.card["lost"]["share"],
        "bound": bound,
        "private": read(release, data, private),
        "task": read(release, data, task),
        "seconds": time.monotonic() - begin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--private", required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--without", default="")
    parser.add_argument("--targets", default="0.6")
    parser.add_argument("--shared", type=int, default=0)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=Path("donors.jsonl"))
    args = parser.parse_args()
    data = privet.load(args.data, progress=False)
    without = [word for word in args.without.split(",") if word]
    targets, seeds = args.targets.split(","), args.seeds.split(",")
    for target, seed in product(map(float, targets), map(int, seeds)):
        settings = {"target": target, "shared": args.shared, "seed": seed}
        found = row(data, args.private, args.task, without, settings)
        with args.out.open("a") as file:
            file.write(json.dumps(found) + "\n")
        console.print(found, soft_wrap=True)


if __name__ == "__main__":
    main()
