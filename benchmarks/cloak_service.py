"""Cloak on Adult: the frozen service on masked records, its accuracy and how differently it treats
groups; and the black-box form, where service and substitute learned from different people.

    python benchmarks/cloak_service.py --data adult.parquet

The service answers income; gaps are between the values of sex, of the service as it is, not of a
model that is trained anew on masked records. Counted on *select*, which nothing was chosen on. The
result is benchmarks/results/cloak-service.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

import privet

# How much is suppressed, and whether in black-box form.
FORMS = ((0.0, False), (0.5, False), (0.8, False), (0.5, True))
SEEDS = 3
SETTINGS: dict[str, Any] = {"lessons": 5, "epochs": 8, "constants": 3}
GAPS = {"parity": "demographic_parity_difference", "odds": "equalized_odds_difference"}


def measure(data: Any, suppression: float, black_box: bool, seed: int) -> dict[str, float]:
    """The service's figures of one release."""
    method = privet.Cloak(suppression=suppression, black_box=black_box, seed=seed, **SETTINGS)
    how = privet.Run(progress=False, device="cpu")
    card = method.fit(data, "sex", "income", run=how).card
    service = card["services"]["income"]
    facts = {"raw": service["raw"], "released": service["released"], "n": service["n"]}
    for short, name in GAPS.items():
        facts[f"{short}_raw"] = service["fairness"]["sex"]["raw"][name]["value"]
        facts[f"{short}_released"] = service["fairness"]["sex"]["released"][name]["value"]
    return facts


def cell(facts: Sequence[dict[str, float]], key: str) -> dict[str, Any]:
    """Mean over seeds with the lowest and highest, in percent."""
    values = [100 * one[key] for one in facts]
    three = (float(np.mean(values)), min(values), max(values))
    return dict(zip(("value", "low", "high"), [Decimal(f"{v:.1f}") for v in three], strict=True))


def study(rows: Sequence[dict[str, Any]], seeds: int, n: int) -> Study:
    return Study(
        title="Cloak on Adult: the frozen service for income on masked records, groups by sex",
        command=["python benchmarks/cloak_service.py --data adult.parquet"],
        data="UCI Adult with its official split; select, 3,618 people",
        n=n,
        seeds=seeds,
        confidence=None,
        machine="one core of an AMD EPYC, others at work",
        commit=None,
        published_in=None,
        source="slides on Cloak; Mireshghallah and others, WWW 2021",
        columns=[
            {"key": "form", "title": "form"},
            {"key": "suppressed", "title": "suppressed", "unit": "%"},
            {"key": "raw", "title": "service, raw", "unit": "%"},
            {"key": "released", "title": "service, masked", "unit": "%"},
            {"key": "parity_raw", "title": "parity gap, raw", "unit": "points"},
            {"key": "parity_released", "title": "masked", "unit": "points"},
            {"key": "odds_raw", "title": "odds gap, raw", "unit": "points"},
            {"key": "odds_released", "title": "masked", "unit": "points"},
        ],
        rows=rows,
        notes=["In brackets the lowest and highest seed."],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=RESULTS / "cloak-service.json")
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    data, rows, n = privet.load(given.data, progress=False), [], 0
    for suppression, black_box in FORMS:
        facts = [measure(data, suppression, black_box, s) for s in range(given.seeds)]
        n = int(facts[0]["n"])
        form = "black box: substitute from the other half" if black_box else "service known"
        share = Decimal(f"{100 * suppression:.0f}")
        figures = {key: cell(facts, key) for key in facts[0] if key != "n"}
        rows.append({"form": form, "suppressed": share, **figures})
        sys.stderr.write(f"{rows[-1]}\n")
    write(given.out, study(rows, given.seeds, n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
