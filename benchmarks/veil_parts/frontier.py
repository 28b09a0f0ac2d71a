"""The frontier over beta beside the old methods, as one picture.

python benchmarks/veil_parts/frontier.py out/rows.jsonl --out docs/methods/veil-frontier.svg
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
KEYS = ("smiling", "male")
# Of the other methods, those that are told the task and come with a bound.
CERTIFIED, TOLD = ("hedge", "codebook"), "hedge and codebook, told the task"
# The same picture gives the same file.
matplotlib.rcParams["svg.hashsalt"] = "privet"


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
    drawn = [row for row in old if all(isinstance(row.get(key), dict) for key in KEYS)]
    for label, colour, certified in (("other methods", "0.6", False), (TOLD, "C2", True)):
        some = [row for row in drawn if row["release"].startswith(CERTIFIED) == certified]
        points(axes, [(row["smiling"], row["male"]) for row in some], label, colour)
    veil = [(row["tasks"][args.task], row["private"][args.private]["worst"]) for row in asked]
    points(axes, veil, "veil", "C0")
    axes.set_xlabel(f"{args.task}, balanced accuracy, %")
    axes.set_ylabel(f"{args.private}: strongest attacker, balanced accuracy, %")
    axes.legend()
    figure.tight_layout()
    made = {"Date": None} if args.out.suffix == ".svg" else {}
    figure.savefig(args.out, dpi=150, metadata=made)


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
