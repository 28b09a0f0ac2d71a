"""Why GAP's cross entropy stops hiding: what its adversary is right about, and what it is counted as.

    OMP_NUM_THREADS=1 python benchmarks/gap_confidence.py --data celeba64.parquet

Two short games on faces of 32 x 32, Smiling hidden: with the gain as it is and with `tempered`.
After each, on the adversary's half of *fit*, on the channel's half and on *select*: how often the
adversary is right, and its gain H(u) - CE as it is and at the best of a few temperatures. Writes
benchmarks/results/gap-confidence.json. Five minutes of a core.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tables import RESULTS, store

import privet
from privet.data.schema_file import Layout
from privet.methods.gap import GAP, TEMPERATURES, GAPNetworks
from privet.train.feed import Feed

SETTINGS: dict[str, Any] = {
    **{"width": 0.12, "noise": 0.0, "penalty": 2.0, "batch": 256, "lr": 2e-3},
    **{"pre_d": 12, "pre_g": 2, "rounds": 30, "itr_d": 3, "itr_g": 1},
}
COUNTED = 1500


@torch.no_grad()
def judged(networks: GAPNetworks, feed: Feed, index: np.ndarray) -> dict[str, float]:
    """The adversary on what the channel makes of these records."""
    batches = [feed.batch(part) for part in np.array_split(index, 6)]
    scores = torch.cat([networks.adversary(networks.channel(b.x, None)).float() for b in batches])
    truth = torch.cat([b.labels["Smiling"] for b in batches])
    gains = [float(networks.gains[0](scores / t, truth)) for t in TEMPERATURES]
    right = 100 * float((scores.argmax(1) == truth).float().mean())
    return {"right": round(right, 1), "gain": round(gains[0], 3), "best": round(max(gains), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run = privet.Run(progress=False, device="cpu")
    data = privet.load(given.data, Layout(size=(32, 32)), progress=False)
    rows = []
    for tempered in (False, True):
        method = GAP(tempered=tempered, **SETTINGS)
        problem = method.problem(data, ["Smiling"], (), (), run)
        torch.manual_seed(0)
        networks = GAPNetworks(problem, method)
        method.game(problem, networks.modules(), networks.phases(), method.batch).play(run)
        for module in networks.modules().values():
            module.eval()
        fit, select = problem.feed(), problem.feed("select")
        theirs, ours = (half[:COUNTED] for half in networks.halves)
        parts = (
            ("the adversary's half of *fit*", fit, theirs),
            ("the channel's half", fit, ours),
            ("*select*", select, np.arange(COUNTED)),
        )
        game = "tempered" if tempered else "cut off at 0"
        rows += [
            {"game": game, "records": words, **judged(networks, feed, index)}
            for words, feed, index in parts
        ]
    store(
        RESULTS / "gap-confidence.json",
        {
            "title": "What GAP's adversary is right about, and what it is counted as",
            "command": ["python benchmarks/gap_confidence.py --data celeba64.parquet"],
            "data": "celeba64 at 32 x 32, fit 6,800 pictures in two halves, select 2,000",
            **{"n": COUNTED, "seeds": 1, "confidence": None, "commit": None},
            **{"machine": "one core", "published_in": None, "source": None},
            "columns": [
                {"key": "game", "title": "game"},
                {"key": "records", "title": "records"},
                {"key": "right", "title": "the adversary is right", "unit": "%"},
                {"key": "gain", "title": "H(u) \u2212 CE, nats"},
                {"key": "best", "title": "at the best temperature"},
            ],
            "rows": rows,
            "notes": ["The words in the first column were changed after the run."],
        },
    )


if __name__ == "__main__":
    main()
