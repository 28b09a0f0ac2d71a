"""Results files from the rows of benchmarks/sources.py: means over seeds, figures as they were
counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import store

from sources_parts import answers
from sources_parts.joined import joined

Row = dict[str, Any]
Cell = Any


def _arrow(key: str, title: str) -> dict[str, str]:
    return {"key": key, "title": title, "unit": "%", "joined": " \u2192 "}


COLUMNS: dict[str, list[dict[str, str]]] = {
    "gap": [
        {"key": "game", "title": "game, \u03bb in the report's unit"},
        {"key": "distortion", "title": "mean absolute error on [0, 1]"},
        {"key": "psnr", "title": "PSNR", "unit": "dB"},
        {"key": "in_game", "title": "Smiling: in-game adversary", "unit": "%"},
        {"key": "from_fit", "title": "a new network, taught on *fit*", "unit": "%"},
        {"key": "plain_network", "title": "the same, taught on *attack*", "unit": "%"},
        {"key": "worst", "title": "strongest new attacker", "unit": "%"},
        {"key": "task", "title": "Male", "unit": "%"},
    ],
    "tiprdc": [
        {"key": "game", "title": "extractor"},
        {"key": "information", "title": "J at the end"},
        {"key": "rebuilt", "title": "rebuilt, PSNR", "unit": "dB"},
        {"key": "task", "title": "Smiling", "unit": "%"},
        {"key": "in_game", "title": "Male: in-game adversary", "unit": "%"},
        {"key": "from_fit", "title": "Table 1's classifier, taught on *fit*", "unit": "%"},
        {"key": "plain_network", "title": "the same, taught on *attack*", "unit": "%"},
        {"key": "worst", "title": "strongest new attacker", "unit": "%"},
    ],
    "collaborative": [
        {"key": "game", "title": "game"},
        {"key": "alpha", "title": "\u03b1"},
        _arrow("in_game", "provider's privacy model after the game, raw → released"),
        {"key": "came", "title": "as it came, released", "unit": "%"},
        _arrow("unfiltered", "on raw pictures, before → after the game"),
        _arrow("service", "service for smiles, raw → released"),
        _arrow("people", "people among five, pictures that it learned from"),
        _arrow("new_pictures", "the same, other pictures of theirs"),
        {"key": "distortion", "title": "mean absolute error on [0, 1]"},
        {"key": "worst", "title": "Male: strongest new attacker", "unit": "%"},
        {"key": "task", "title": "Smiling: new model", "unit": "%"},
    ],
}
TITLES = {
    "gap": "Generative adversarial privacy on faces: penalties, forms and schedules, with distortion",
    "tiprdc": "What TIPRDC's information term does: controls of equal size",
    "collaborative": "Collaborative sanitizers, adversarial form: what keeps the game from failing",
}
SOURCES = {
    "gap": "Chen, Rich and Chen's report on generative adversarial privacy",
    "tiprdc": "Li and others, TIPRDC, KDD 2020, Figure 5",
    "collaborative": "Sapiro and others, Let's collaborate, slides",
}
FACES = "celeba64: 20,000 pictures of CelebA at {0} x {0}; fit 6,800 of 1,360 people, attack 6,800 of 1,360, select 2,000 of 1,000, test 4,400 of 3,280"


COMMAND = [
    "# also with the later plans of sources_parts; from the third on they ended early",
    "python benchmarks/sources.py --folder DIR --plan benchmarks/sources_parts/plan.json \\",
    "    --out rows.jsonl --releases R --workers 8",
]
NOTES = [
    "An interval has the means of the seeds' own ends, each over the records of test.",
    "In-game figures are counted on select, n = 2,000, at the likelier value.",
    "Rows without a figure from fit are of a first call, in which attackers learned"
    " neither from mirror images nor from raw pictures first.",
]


def record(
    paths: Sequence[Path],
    folder: Path,
    machine: str | None,
    commit: str | None,
    *,
    add: bool = False,
    notes: Sequence[str] = (),
) -> None:
    """One results file for each kind: the latest row of each game and seed that did not fail.

    Args:
        paths: Files of rows, one JSON object a line.
        folder: Where results files are.
        machine: Kind of machine. Where rows are added, None keeps the file's.
        commit: Commit that was run. Where rows are added, it is added to the file's.
        add: Keep the rows that the files have. Seeds that they lack join their game's row.
        notes: Sentences for the file, after those that it has.
    """
    rows = {_game(row): row for path in paths for row in _lines(path) if "failed" not in row}
    for kind in COLUMNS:
        some = [row for row in rows.values() if row["kind"] == kind]
        if not some:
            continue
        path = folder / f"sources-{kind}.json"
        there = json.loads(path.read_text(encoding="utf-8")) if add and path.exists() else {}
        games: dict[str, list[Row]] = {}
        for row in some:
            games.setdefault(json.dumps(_plain(row["settings"]), sort_keys=True), []).append(row)
        new = []
        for same in games.values():
            same.sort(key=lambda row: row["settings"]["seed"])
            new.append(
                (_line(kind, same), {row["settings"]["seed"]: _line(kind, [row]) for row in same})
            )
        lines = joined(there["rows"], new, _name(kind)) if there else [line for line, _ in new]
        about = {
            "n": some[0]["n"]["test"],
            "data": FACES.format(some[0]["question"]["size"]),
            "machine": machine or there.get("machine"),
            "commit": ", ".join(filter(None, (there.get("commit"), commit))) or None,
            "notes": [*there.get("notes", NOTES), *notes],
        }
        if wrong := [key for key in ("n", "data") if there.get(key, about[key]) != about[key]]:
            raise ValueError(f"{path.name}: other {' and '.join(wrong)} than these rows.")
        _write(path, kind, lines, about)
        if kind == "collaborative":
            answers.record(folder / "sources-collaborative-answers.json", some, about, _how)


def _line(kind: str, rows: Sequence[Row]) -> Row:
    line = LINES[kind](rows)
    return line | {"runs": line.pop("seeds")}


def _write(path: Path, kind: str, lines: list[Row], about: Row) -> None:
    columns = COLUMNS[kind]
    lines = sorted(lines, key=_name(kind))
    several = max(line["runs"] for line in lines) > 1
    if several:
        columns = [*columns, {"key": "runs", "title": "seeds"}]
    else:
        lines = [{key: cell for key, cell in line.items() if key != "runs"} for line in lines]
    study = {
        "title": TITLES[kind],
        "command": COMMAND,
        "data": about["data"],
        "n": about["n"],
        "seeds": None if several else 1,
        "confidence": 0.95,
        "machine": about["machine"],
        "commit": about["commit"],
        "published_in": None,
        "source": SOURCES[kind],
        "columns": columns,
        "rows": lines,
        "notes": about["notes"],
    }
    store(path, study)


def _name(kind: str) -> Callable[[Row], str]:
    """What names a game in a results file, and sorts its rows."""
    return lambda line: json.dumps(ORDER[kind](line), default=str)


def _game(row: Row) -> str:
    """Names a game and its seed; raw pictures are the same in every plan."""
    s = row["settings"]
    return f"{row['kind']} " + ("raw" if s.get("form") == "raw" else json.dumps(s, sort_keys=True))


def _lines(path: Path) -> Iterable[Row]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def _plain(settings: Row) -> Row:
    return {key: value for key, value in settings.items() if key != "seed"}


def _mean(values: Iterable[float | None], digits: int = 1) -> Cell:
    """The mean over seeds, and each seed where there are several."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    cell: Row = {"value": round(float(np.mean(known)), digits)}
    return cell | ({"seeds": [round(value, digits) for value in known]} if known[1:] else {})


