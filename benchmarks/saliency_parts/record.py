"""Results files from saliency.json, one of each seed: curves' areas by way, and areas on *select*
by c."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from sources_parts.joined import with_seeds
from tables import RESULTS, store

Told = Mapping[str, Any]
KINDS = {"insertion": "insertion", "deletion": "deletion, lower is better"}
SHOWN = (0.1, 0.2, 0.5)
"""Shares of pixels kept whose scores stand in the table."""


def record(
    paths: Sequence[Path], topic: str, machine: str | None, out: Path | None, add: bool = False
) -> None:
    """TOPIC.json and TOPIC-c.json in `out`; with `add`, more seeds for the rows of the first."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    path = (RESULTS if out is None else out) / f"{topic}.json"
    if not add:
        store(path, {**facts(runs, machine), **ways(runs)})
        store(path.with_name(f"{topic}-c.json"), {**facts(runs, machine), **grid(runs)})
        return
    there, seeds = json.loads(path.read_text(encoding="utf-8")), {}
    notes = [_of_seed(note, "0") for note in there["notes"]]
    for run in runs:
        seed, one = run["settings"]["seed"], ways([run])
        seeds[seed] = one["rows"]
        notes += [_of_seed(note, seed) for note in one["notes"]]
    new = {**ways(runs), "notes": notes}
    store(path, with_seeds({**there, "notes": []}, new, seeds, lambda row: str(row["way"])))


def _of_seed(note: str, seed: object) -> str:
    """A sentence about figures of one seed, which says so."""
    return note if note.startswith(("Seed ", "Intervals ")) else f"Seed {seed}: {note}"


def facts(runs: Sequence[Told], machine: str | None) -> dict[str, Any]:
    first = runs[0]
    settings, found = first["settings"], first["comparison"]
    seeds = sorted(run["settings"]["seed"] for run in runs)
    loop = f"for seed in {' '.join(map(str, seeds))}"
    return {
        "command": command(settings) if len(runs) == 1 else [f"# {loop}", *command(settings)],
        "data": f"{found['data']}: {settings['pictures']} pictures of select and of test",
        "n": found["raw"]["n"],
        "seeds": len(runs),
        "confidence": 0.95,
        "machine": machine,
        "commit": None,
        "published_in": None,
        "source": "Koker and others, U-Noise, ICIP 2021",
    }


def command(settings: Told) -> list[str]:
    """The lines that measure it again. The first size is the one that tries every c."""
    given = {
        name: " ".join(f"{v:g}" for v in settings[name])
        for name in ("levels", "c")
        if settings[name]
    }
    others = {"sizes": " ".join(settings["sizes"])}
    others |= {name: f"{settings[name]:g}" for name in ("loud", "lessons", "epochs", "seed")}
    around = " --around" if settings["around"] else ""
    first, second = (
        " ".join(f"--{name} {value}" for name, value in some.items()) for some in (given, others)
    )
    data = Path(settings["data"]).name
    return [
        f"python benchmarks/saliency.py --data {data} --out saliency{around} \\",
        f"    {first} \\",
        f"    {second}",
    ]


