"""Rows of benchmarks/veil.py as a results file, of which tables.py makes a table.

    python benchmarks/veil_parts/written.py out/rows.jsonl --out benchmarks/results/veil-view.json

Of every question that hides Male of celeba64, learned there: what each kind of attacker reads of
one release and of eight averaged ones, the worst by *select*, five pictures, and the tasks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import Study, write

KINDS = {
    "codes": ("perceptron 1", "perceptron 2", "perceptron 3"),
    "quadratic": ("quadratic",),
    "decoded": ("network on decoded", "raw reader on decoded"),
}
COLUMNS = (
    {"key": "release", "title": "release"},
    {"key": "nats", "title": "nats"},
    {"key": "codes", "title": "Male: perceptrons, one; eight releases", "unit": "%"},
    {"key": "quadratic", "title": "quadratic", "unit": "%"},
    {"key": "decoded", "title": "networks on decoded", "unit": "%"},
    {"key": "worst", "title": "worst (95 %)", "unit": "%"},
    {"key": "pooled", "title": "five pictures", "unit": "%"},
    {"key": "smiling", "title": "Smiling", "unit": "%"},
    {"key": "mouth", "title": "mouth", "unit": "%"},
    {"key": "mean", "title": "mean of eight", "unit": "%"},
)


def rounded(value: float) -> Decimal:
    return Decimal(f"{value:.1f}")


def interval(one: Mapping[str, Any]) -> dict[str, Decimal]:
    return {key: rounded(one[key]) for key in ("value", "low", "high")}


def chosen(attackers: Mapping[str, Any], names: Iterable[str], mark: str) -> str:
    """On *test*, the attacker of these that *select* prefers."""
    best = max((attackers[name + mark] for name in names), key=lambda one: one["select"])
    return f"{best['value']:.1f}"


def cells(line: Mapping[str, Any]) -> dict[str, Any]:
    male = line["private"]["Male"]
    read = {
        key: "; ".join(chosen(male["attackers"], names, mark) for mark in ("", ", eight releases"))
        for key, names in KINDS.items()
    }
    return {
        "release": line["name"],
        "nats": round(line["nats"]),
        **read,
        "worst": interval(male["worst"]),
        "pooled": interval(male["pooled"]),
        "smiling": interval(line["tasks"]["Smiling"]),
        "mouth": interval(line["tasks"]["Mouth_Slightly_Open"]),
        "mean": rounded(line["mean"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--title", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit")
    parser.add_argument("--note", action="append", default=[])
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.rows.read_text().splitlines()]
    rows = [
        cells(line)
        for line in lines
        if line["settings"]
        and "failed" not in line
        and line["question"]["private"] == ["Male"]
        and "learn_from" not in line["question"]
    ]
    study = Study(
        title=args.title,
        command=[
            "python benchmarks/veil.py --folder DIR --plan benchmarks/veil_parts/view_plan.json \\",
            "    --out out/rows.jsonl --workers 6 --reading 15 --seconds 300",
        ],
        data="celeba64, 20,000 faces of 7,000 people: fit 6,800, attack 6,800, select 2,000, test"
        " 4,400; 280 people of test have five pictures",
        n=4400,
        seeds=1,
        confidence=0.95,
        machine=args.machine,
        commit=args.commit,
        published_in=None,
        source=None,
        columns=COLUMNS,
        rows=rows,
        notes=args.note,
    )
    write(args.out, study)


if __name__ == "__main__":
    main()
