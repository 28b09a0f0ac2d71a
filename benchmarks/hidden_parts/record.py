"""Results files of benchmarks/hidden_vectors.py and hidden_strong.py: means over seeds or splits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tables

Row = dict[str, Any]

COLUMNS = [
    {"key": "release", "title": "release"},
    {"key": "one", "title": "gender: one post, worst (95 %)", "unit": "%"},
    {"key": "ten", "title": "ten posts (95 %)", "unit": "%"},
    {"key": "age", "title": "age (95 %)", "unit": "%"},
    {"key": "recall", "title": "recall@10"},
]
SETTINGS = {"key": "settings", "title": "settings chosen, by split"}
RAW_QUERIES = {"key": "raw_queries", "title": "recall@10, raw queries"}
AUTHORS = {"key": "authors", "title": "authors of *fit*"}
WORDS = {"erase": "`erase`", "metric DP, epsilon 1,000": "`metric`, ε 1,000"}
WORDS |= {f"erase, {n} directions": f"`erase`, {n} directions" for n in (3, 10, 30)}
WORDS["metric DP, epsilon 200"] = "`metric`, ε 200"
NOTE = (
    "An interval has the means of the seeds' own 95 % ends, each over the authors of *test*; a "
    "seed is another split, too."
)


def write(rows: Sequence[Row], folder: Path, machine: str, commit: str) -> None:
    """One file for what was tried, one by the number of authors."""
    tried = [row for row in rows if row["authors"] is None]
    curve = [row for row in rows if row["release"] in ("LEACE", "erase")]
    of = "Gender hidden in sentence vectors that stay vectors"
    files = {
        "hidden-vectors-tried": (
            f"{of}: all that was tried, by linear and quadratic attackers",
            tried,
            COLUMNS,
        ),
        "hidden-vectors-authors": (
            f"{of}: by the number of authors that the release learned from",
            curve,
            [COLUMNS[0], AUTHORS, *COLUMNS[1:]],
        ),
    }
    for name, (title, some, columns) in files.items():
        study = {
            "title": title,
            "command": [
                "python benchmarks/hidden_vectors.py --data blogs_use512.parquet --out rows.jsonl"
            ],
            "data": "blogs_use512, 1,200 authors of ten posts: fit 4,800, attack 3,600, select "
            "1,200, test 2,400 posts",
            "n": 2400,
            "seeds": len({row["seed"] for row in with_common_seeds(some)}),
            "confidence": 0.95,
            "machine": machine,
            "commit": commit,
            "published_in": None,
            "source": None,
            "columns": columns,
            "rows": lines(some, {column["key"] for column in columns}),
            "notes": [NOTE],
        }
        save(folder / f"{name}.json", study)


def save(path: Path, study: dict[str, Any]) -> None:
    path.write_text(json.dumps(study), encoding="utf-8")
    tables.write(path, tables.read(path))  # in the form that all results have


def write_strong(
    chosen: Sequence[Row], attacked: Sequence[Row], folder: Path, machine: str, commit: str
) -> None:
    """The file of benchmarks/hidden_strong.py."""
    rows = []
    for release in dict.fromkeys(row["release"] for row in attacked):
        some = sorted((r for r in attacked if r["release"] == release), key=lambda r: r["seed"])
        if release == "ranking":
            values = [row["one"]["value"] for row in some]
            rows.append({
                "release": "nothing but a ranking with recall@10 of 0.75",
                "one": {
                    "value": round(sum(values) / len(values), 1),
                    "seeds": [round(value, 1) for value in values],
                },
            })  # fmt: skip
            continue
        settings = [row["setting"] for row in some]
        rows.append({
            "release": release,
            "settings": "" if set(settings) == {release} else "; ".join(settings),
            **{key: mean([row[key] for row in some]) for key in ("one", "ten", "age")},
            "recall": searched(some, "recall_at_10"),
            "raw_queries": searched(some, "recall_at_10_raw_queries"),
        })  # fmt: skip
    candidates = len({row["release"] for row in chosen}) - 1
    save(folder / "hidden-vectors.json", {
        "title": "Gender hidden in sentence vectors that stay vectors: the strong battery",
        "command": [
            f"python benchmarks/hidden_strong.py {what} --data blogs_use512.parquet --out rows"
            for what in ("choose", "attack")
        ],
        "data": "blogs_use512, 1,200 authors of ten posts: fit 4,800, attack 3,600, select 1,200, "
        "test 2,400 posts; three splits, no author in two of their test parts",
        "n": 2400,
        "seeds": len({row["seed"] for row in attacked}),
        "confidence": 0.95,
        "machine": machine,
        "commit": commit,
        "published_in": None,
        "source": None,
        "columns": [COLUMNS[0], SETTINGS, *COLUMNS[1:], RAW_QUERIES],
        "rows": rows,
        "notes": [
            NOTE.replace("seeds'", "splits'").replace("a seed is another split, too", "a split has "
                         "people of its own in *test*"),
            f"Settings were chosen among {candidates} candidates on *select* of their split.",
        ],
    })  # fmt: skip


def lines(rows: Sequence[Row], keys: set[str]) -> list[Row]:
    """A line for each release and number of authors, in the order of the rows."""
    made = []
    rows = with_common_seeds(rows)
    for release, authors in dict.fromkeys((row["release"], row["authors"]) for row in rows):
        some = [r for r in rows if (r["release"], r["authors"]) == (release, authors)]
        line = {
            "release": WORDS.get(release, release),
            "authors": authors or 480,
            **{key: mean([row[key] for row in some]) for key in ("one", "ten", "age")},
            "recall": searched(some, "recall_at_10"),
            "raw_queries": searched(some, "recall_at_10_raw_queries"),
        }
        kept = {key: cell for key, cell in line.items() if key in keys}
        made.append(kept)
    if "authors" in keys:
        made.sort(key=lambda line: (line["release"], line["authors"]))
    return made


def with_common_seeds(rows: Sequence[Row]) -> list[Row]:
    """The rows of those seeds that every release has: some splits are easier to read."""
    seeds: dict[tuple[str, int | None], set[int]] = {}
    for row in rows:
        seeds.setdefault((row["release"], row["authors"]), set()).add(row["seed"])
    common = set.intersection(*seeds.values()) if seeds else set()
    return [row for row in rows if row["seed"] in common]


def mean(figures: Sequence[Row]) -> Row:
    """The mean over seeds, with the mean ends of their intervals."""
    ends = {
        key: round(sum(one[key] for one in figures) / len(figures), 1)
        for key in ("value", "low", "high")
    }
    return {**ends, "seeds": [round(one["value"], 1) for one in figures]}


def searched(rows: Sequence[Row], key: str) -> Row | None:
    values = [row["search"][key] for row in rows if key in row["search"]]
    if not values:
        return None
    return {
        "value": round(sum(values) / len(values), 2),
        "seeds": [round(value, 2) for value in values],
    }
