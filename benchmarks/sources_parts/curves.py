"""The pictures of the slides on collaborative sanitizers, from two results files.

    python benchmarks/sources_parts/curves.py --plot docs/results/collaborative.svg

Over alpha: what the provider's model and the strongest new attacker read beside what its service
still tells; people among five; its privacy model on raw pictures; and how that model's answers are
spread, by true value. Lines are the game that has every remedy, crosses the others. Faces are drawn
by benchmarks/sources.py and stay where they were made.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
Row = dict[str, Any]


def value(cell: Any) -> float:
    return float(cell["value"] if isinstance(cell, dict) else cell)


def games(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of the game that was played at most values of alpha, in their order, and the others."""
    played = [row for row in rows if row.get("alpha") is not None]
    names = [row["game"] for row in played]
    most = max(names, key=names.count)
    curve = sorted((row for row in played if row["game"] == most), key=lambda row: row["alpha"])
    return curve, [row for row in played if row["game"] != most]


def draw(path: Path, folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "privet", "font.size": 9})
    from matplotlib import pyplot as plt

    rows, spread = (
        json.loads((folder / f"sources-collaborative{end}.json").read_text(encoding="utf-8"))[
            "rows"
        ]
        for end in ("", "-answers")
    )
    curve, others = games(rows)
    figure, panels = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
    trade, people, raw, answers = panels.flat
    alphas = [row["alpha"] for row in curve]
    for key, words, colour in (
        ("in_game", "provider's privacy model", "tab:blue"),
        ("worst", "strongest new attacker", "tab:red"),
    ):
        for some, look in ((curve, "o-"), (others, "x")):
            found = [value(row[key][1] if key == "in_game" else row[key]) for row in some]
            kept = [value(row["service"][1]) for row in some]
            label = words if look == "o-" else None
            trade.plot(found, kept, look, c=colour, ms=4, lw=1, label=label)
            for x, y, row in zip(found, kept, some, strict=True):
                if look == "o-":
                    trade.annotate(f"{row['alpha']:g}", (x, y), (3, 3), textcoords="offset points")
    trade.set(xlabel="gender is read, %", ylabel="the service for smiles is right, %")
    for key, words in (("people", "pictures that it learned from"), ("new_pictures", "others")):
        known = [row for row in curve if row.get(key)]
        lines = people.plot(
            [row["alpha"] for row in known],
            [value(row[key][1]) for row in known],
            "o-",
            ms=4,
            lw=1,
            label=f"{words}, released",
        )
        if known:
            before = value(known[0][key][0])
            people.axhline(before, ls=":", c=lines[0].get_color(), label=f"{words}, raw")
    people.set(xlabel="\u03b1", ylabel="person among the first five, %", ylim=(0, 101))
    for place, words in enumerate(("before the game", "after it")):
        found = [value(row["unfiltered"][place]) for row in curve]
        raw.plot(alphas, found, "o-", ms=4, lw=1, label=f"privacy model {words}")
    raw.plot(alphas, [value(r["service"][0]) for r in curve], "s:", ms=3, label="service, smiles")
    raw.set(xlabel="\u03b1", ylabel="right on raw pictures, %", ylim=(48, 101))
    _spread(answers, spread, curve[0]["game"])
    for panel in (trade, people, raw):
        panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def _spread(panel: Any, rows: list[Row], game: str) -> None:
    """Bars of a hundred per cent: one for each alpha and true value."""
    some = [
        row
        for row in rows
        if row["game"] == "any" or (row["game"] == game and row["asked"].startswith("released"))
    ]
    keys = [key for key in some[0] if key.startswith("from_")]
    import matplotlib as mpl

    colours = mpl.colormaps["coolwarm"]
    left = [0.0] * len(some)
    for place, key in enumerate(keys):
        shares = [value(row[key]) for row in some]
        words = key.removeprefix("from_").replace("_to_", " to ")
        colour = colours(place / (len(keys) - 1))
        panel.barh(range(len(some)), shares, left=left, color=colour, label=f"{words} %")
        left = [a + b for a, b in zip(left, shares, strict=True)]
    names = [
        f"raw, {row['true']}" if row["game"] == "any" else f"\u03b1 {row['alpha']:g}, {row['true']}"
        for row in some
    ]
    panel.set_yticks(range(len(some)), names, fontsize=8)
    panel.set(xlabel="privacy model says “male” with a probability of so much, % of people")
    panel.invert_yaxis()
    panel.legend(frameon=False, fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--plot", type=Path, required=True, help="the picture, as SVG")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    draw(asked.plot, asked.results)
