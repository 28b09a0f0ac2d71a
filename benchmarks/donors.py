"""Donors at several targets: how many there are, what is certified, and what is read of them.

    python benchmarks/donors.py --data adult.parquet --private sex --task income --targets 0.6,0.64
    python benchmarks/donors.py --write

A release is one symbol, so the best reader is a histogram: of the values of *attack* and *select* at
each symbol, counted on *test*. The task is told to nobody and, of a table, no input. Every release
is a line of --out; `--write` makes benchmarks/results/donors.json of these lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

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
        "what": f"{data.name}: {private}, {task}",
        "n": len(data.part("test").people),
        **settings,
        **{key: release.card["chosen"][key] for key in ("donors", "flip", "price")},
        "lost": release.card["lost"]["share"],
        "bound": bound,
        "private": read(release, data, private),
        "task": read(release, data, task),
        "seconds": time.monotonic() - begin,
    }


def written(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for every release, the mean of its seeds, in the order of first lines."""

    def release(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["what"], row["shared"], row["target"]

    names = list(dict.fromkeys(row["what"] for row in rows))
    ordered = sorted(rows, key=lambda row: (names.index(row["what"]), release(row), row["seed"]))
    table = []
    for (what, shared, target), group in groupby(ordered, release):
        seeds = list(group)
        table.append(
            {
                "what": what,
                "shared": shared,
                "target": Decimal(f"{100 * target:.4g}"),
                "donors": ", ".join(map(str, sorted({row["donors"] for row in seeds}))),
                "bound": mean([{"value": 100 * row["bound"]} for row in seeds]),
                "private": mean([row["private"] for row in seeds]),
                "task": mean([row["task"] for row in seeds]),
                "n": seeds[0]["n"],
                "seeds": len(seeds),
            }
        )
    return table


def mean(figures: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Of several seeds, of the ends of intervals too, and the seeds.

    >>> mean([{"value": 50.0, "low": 49.0}, {"value": 51.0, "low": 50.0}])
    {'value': Decimal('50.5'), 'low': Decimal('49.5'), 'seeds': [Decimal('50.0'), Decimal('51.0')]}
    """
    means = {key: np.mean([one[key] for one in figures]) for key in figures[0]}
    cell: dict[str, Any] = {key: Decimal(f"{value:.1f}") for key, value in means.items()}
    if len(figures) > 1:
        cell["seeds"] = [Decimal(f"{one['value']:.1f}") for one in figures]
    return cell


def study(rows: Sequence[dict[str, Any]]) -> Study:
    shared = "--shared 1 \\"
    common = "python benchmarks/donors.py --data"
    return Study(
        title="Donors at several targets",
        command=[
            f"{common} adult.parquet --private sex --task income --targets 0.6,0.64,0.68 \\",
            "    --seeds 0,1,2",
            f"{common} adult.parquet --private sex --task income {shared}",
            "    --targets 0.6,0.61,0.62,0.64,0.68 --seeds 0,1,2",
            "for t in occupation marital_status workclass; do",
            f"  {common} adult.parquet --private sex --task $t --without income --targets 0.64",
            f"  {common} adult.parquet --private sex --task $t --without income {shared}",
            "    --targets 0.61",
            "done",
            f"{common} celeba64.parquet --private Male --task Smiling --targets 0.6,0.65",
            "python benchmarks/donors.py --write",
        ],
        data="adult: 16,281 test people; celeba64: 4,400 test pictures of 3,280 people",
        n=16281,
        seeds=None,
        confidence=0.95,
        machine="one core of an AMD EPYC, shared",
        commit=None,
        published_in=None,
        source=None,
        columns=[
            {"key": "what", "title": "data: hidden, task"},
            {"key": "shared", "title": "`shared`"},
            {"key": "target", "title": "target", "unit": "%"},
            {"key": "donors", "title": "donors"},
            {"key": "bound", "title": "certified bound (99 %)", "unit": "%"},
            {"key": "private", "title": "hidden attribute, read", "unit": "%"},
            {"key": "task", "title": "task, read", "unit": "%"},
        ],
        rows=written(rows),
        notes=[
            "Balanced accuracy of the best reader of a symbol, a histogram of the attack and select "
            "people.",
            f"Symbols replaced at random, the most in any row: {max(r['flip'] for r in rows):.1%}. "
            "Where none is, several releases of a record are one.",
            "Rows with three values behind a figure: the mean of the seeds 0, 1 and 2, of the ends "
            "of the intervals too; all others are seed 0. Where seeds took different numbers of "
            "donors, all are named.",
            "Guessing reads 6.7 % of occupation (15 values), 14.3 % of marital_status (7) and "
            "11.1 % of workclass (9).",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--private")
    parser.add_argument("--task")
    parser.add_argument("--without", default="")
    parser.add_argument("--targets", default="0.6")
    parser.add_argument("--shared", type=int, default=0)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=Path("out/donors.jsonl"))
    parser.add_argument("--write", action="store_true", help="write the results file")
    args = parser.parse_args()
    if args.write:
        write(RESULTS / "donors.json", study([*map(json.loads, args.out.open())]))
        return
    data = privet.load(args.data, progress=False)
    without = [word for word in args.without.split(",") if word]
    targets, seeds = args.targets.split(","), args.seeds.split(",")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for target, seed in product(map(float, targets), map(int, seeds)):
        settings = {"target": target, "shared": args.shared, "seed": seed}
        found = row(data, args.private, args.task, without, settings)
        with args.out.open("a") as file:
            file.write(json.dumps(found) + "\n")
        console.print(found, soft_wrap=True)


if __name__ == "__main__":
    main()