def ways(runs: Sequence[Told]) -> dict[str, Any]:
    first = runs[0]["comparison"]
    fills = list(dict.fromkeys(curve["fill"] for curve in first["curves"]))
    orders = list(dict.fromkeys(curve["order"] for curve in first["curves"]))
    loud = f"noise of {runs[0]['settings']['loud']:g}"
    named = {"noise": loud}
    columns: list[dict[str, str]] = [{"key": "way", "title": "way"}]
    for order in orders:
        columns += [
            {"key": f"{order}_{fill}", "title": f"{KINDS[order]}, {named.get(fill, fill)}"}
            for fill in fills
        ]
    at = " / ".join(f"{100 * share:g}" for share in SHOWN)
    columns += [
        {"key": "kept", "title": f"at {at} % kept, {loud}", "joined": " / "},
        {"key": "time", "title": "time per picture", "unit": "ms"},
    ]
    rows = []
    for name in first["seconds"]:
        row: dict[str, Any] = {"way": name}
        for order in orders:
            for fill in fills:
                same = curves(runs, name, order, fill)
                row[f"{order}_{fill}"] = mean(curve["area"] for curve in same)
        inserted = curves(runs, name, "insertion", "noise")
        shares = inserted[0]["shares"]
        scores = [[c["scores"][shares.index(s)]["value"] for c in inserted] for s in SHOWN]
        row["kept"] = [round(float(np.mean(values)), 2) for values in scores]
        milliseconds = [1000 * run["comparison"]["seconds"][name] for run in runs]
        row["time"] = None if name == "chance" else float(f"{np.mean(milliseconds):.2g}")
        rows.append(row)
    raw = mean(run["comparison"]["raw"] for run in runs)
    whole = f"{raw['value']:.3f} ({raw['low']:.3f} to {raw['high']:.3f})"
    notes = [f"{first['measure']} of the model on whole pictures: {whole}."]
    notes += margins(runs, fills, orders)
    return {
        "title": f"What a model needs: {first['measure']} by pixels kept and deleted, "
        f"{first['data']}",
        "columns": columns,
        "rows": rows,
        "notes": notes,
    }


def curves(runs: Sequence[Told], name: str, order: str, fill: str) -> list[Told]:
    """The same curve of every run."""
    wanted = (name, order, fill)
    return [
        curve
        for run in runs
        for curve in run["comparison"]["curves"]
        if (curve["name"], curve["order"], curve["fill"]) == wanted
    ]


def mean(figures: Iterable[Told]) -> Any:
    """Over seeds, with the means of the intervals' ends, and each seed where there are several."""
    known = list(figures)

    cell: dict[str, Any] = {
        key: round(float(np.mean([one[key] for one in known])), 3)
        for key in ("value", "low", "high")
    }
    return cell | ({"seeds": [round(one["value"], 3) for one in known]} if known[1:] else {})


def margins(runs: Sequence[Told], fills: Sequence[str], orders: Sequence[str]) -> list[str]:
    """A sentence for each map of U-Noise beside Grad-CAM's best layer, occlusion and gradients."""
    notes = []
    for name in runs[0]["margins"]:
        if ", insertion, noise" not in name or "chance" in name:
            continue
        apart = [run["margins"][name] for run in runs if name in run["margins"]]
        far = mean(apart)
        notes.append(f"{name}: {far['value']:+.3f} ({far['low']:+.3f} to {far['high']:+.3f}).")
    return notes


def grid(runs: Sequence[Told]) -> dict[str, Any]:
    """Areas on *select* by c; the best of each size is bold."""
    sizes = list(runs[0]["learned_on_select"])
    tried = [
        {size: {float(c): area for c, area in told["areas"].items()} for size, told in one.items()}
        for one in (run["learned_on_select"] for run in runs)
    ]
    values = sorted({c for run in tried for areas in run.values() for c in areas})
    averages: dict[str, dict[float, list[float]]] = {
        size: {
            c: known
            for c in values
            if (known := [run[size][c] for run in tried if c in run.get(size, {})])
        }
        for size in sizes
    }
    rows = []
    for c in values:
        row: dict[str, Any] = {"c": f"{c:g}"}
        for size, areas in averages.items():
            if c in areas:
                cell: dict[str, Any] = {"value": round(float(np.mean(areas[c])), 3)}
                if areas[c][1:]:
                    cell["seeds"] = [round(area, 3) for area in areas[c]]
                if c == max(areas, key=lambda one: float(np.mean(areas[one]))):
                    cell["strong"] = True
                row[size] = cell
            else:
                row[size] = None
        rows.append(row)
    open_sides = sorted(
        {
            size
            for run in runs
            for size, told in run["learned_on_select"].items()
            if not told.get("closed", False)
        }
    )
    return {
        "title": "U-Noise: area of insertion under noise on select, by c",
        "columns": [
            {"key": "c", "title": "c"},
            *({"key": size, "title": f"U-Noise {size}"} for size in sizes),
        ],
        "rows": rows,
        "notes": [f"The best c lies at the edge of what was tried: {', '.join(open_sides)}."]
        if open_sides
        else ["On both sides of every best c a worse one was tried."],
    }
