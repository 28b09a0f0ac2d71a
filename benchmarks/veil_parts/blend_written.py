"""Rows of benchmarks/veil.py about blend as results files, of which tables.py makes tables.

    python benchmarks/veil_parts/blend_written.py faces ROWS... --topic blend-celeba --machine WORDS
    python benchmarks/veil_parts/blend_written.py others ROWS... --topic blend-others --machine WORDS

`faces`: releases that hide Male of celeba64 and were learned there, with all attackers; a figure is
the mean of the seeds, followed by each. `others`: other attributes, other faces than those that
were learned from, codes alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import RESULTS, Study, write

KINDS = {
    "codes": ("perceptron 1", "perceptron 2", "perceptron 3"),
    "quadratic": ("quadratic",),
    "kernel": ("kernel machine",),
    "decoded": ("network on decoded", "raw reader on decoded"),
}
TITLES = {
    "codes": "Male: perceptrons",
    "quadratic": "quadratic",
    "kernel": "kernel machine",
    "decoded": "networks on decoded",
    "worst": "worst (95 %)",
    "pooled": "five pictures",
    "smiling": "Smiling",
    "mouth": "mouth",
    "mean": "mean of eight",
}
TASKS = {"smiling": "Smiling", "mouth": "Mouth_Slightly_Open"}
Line = Mapping[str, Any]


def rounded(value: float) -> Decimal:
    return Decimal(f"{value:.1f}")


def mean_of(figures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The mean figure with the mean interval, and each seed's value."""
    mean: dict[str, Any] = {
        key: rounded(sum(one[key] for one in figures) / len(figures))
        for key in ("value", "low", "high")
    }
    if len(figures) > 1:
        mean["seeds"] = [rounded(one["value"]) for one in figures]
    return mean


def read_by(line: Line, name: str, kind: str) -> float | None:
    """On *test*, the attackers of this kind: of each number of releases averaged, the one that
    *select* prefers; the higher of these."""
    seen = line["private"][name]["attackers"]
    values = []
    for mark in ("", ", eight releases"):
        some = [seen[key + mark] for key in KINDS[kind] if key + mark in seen]
        if some:
            values.append(max(some, key=lambda one: one["select"])["value"])
    return max(values, default=None)


def face_row(lines: Sequence[Line]) -> dict[str, Any]:
    row: dict[str, Any] = {"release": lines[0]["name"], "seeds": len(lines)}
    for kind in KINDS:
        values = [value for line in lines if (value := read_by(line, "Male", kind)) is not None]
        row[kind] = rounded(sum(values) / len(values)) if values else None
    for key in ("worst", "pooled"):
        row[key] = mean_of([line["private"]["Male"][key] for line in lines])
    for key, task in TASKS.items():
        row[key] = mean_of([line["tasks"][task] for line in lines])
    row["mean"] = rounded(sum(line["mean"] for line in lines) / len(lines))
    return row


def other_rows(line: Line) -> list[dict[str, Any]]:
    tasks = "; ".join(f"{task} {one['value']:.1f}" for task, one in line["tasks"].items())
    rows = []
    for name, found in line["private"].items():
        rows.append(
            {
                "release": line["name"],
                "hidden": f"{name}, {values_of(line, name)}",
                "guess": rounded(100 * line["guess"][name]),
                **{
                    kind: None if (value := read_by(line, name, kind)) is None else rounded(value)
                    for kind in KINDS
                },
                "worst": mean_of([found["worst"]]),
                "tasks": tasks,
            }
        )
    return rows


def values_of(line: Line, name: str) -> str:
    return {"race": "5 values", "age": "8 classes"}.get(name, "2 values")


def faces(lines: Sequence[Line]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    by_name: dict[str, list[Line]] = {}
    for line in lines:
        if line["question"]["private"] == ["Male"] and "learn_from" not in line["question"]:
            by_name.setdefault(line["name"], []).append(line)
    columns = [
        {"key": "release", "title": "release"},
        *({"key": key, "title": title, "unit": "%"} for key, title in TITLES.items()),
        {"key": "seeds", "title": "seeds"},
    ]
    ordered = [sorted(some, key=lambda one: one["settings"]["seed"]) for some in by_name.values()]
    return columns, [face_row(some) for some in ordered]


def others(lines: Sequence[Line]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    titles = {key: TITLES[key] for key in KINDS} | {"codes": "perceptrons"}
    columns = [
        {"key": "release", "title": "release"},
        {"key": "hidden", "title": "hidden"},
        {"key": "guess", "title": "guessed right on the device", "unit": "%"},
        *({"key": key, "title": title, "unit": "%"} for key, title in titles.items()),
        {"key": "worst", "title": "worst (95 %)", "unit": "%"},
        {"key": "tasks", "title": "tasks, %"},
    ]
    return columns, [row for line in lines for row in other_rows(line)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("faces", "others"))
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--title", required=True)
    parser.add_argument("--command", action="append", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit")
    parser.add_argument("--note", action="append", default=[])
    args = parser.parse_args()
    lines = [json.loads(line) for path in args.rows for line in path.read_text().splitlines()]
    learned = [line for line in lines if line["settings"] and "failed" not in line]
    columns, rows = (faces if args.what == "faces" else others)(learned)
    study = Study(
        title=args.title,
        command=args.command,
        data="celeba64, 20,000 faces of 7,000 people: fit 6,800, attack 6,800, select 2,000, test"
        " 4,400, of whom 280 have five pictures; utkface64, 23,705 faces",
        n=4400 if args.what == "faces" else None,
        seeds=None if args.what == "faces" else 1,
        confidence=0.95,
        machine=args.machine,
        commit=args.commit,
        published_in=None,
        source=None,
        columns=columns,
        rows=rows,
        notes=args.note,
    )
    write(RESULTS / f"{args.topic}.json", study)


if __name__ == "__main__":
    main()
