"""Results files from cloak_maps.json, one of each seed: the frozen service by task and share, and
what attackers read who come afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from sources_parts.joined import with_seeds
from tables import RESULTS, store

Told = Mapping[str, Any]
WORDS = {"Male": "gender", "Black_Hair": "black hair"}


def record(
    paths: Sequence[Path], topic: str, machine: str | None, out: Path | None, add: bool = False
) -> None:
    """TOPIC.json and, where attackers were asked, TOPIC-attackers.json in `out`; with `add`, more
    seeds for the rows that these have."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    folder = RESULTS if out is None else out
    _store(folder / f"{topic}.json", runs, machine, services, add)
    if any(run["attackers"] for run in runs):
        _store(folder / f"{topic}-attackers.json", runs, machine, attackers, add)


def _store(
    path: Path,
    runs: Sequence[Told],
    machine: str | None,
    rows: Callable[[Sequence[Told]], dict[str, Any]],
    add: bool,
) -> None:
    study = {**facts(runs, machine), **rows(runs)}
    if add:
        seeds = {run["settings"]["seed"]: rows([run])["rows"] for run in runs}
        there = json.loads(path.read_text(encoding="utf-8"))
        words = f"Seed{'s' if seeds.keys() - {min(seeds)} else ''} {' and '.join(map(str, seeds))}"
        old = there["notes"]
        study["notes"] = [note for note in study["notes"] if note in old] + [
            f"{words}: {note}" for note in study["notes"] if note not in old
        ]
        study = with_seeds(there, study, seeds, _named)
    store(path, study)


def _named(row: Mapping[str, Any]) -> str:
    return f"{row.get('task', '')} {row['suppressed']}".strip()


def facts(runs: Sequence[Told], machine: str | None) -> dict[str, Any]:
    settings = runs[0]["settings"]
    given = " ".join(f"--{name} {settings[name]:g}" for name in ("lessons", "epochs", "constants"))
    return {
        "command": [
            f"python benchmarks/cloak_maps.py --data {Path(settings['data']).name} \\",
            f"    --out cloak {given}",
        ],
        "data": runs[0]["data"],
        "n": runs[0]["n"],
        "seeds": len(runs),
        "confidence": 0.95,
        "machine": machine,
        "commit": None,
        "published_in": None,
        "source": "slides on Cloak, Figure 1; Mireshghallah and others, WWW 2021",
    }


def word(name: str) -> str:
    """
    >>> word("Black_Hair"), word("Smiling")
    ('black hair', 'smiling')
    """
    return WORDS.get(name, name.lower())


def percent(figures: Sequence[Told]) -> dict[str, Any]:
    """The mean over seeds, in per cent, with the means of the intervals' ends.

    >>> percent([{"value": 0.5, "low": 0.4, "high": 0.6}])
    {'value': 50.0, 'low': 40.0, 'high': 60.0}
    """
    cell: dict[str, Any] = {
        key: round(100 * float(np.mean([one[key] for one in figures])), 1)
        for key in ("value", "low", "high")
    }
    seeds = [round(100 * one["value"], 1) for one in figures]
    return cell | ({"seeds": seeds} if seeds[1:] else {})


def services(runs: Sequence[Told]) -> dict[str, Any]:
    rows = []
    for task, share in dict.fromkeys(_place(row) for run in runs for row in run["rows"]):
        same = [row for run in runs for row in run["rows"] if _place(row) == (task, share)]
        raw, released = (percent([row[kind] for row in same]) for kind in ("raw", "released"))
        rows.append(
            {
                "task": word(task),
                "suppressed": round(100 * share, 1),
                "raw": raw,
                "released": released,
                "lost": round(
                    100
                    * float(np.mean([r["raw"]["value"] - r["released"]["value"] for r in same])),
                    1,
                ),
                "frequent": round(100 * same[0]["frequent"], 1),
                "balanced": [
                    round(
                        100 * float(np.mean([row[f"{kind}_balanced"]["value"] for row in same])), 1
                    )
                    for kind in ("raw", "released")
                ],
            }
        )
    return {
        "title": "Cloak with VGG-16 as the frozen service: four tasks by three shares suppressed",
        "columns": [
            {"key": "task", "title": "task"},
            {"key": "suppressed", "title": "pixels suppressed", "unit": "%"},
            {"key": "raw", "title": "service, raw", "unit": "%"},
            {"key": "released", "title": "service, masked", "unit": "%"},
            {"key": "lost", "title": "lost", "unit": "points"},
            {"key": "frequent", "title": "always the frequent value", "unit": "%"},
            {"key": "balanced", "title": "balanced, raw → masked", "unit": "%", "joined": " → "},
        ],
        "rows": rows,
        "notes": ["Plain accuracy of the service itself on test, with fresh noise."],
    }


def attackers(runs: Sequence[Told]) -> dict[str, Any]:
    names = list(next(run for run in runs if run["attackers"])["attackers"][0]["private"])
    task, reader = (runs[0]["settings"][name] for name in ("attacked", "reader"))
    rows = []
    shares = {one["suppression"] for run in runs for one in run["attackers"]}
    from_fit = []
    for share in sorted(shares, key=lambda one: one or 0.0):
        same = [one for run in runs for one in run["attackers"] if one["suppression"] == share]
        row: dict[str, Any] = {
            "suppressed": "nothing (raw)" if share is None else round(100 * share, 1)
        }
        for name in names:
            for kind, key in (("worst", ""), ("table 1", "_vgg")):
                row[f"{name}{key}"] = percent([_share(one["private"][name], kind) for one in same])
        rows.append(row)
        known = {
            name: [one["private"][name]["from fit"]["value"] for one in same] for name in names
        }
        found = ", ".join(f"{word(name)} {np.mean(values):.1f}" for name, values in known.items())
        from_fit.append(f"{'raw' if share is None else f'{100 * share:g} %'}: {found}")
    columns = [{"key": "suppressed", "title": "pixels suppressed", "unit": "%"}]
    for name in names:
        columns += [
            {"key": name, "title": f"{word(name)}: strongest attacker", "unit": "%"},
            {
                "key": f"{name}_vgg",
                "title": f"{word(name)}: VGG-16 of width {reader:g}",
                "unit": "%",
            },
        ]
    return {
        "title": f"What is read from pictures that Cloak masked for {word(task)}, by VGG-16",
        "columns": columns,
        "rows": rows,
        "notes": [
            "Balanced accuracy. Attackers learn from masked pictures of attack, are chosen on"
            " select and counted on test; the strongest of a residual network, VGG-16 and three"
            " perceptrons. Intervals count records.",
            "The same VGG-16 taught on pictures of fit, from which service and noise were learned,"
            f" reads, in %: {'; '.join(from_fit)}.",
        ],
    }


def _place(row: Told) -> tuple[str, float]:
    return row["task"], row["suppression"]


def _share(found: Told, kind: str) -> dict[str, float]:
    figure = found["worst"] if kind == "worst" else found["attackers"][kind]
    return {key: figure[key] / 100 for key in ("value", "low", "high")}
