"""Cloak: the frozen service on masked records, its accuracy and how differently it treats groups;
for Adult also the black-box form, where service and substitute learned from different people.

    python benchmarks/cloak_service.py --data adult.parquet
    python benchmarks/cloak_service.py --question faces --data celeba64.parquet

The service answers income, or whether a face of 32 x 32 pixels smiles; gaps are between the values
of sex, of the service as it is, not of a model that is trained anew on masked records. Counted on
*select*, which nothing was chosen on. The results are benchmarks/results/cloak-service.json and
cloak-service-faces.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

import privet
from privet.data.dataset import Dataset
from privet.data.schema_file import Layout

SEEDS = 3
GAPS = {"parity": "demographic_parity_difference", "odds": "equalized_odds_difference"}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of one file."""

    topic: str
    """Name of the results file."""
    private: str
    task: str
    forms: Sequence[tuple[float, bool]]
    """How much is suppressed, and whether in black-box form."""
    settings: Mapping[str, Any]
    title: str
    data: str
    """Which records, in words."""
    over_people: bool
    """Brackets are 95 % over people, of the mean seed; else the lowest and highest seed."""
    note: str
    size: tuple[int, int] | None = None
    """Pixels of a picture."""


QUESTIONS = {
    "adult": Question(
        topic="cloak-service",
        private="sex",
        task="income",
        forms=((0.0, False), (0.5, False), (0.8, False), (0.5, True)),
        settings={"lessons": 5, "epochs": 8, "constants": 3},
        title="Cloak on Adult: the frozen service for income on masked records, groups by sex",
        data="UCI Adult with its official split; select, 3,618 people",
        over_people=False,
        note="In brackets the lowest and highest seed.",
    ),
    "faces": Question(
        topic="cloak-service-faces",
        private="Male",
        task="Smiling",
        forms=((0.0, False), (0.5, False), (0.8, False), (0.956, False)),
        settings={"width": 0.125},
        title="Cloak on faces: the frozen service for smiles on masked pictures, groups by gender",
        data="20,000 pictures of 7,000 people of CelebA at 32 x 32; select, 2,000 of 1,000 people",
        over_people=True,
        note=(
            "Means of three seeds, then 95 % over people (the mean of the seeds' ends), then the "
            "seeds; accuracy: mean, then the seeds. An odds gap is the larger of two absolute "
            "differences, so that it is above 0 by chance alone."
        ),
        size=(32, 32),
    ),
}


def measure(
    asked: Question, data: Dataset, suppression: float, black_box: bool, seed: int
) -> dict[str, Any]:
    """The service's figures of one release: each a value, gaps with their interval."""
    method = privet.Cloak(suppression=suppression, black_box=black_box, seed=seed, **asked.settings)
    how = privet.Run(progress=False, device="cpu")
    card = method.fit(data, asked.private, asked.task, run=how).card
    service = card["services"][asked.task]
    facts = {kind: {"value": service[kind]} for kind in ("raw", "released")}
    for short, name in GAPS.items():
        for kind in ("raw", "released"):
            facts[f"{short}_{kind}"] = service["fairness"][asked.private][kind][name]
    return {"n": service["n"], **facts}


def cell(figures: Sequence[Mapping[str, float]], over_people: bool) -> dict[str, Any]:
    """Mean over seeds, in percent, with the lowest and highest seed; or with the mean interval over
    people and all seeds.

    >>> cell([{"value": 0.1}, {"value": 0.3}], over_people=False)
    {'value': Decimal('20.0'), 'low': Decimal('10.0'), 'high': Decimal('30.0')}
    """
    values = [one["value"] for one in figures]
    if not over_people:
        ends = {"low": percent(min(values)), "high": percent(max(values))}
        return {"value": percent(float(np.mean(values))), **ends}
    keys = [key for key in ("value", "low", "high") if key in figures[0]]
    means = {key: percent(float(np.mean([one[key] for one in figures]))) for key in keys}
    return {**means, "seeds": [percent(value) for value in values]}


def percent(share: float) -> Decimal:
    return Decimal(f"{100 * share:.1f}")


def study(asked: Question, rows: Sequence[dict[str, Any]], seeds: int, n: int) -> Study:
    ask = f"--question {asked.topic.rpartition('-')[2]} " if asked.size else ""
    file = "celeba64.parquet" if asked.size else "adult.parquet"
    black_box = any(form[1] for form in asked.forms)
    return Study(
        title=asked.title,
        command=[f"python benchmarks/cloak_service.py {ask}--data {file}"],
        data=asked.data,
        n=n,
        seeds=seeds,
        confidence=0.95 if asked.over_people else None,
        machine="one core of an AMD EPYC, others at work",
        commit=None,
        published_in=None,
        source="slides on Cloak; Mireshghallah and others, WWW 2021",
        columns=[
            *([{"key": "form", "title": "form"}] if black_box else []),
            {"key": "suppressed", "title": "suppressed", "unit": "%"},
            {"key": "raw", "title": "service, raw", "unit": "%"},
            {"key": "released", "title": "service, masked", "unit": "%"},
            {"key": "parity_raw", "title": "parity gap, raw", "unit": "points"},
            {"key": "parity_released", "title": "masked", "unit": "points"},
            {"key": "odds_raw", "title": "odds gap, raw", "unit": "points"},
            {"key": "odds_released", "title": "masked", "unit": "points"},
        ],
        rows=rows,
        notes=[asked.note],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--question", choices=QUESTIONS, default="adult")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    asked, rows, n = QUESTIONS[given.question], [], 0
    layout = Layout(size=asked.size) if asked.size else None
    data = privet.load(given.data, layout, progress=False)
    for suppression, black_box in asked.forms:
        facts = [measure(asked, data, suppression, black_box, s) for s in range(given.seeds)]
        n = int(facts[0]["n"])
        row: dict[str, Any] = {}
        if any(form[1] for form in asked.forms):
            row["form"] = (
                "black box: substitute from the other half" if black_box else "service known"
            )
        row["suppressed"] = Decimal(f"{100 * suppression:.4g}")
        figures = [key for key in facts[0] if key != "n"]
        row |= {key: cell([one[key] for one in facts], asked.over_people) for key in figures}
        rows.append(row)
        sys.stderr.write(f"{row}\n")
    write(given.out or RESULTS / f"{asked.topic}.json", study(asked, rows, given.seeds, n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