def _figure(figures: Sequence[Row]) -> Cell:
    """Of per cent with an interval: the means of the values and of the ends."""
    cell = {
        key: round(float(np.mean([f[key] for f in figures])), 1) for key in ("value", "low", "high")
    }
    seeds = [round(one["value"], 1) for one in figures]
    return cell | ({"seeds": seeds} if seeds[1:] else {})


def _in_game(rows: Sequence[Row]) -> Cell:
    return _mean(
        100 * next(iter(row["in_game"].values()))["balanced"] if row["in_game"] else None
        for row in rows
    )


def _read(rows: Sequence[Row]) -> Row:
    """What all kinds show: new attackers and tasks."""
    private = [next(iter(row["private"].values())) for row in rows]
    return {
        "worst": _figure([one["worst"] for one in private]),
        "plain_network": _figure([one["attackers"]["table 1"] for one in private]),
        "from_fit": _figure([one["from fit"] for one in private])
        if "from fit" in private[0]
        else None,
        "task": _figure([next(iter(row["tasks"].values())) for row in rows]),
        "seeds": len(rows),
    }


def _gap(rows: Sequence[Row]) -> Row:
    s, read = rows[0]["settings"], _read(rows)
    moved = {
        key: _mean((row[key] for row in rows), 3 if key == "distortion" else 1)
        for key in ("distortion", "psnr")
    }
    if s.get("form") == "raw":
        return {
            "game": "raw pictures",
            "distortion": 0,
            "psnr": None,
            "in_game": None,
            **read,
        }
    form = (
        "cross entropy without end"
        if s.get("endless")
        else {"variation": "total variation"}.get(s.get("form", ""), "cross entropy")
    )
    form = f"guarded {form}" if s.get("guarded") else form
    form = f"tempered {form}" if s.get("tempered") else form
    moves = (s.get("rounds", 300), s.get("itr_d", 15), s.get("itr_g", 20))
    game = f"{form}, \u03bb {s['penalty'] / 2:g}, {moves[0]:,} rounds of {moves[1]} and {moves[2]}"
    game += f", noise {s['noise']:g}" if s.get("noise") else ""
    game += f", batches of {s.get('batch', 128)}"
    return {"game": game, **moved, "in_game": _in_game(rows), **read}


