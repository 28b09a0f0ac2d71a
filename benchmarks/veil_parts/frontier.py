"""What the strongest attacker reads of Male beside what is kept of Smiling, as one picture: every
method in the results files.

    python benchmarks/veil_parts/frontier.py --out docs/methods/veil-frontier.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parents[1] / "results"
# Of the other methods, those that are told the task and come with a bound.
CERTIFIED = ("hedge", "codebook")
# The same picture gives the same file.
matplotlib.rcParams["svg.hashsalt"] = "privet"


def rows(topic: str, private: str) -> list[Mapping[str, Any]]:
    """Rows of a results file with an interval for Smiling and for what is read."""
    found = json.loads((RESULTS / f"{topic}.json").read_text(encoding="utf-8"))["rows"]
    return [
        row for row in found if all(isinstance(row.get(key), dict) for key in ("smiling", private))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    old = rows("frontier-celeba", "male")
    bound = [row for row in old if row["release"].startswith(CERTIFIED)]
    other = [row for row in old if not row["release"].startswith(CERTIFIED)]
    veil = rows("veil-view", "worst") + [
        row for row in rows("veil-celeba", "worst") if row["release"].startswith("`")
    ]
    draw(axes, other, "male", "other methods", "0.6")
    draw(axes, bound, "male", "hedge and codebook, told the task", "C2")
    draw(axes, veil, "worst", "veil", "C0")
    draw(axes, rows("blend-celeba", "worst"), "worst", "blend", "C3")
    axes.set_xlabel("Smiling, balanced accuracy, %")
    axes.set_ylabel("Male: strongest attacker, balanced accuracy, %")
    axes.legend()
    figure.tight_layout()
    made = {"Date": None} if args.out.suffix == ".svg" else {}
    figure.savefig(args.out, dpi=150, metadata=made)


def draw(axes: Any, some: list[Mapping[str, Any]], private: str, label: str, colour: str) -> None:
    """Values with their intervals on both axes."""
    sides = [[row[key] for row in some] for key in ("smiling", private)]
    values = [[one["value"] for one in side] for side in sides]
    reach = [
        [[one["value"] - one["low"] for one in side], [one["high"] - one["value"] for one in side]]
        for side in sides
    ]
    axes.errorbar(*values, xerr=reach[0], yerr=reach[1], fmt="o", color=colour, label=label)


if __name__ == "__main__":
    main()
