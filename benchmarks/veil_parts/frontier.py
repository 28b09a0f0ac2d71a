"""The frontier over beta beside the old methods, as one picture.

python benchmarks/veil_parts/frontier.py out/rows.jsonl --out veil-frontier.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OLD = Path(__file__).parents[1] / "results" / "frontier-celeba.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--private", default="Male")
    parser.add_argument("--task", default="Smiling")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.rows.read_text().splitlines()]
    asked = [
        row
        for row in lines
        if row.get("settings")
        and "failed" not in row
        and row["question"]["private"] == [args.private]
        and args.task in row["tasks"]
        and "learn_from" not in row["question"]
    ]
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    old = json.loads(OLD.read_text())["rows"] if args.private == "Male" else []
    pairs = [(row.get("smiling"), row.get("male")) for row in old]
    with_intervals = [pair for pair in pairs if all(isinstance(one, dict) for one in pair)]
    points(axes, with_intervals, "other methods", "0.6")
    veil = [(row["tasks"][args.task], row["private"][args.private]["worst"]) for row in asked]
    points(axes, veil, "veil", "C0")
    axes.set_xlabel(f"{args.task}, balanced accuracy, %")
    axes.set_ylabel(f"{args.private}: strongest attacker, balanced accuracy, %")
    axes.legend()
    figure.tight_layout()
    figure.savefig(args.out, dpi=150)


def points(axes: Any, pairs: list[tuple[dict[str, float], dict[str, float]]], label: str,
           colour: str) -> None:  # fmt: skip
    """Values with their intervals on both axes."""
    if not pairs:
        return
    values = [[one["value"] for one in side] for side in zip(*pairs, strict=True)]
    reach = [
        [[one["value"] - one["low"] for one in side], [one["high"] - one["value"] for one in side]]
        for side in zip(*pairs, strict=True)
    ]
    axes.errorbar(*values, xerr=reach[0], yerr=reach[1], fmt="o", color=colour, label=label)


if __name__ == "__main__":
    main()
