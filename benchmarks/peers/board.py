"""The results file of a data set of the leaderboard."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case
from contenders import TITLES

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import RESULTS, Study, read, write

Row = Mapping[str, Any]


def percent(rows: Sequence[Row], key: str) -> dict[str, Any] | None:
    """The mean over seeds, the lowest and the highest, in percent; None where never measured."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return None
    places = [Decimal(f"{100 * v:.1f}") for v in (float(np.mean(values)), min(values), max(values))]
    keys = ("value", "low", "high") if len(values) > 1 else ("value",)
    return dict(zip(keys, places, strict=False))


def line(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """A line of the table: one release, over its seeds."""
    done = [row for row in rows if "failed" not in row]
    seconds = [row["seconds"] for row in done if "seconds" in row]
    settings = dict.fromkeys(row["setting"] for row in done if "setting" in row)
    return {
        "release": TITLES[name],
        **{key: percent(done, key) for key in ("found", "linear", "art", "anonymeter", "theirs", "own",
                                               "certified", "task", "task_balanced")},
        "by": ", ".join(dict.fromkeys(row["by"] for row in done)),
        "setting": "; ".join(settings) or None,
        "seconds": Decimal(f"{np.mean(seconds):.0f}") if seconds else None,
        "seeds": len(done),
        "commit": ", ".join(dict.fromkeys(row["commit"] for row in done if "commit" in row)) or None,
    }  # fmt: skip


def kept(path: Path, lines: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Lines of an earlier file, by release, that these do not replace: of releases that were not
    measured here, or for fewer seeds. They say which commit published them."""
    if not path.exists():
        return {}
    seeds = {row["release"]: row["seeds"] for row in lines}
    log = ["git", "log", "-1", "--format=%h", "--", path.name]
    done = subprocess.run(log, cwd=path.parent, capture_output=True, text=True, check=False)
    published = done.stdout.strip() or None
    return {
        row["release"]: {"published_in": published, **row}
        for row in read(path).rows
        if seeds.get(row["release"], 0) < row["seeds"]
    }


def columns_of(case: Case) -> list[dict[str, str]]:
    return [
        {"key": "release", "title": "release"},
        {"key": "found", "title": f"{case.private} read: our readers", "unit": "%"},
        {"key": "by", "title": "by"},
        {"key": "linear", "title": "a linear reader", "unit": "%"},
        {"key": "art", "title": "ART", "unit": "%"},
        {"key": "anonymeter", "title": "anonymeter", "unit": "%"},
        {"key": "theirs", "title": "its own attacker", "unit": "%"},
        {"key": "own", "title": "its own bound", "unit": "%"},
        {"key": "certified", "title": "our bound", "unit": "%"},
        {"key": "task", "title": f"{case.task}: accuracy", "unit": "%"},
        {"key": "task_balanced", "title": "balanced", "unit": "%"},
        {"key": "setting", "title": "operating point, by seed"},
        {"key": "seconds", "title": "processor seconds to fit"},
        {"key": "seeds", "title": "seeds"},
    ]


def write_board(case: Case, rows: Sequence[Row]) -> None:
    """benchmarks/results/peers-CASE.json, in the order of TITLES."""
    path = RESULTS / f"peers-{case.name}.json"
    lines = {}
    for release in TITLES:
        mine = sorted((r for r in rows if r["name"] == release), key=lambda r: r["seed"])
        if any("failed" not in row for row in mine):
            lines[TITLES[release]] = line(release, mine)
    earlier = kept(path, list(lines.values()))
    lines |= earlier
    shown = [lines[title] for title in TITLES.values() if title in lines]
    failed = [
        f"{TITLES[row['name']]} failed with seed {row['seed']}: {row['failed']}"
        for row in rows
        if "failed" in row
    ]
    columns = [
        column for column in columns_of(case) if any(row.get(column["key"]) for row in shown)
    ]
    keys = [column["key"] for column in columns]
    shown = [
        {
            **{key: row.get(key) for key in keys},
            **{key: row[key] for key in ("commit", "published_in") if row.get(key)},
        }
        for row in shown
    ]
    study = Study(
        title=f"{case.name}, {case.private} hidden, {case.task} kept: ours and peers, the same files",
        command=[
            f"python benchmarks/peers/run.py {case.name} --data {case.file} --work DIR",
            f"python benchmarks/peers/run.py {case.name} --work DIR --write",
        ],
        data=case.words,
        n=next(row["n"] for row in rows if "n" in row),
        seeds=None,
        confidence=None,
        machine="one core of an AMD EPYC, others at work",
        commit=None,
        published_in=None,
        source=None,
        columns=columns,
        rows=shown,
        notes=[
            "In brackets the lowest and highest seed. Readings, attackers and bounds: balanced "
            "accuracy; bounds at 99 %. Of our trees `its own bound` is FARE's, from thirds of test.",
            "Rows were run one after the other, in several calls, while the scripts were written; "
            "the table was made from all of them by --write. A row with a commit in `published_in` "
            "was kept from the file that this commit wrote.",
            *case.notes,
            *failed,
        ],
    )
    write(path, study)