def _tiprdc(rows: Sequence[Row]) -> Row:
    s, read = rows[0]["settings"], _read(rows)
    budget = s.get("budget")
    words = {"random": "never taught", "autoencoder": "autoencoder"}.get(s.get("form", ""))
    if words is None:
        critic = "local critic" if s.get("critic") == "local" else "published"
        words = "without J (λ 1)" if budget == 1 else f"{critic}, λ {budget:g}"
    words += "" if s.get("batch", 64) == 128 else ", batches of 64"
    maps = s.get("channels") or round(128 * s.get("width", 1.0))
    information = _mean((row["facts"].get("information") for row in rows), 2)
    rebuilt = _mean((row["rebuilt"] for row in rows), 1)
    words += f"; {maps} maps"
    return {
        "game": words,
        "information": information,
        "rebuilt": rebuilt,
        "in_game": _in_game(rows),
        **read,
    }


def _collaborative(rows: Sequence[Row]) -> Row:
    s, read = rows[0]["settings"], _read(rows)
    del read["plain_network"], read["from_fit"]
    moved = _mean((row["distortion"] for row in rows), 3)
    if s.get("form") == "raw":
        nothing = dict.fromkeys(
            ("alpha", "in_game", "came", "unfiltered", "service", "people", "new_pictures")
        )
        return {"game": "raw pictures", **nothing, "distortion": 0, **read}
    services = [row["facts"]["services"] for row in rows]

    def arrow(name: str, first: str = "raw", second: str = "released") -> Cell:
        if any(name not in one for one in services):
            return None
        return [_mean(one[name][key] for one in services) for key in (first, second)]

    name = next(iter(rows[0]["in_game"]))
    return {
        "game": _how(s),
        "alpha": s["alpha"],
        "in_game": arrow(name),
        "came": _mean(one[name]["as it came"] for one in services),
        "unfiltered": arrow(name, "before", "raw"),
        "service": arrow("Smiling"),
        "people": arrow("person"),
        "new_pictures": arrow("person, new pictures"),
        "distortion": moved,
        **read,
    }


def _how(s: Row) -> str:
    """What a collaborative game has beside the published losses."""
    parts = {
        "distort": "distortion",
        "ramp": "ramp",
        "warm": "warm start",
        "rate": "rates",
        "moves": "moves",
    }
    used = [f"{words} {s[key]:g}" for key, words in parts.items() if s.get(key)]
    if s.get("lr"):
        used.append(f"lr {s['lr']:g}")
    game = ", ".join(used) or "as in the slides"
    return game + ("; stochastic" if s.get("stochastic") else "")


LINES: dict[str, Callable[[Sequence[Row]], Row]] = {
    "gap": _gap,
    "tiprdc": _tiprdc,
    "collaborative": _collaborative,
}
ORDER: dict[str, Callable[[Row], list[Any]]] = {
    "gap": lambda line: [line["game"] != "raw pictures", line["game"]],
    "tiprdc": lambda line: [len(line["game"].rsplit(";")[-1]), line["game"]],
    "collaborative": lambda line: [
        line["game"] != "raw pictures",
        line["game"],
        f"{line['alpha'] or 0:.2f}",
    ],
}
