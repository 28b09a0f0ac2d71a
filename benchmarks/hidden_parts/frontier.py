"""Gender that is read against the ranking that is kept, as a plot of two results files.

    python benchmarks/hidden_parts/frontier.py --plot docs/methods/hidden-vectors.svg

Round marks with intervals are rows of `hidden-vectors.json`, attacked by the strong battery; small
squares are those of `hidden-vectors-tried.json`, by linear and quadratic attackers alone, which
read less. A filled mark keeps age at 70.5 % or more. The goal is the shaded corner.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
# The goal: gender at most so much, from one post and from ten; recall@10 and age at least.
GOALS, RECALL, AGE = {"one": 55.0, "ten": 59.0}, 0.75, 70.5
TITLES = {"one": "gender from one post, %", "ten": "gender from ten posts, %"}


def points(name: str) -> list[dict[str, Any]]:
    """The rows of a results file for which everything was measured."""
    rows = json.loads((RESULTS / name).read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if {"one", "ten", "age", "recall"} <= row.keys()]


def draw(path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "privet", "font.size": 9})
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for panel, (key, goal) in zip(panels, GOALS.items(), strict=True):
        panel.axvspan(RECALL, 1.02, ymax=(goal - 50) / 30, color="tab:green", alpha=0.15, lw=0)
        for row in points("hidden-vectors-tried.json"):
            look = {"mfc": "tab:gray" if row["age"]["value"] >= AGE else "white"}
            panel.plot(row["recall"]["value"], row[key]["value"], "s", ms=3, c="tab:gray", **look)
        for row in points("hidden-vectors.json"):
            x, found = row["recall"]["value"], row[key]
            spread = [[found["value"] - found["low"]], [found["high"] - found["value"]]]
            look = {"mfc": "tab:blue" if row["age"]["value"] >= AGE else "white"}
            panel.errorbar(x, found["value"], spread, fmt="o", ms=6, c="tab:blue", lw=1, **look)
        panel.set(xlabel="recall@10 against raw vectors", ylabel=TITLES[key])
        panel.set(xlim=(0, 1.02), ylim=(50, 80))
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--plot", type=Path, required=True, help="the plot, as SVG")
    draw(parser.parse_args().plot)
