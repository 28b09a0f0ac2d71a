"""How the provider's privacy model answers, by true value: the slides' second picture, as a results
file. Of people of *select*, the share at each step of the probability of the last value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tables import store

Row = dict[str, Any]
# Ends of the steps that are shown, in per cent; each is a whole number of those that rows have.
ENDS = (0, 10, 30, 50, 70, 90, 100)
ASKED = {
    "before": "raw, before the game",
    "raw": "raw, after the game",
    "released": "released, after the game",
}


def record(
    path: Path, rows: Sequence[Row], about: Row, how: Callable[[Row], str], value: str = "male"
) -> None:
    """Means over seeds. What the model answers before the game is the same in every row, and stands
    there once."""
    games: dict[tuple[str, float], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["settings"].get("alpha", 0.0)):
        if row.get("facts", {}).get("answers"):
            settings = row["settings"]
            games.setdefault((how(settings), settings["alpha"]), []).append(row)
    lines: list[Row] = []
    for (game, alpha), same in sorted(games.items(), key=lambda one: one[0]):
        for kind, words in ASKED.items():
            if kind == "before" and lines:
                continue
            shares = np.mean([next(iter(r["facts"]["answers"].values()))[kind] for r in same], 0)
            for true, share in zip((f"not {value}", value), shares, strict=True):
                about_row = {"game": game, "alpha": alpha} if kind != "before" else {"game": "any"}
                lines.append({**about_row, "asked": words, "true": true, **_steps(share)})
    if not lines:
        return
    columns = [
        {"key": "game", "title": "game"},
        {"key": "alpha", "title": "\u03b1"},
        {"key": "asked", "title": "pictures, model"},
        {"key": "true", "title": "true value"},
        *(
            {"key": _key(low, high), "title": f"“{value}” at {low} to {high} %", "unit": "%"}
            for low, high in pairwise(ENDS)
        ),
    ]
    store(
        path,
        {
            "title": "Collaborative sanitizers: answers of the provider's privacy model",
            "command": ["# rows as those of sources-collaborative.json"],
            "data": about["data"],
            "n": rows[0]["n"]["select"],
            "seeds": None,
            "confidence": None,
            "machine": about["machine"],
            "commit": about["commit"],
            "published_in": None,
            "source": "Sapiro and others, Let's collaborate, slides",
            "columns": columns,
            "rows": lines,
            "notes": ["Counted on select. Of each true value, rows add up to 100."],
        },
    )


def _key(low: int, high: int) -> str:
    return f"from_{low}_to_{high}"


def _steps(shares: Any) -> dict[str, float]:
    """Per cent in each of the steps that are shown.

    >>> _steps(np.full(20, 0.05))["from_10_to_30"]
    20.0
    """
    per = 100 // len(shares)
    return {
        _key(low, high): round(100 * float(sum(shares[low // per : high // per])), 1)
        for low, high in pairwise(ENDS)
    }
