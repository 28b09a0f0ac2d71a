"""How close a learned channel of any form comes to the best one: the Gaussian toy, step by step.

    python benchmarks/toys_any_channel.py

`toys.py` learns a shift with noise and finds the optimum of that form. A channel of any form can do
better, as a linear program over a grid says. Here the same game learns such a channel: first as
published (an autoencoder), then with one thing changed at a time. JSON progress on standard error;
the result is benchmarks/results/toys-any-channel.json. One core, a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write
from toys import LEVELS, measure

AUTOENCODER: dict[str, Any] = {"channel": "autoencoder", "noise": 0.5, "form": "entropy"}
VARIATION = AUTOENCODER | {"form": "variation"}
RESIDUAL = VARIATION | {"channel": "residual", "noise": 1.0, "pre_g": 0.0}
MORE_MOVES = RESIDUAL | {"itr_d": 20}
AVERAGED = MORE_MOVES | {"average": 0.99}
# What is changed, one thing after the other.
STEPS = (
    ("autoencoder, entropy form", AUTOENCODER),
    ("autoencoder, variation form", VARIATION),
    ("x + h(x, u, noise) for the autoencoder", RESIDUAL),
    ("and 20 moves of the adversary for 5", MORE_MOVES),
    ("and the mean of the channel's weights", AVERAGED),
)
# The distortion at which all steps are shown, with so many seeds.
SHOWN, SEEDS = 0.2, 3
RECORDS, FRESH = 20_000, 400_000


def cell(learned: Sequence[float]) -> dict[str, Any]:
    """The mean over seeds, and the lowest and highest of them."""
    places = [Decimal(f"{value:.4f}") for value in (np.mean(learned), min(learned), max(learned))]
    found = dict(zip(("value", "low", "high"), places, strict=True))
    return found if len(learned) > 1 else {"value": places[0]}


def row(title: str, settings: dict[str, Any], level: float, seeds: int) -> dict[str, Any]:
    found = []
    for seed in range(seeds):
        found.append(measure("gaussian", level, RECORDS, FRESH, seed=seed, **settings))
        sys.stderr.write(json.dumps({"step": title, "seed": seed, **found[-1]}) + "\n")
    learned, best = [one["learned"] for one in found], found[0]["any_channel"]
    return {
        "step": title,
        "allowed": Decimal(f"{level:g}"),
        "learned": cell(learned),
        "moved": Decimal(f"{np.mean([one['moved'] for one in found]):.4f}"),
        "in_game": cell([one["in_game"] for one in found]),
        "any": Decimal(f"{best:.4f}"),
        "gap": Decimal(f"{np.mean(learned) - best:.4f}"),
        "seeds": seeds,
    }


def study(rows: Sequence[dict[str, Any]]) -> Study:
    return Study(
        title="Channels of any form on the Gaussian toy: the best response to what is learned",
        command=["python benchmarks/toys_any_channel.py"],
        data=f"toy:gaussian; {RECORDS:,} records to learn from, {FRESH:,} fresh ones to count on",
        n=FRESH,
        seeds=None,
        confidence=None,
        machine="one core",
        commit=None,
        published_in=None,
        source="Huang and others, Context-aware generative adversarial privacy, 2017",
        columns=[
            {"key": "step", "title": "channel and game"},
            {"key": "allowed", "title": "distortion allowed"},
            {"key": "learned", "title": "best response"},
            {"key": "moved", "title": "distortion"},
            {"key": "in_game", "title": "the game's adversary (select)"},
            {"key": "any", "title": "optimum of any channel"},
            {"key": "gap", "title": "gap"},
            {"key": "seeds", "title": "seeds"},
        ],
        rows=rows,
        notes=["In brackets the lowest and highest seed. 80 rounds of 5 and 5 moves if not said."],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--out", default=str(RESULTS / "toys-any-channel.json"), help="results file; - writes none"
    )
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    rows = [row(title, settings, SHOWN, given.seeds) for title, settings in STEPS]
    others = [level for level in LEVELS["gaussian"] if level != SHOWN]
    rows += [row("the same", AVERAGED, level, 1) for level in others]
    if given.out != "-":
        write(Path(given.out), study(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
