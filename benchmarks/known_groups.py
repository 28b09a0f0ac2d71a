"""What a release tells about people of whom more is known: bounds within every group at once, what
boosted trees read there, and the task, by the bound that learning aimed at within groups.

    python benchmarks/known_groups.py --data adult.parquet --private sex --utility income \\
        --known marital_status,occupation,income --known-targets 0 0.64 0.62 0.6 0.58 \\
        --set dims=1 --seeds 3 --workers 2 --out benchmarks/results/known-groups-adult.json

A known target of 0 learns without the groups, with the settings of --set-plain. A fifth of what the
confidence leaves is for the bound of everybody, the rest is shared by all groups with MIDDLING
people of each value or more, so that all of a release's bounds hold at once; smaller groups are
named as too small. The result is a file for benchmarks/tables.py; beside it, FILE-each.json has
every group at the target --each.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tables

# People of each private value in *test*, at least, of groups that are called large and middling.
LARGE, MIDDLING = 500, 200
CONFIDENCE = 0.99
# Of what the confidence leaves, the share for the bound of everybody.
EVERYBODY = 0.2
# Noise that trees see of each person they learn from.
DRAWS = 4


def measure(job: Mapping[str, Any]) -> dict[str, Any]:
    """Learn one release, bound it and attack it."""
    import torch

    torch.set_num_threads(1)
    import privet
    from privet.evidence.certificate.coded_people import CodedPeople, certify_people
    from privet.evidence.certificate.side_information import SideInformation, certify_groups

    started = time.monotonic()
    data = job["data"]
    data = privet.load(data, progress=False) if isinstance(data, str) else data
    known, words = job["known"], list(job["settings"])
    if job["known_target"]:
        words += [f"known={','.join(known)}", f"known_target={job['known_target']}"]
    method = privet.METHODS[job["method"]].parse(words, seed=job["seed"])
    how = privet.Run(progress=False, device=job["device"])
    release = method.fit(data, job["private"], job["utility"], without=job["without"], run=how)
    release.module.cpu()
    test, attribute = data.part("test"), data.attribute(job["private"])
    rows = np.flatnonzero(test.labels[attribute.name] >= 0)
    test = test.take(rows)
    codes, mechanism = codes_of(release, test)
    labels = test.labels[attribute.name]
    people = CodedPeople(codes, labels, test.people, attribute.name, attribute.values)
    sides = [
        SideInformation(name, data.attribute(name).values, test.labels[name]) for name in known
    ]
    delta = 1 - CONFIDENCE
    groups = certify_groups(
        people, mechanism, sides, delta=(1 - EVERYBODY) * delta, fewest=MIDDLING
    )
    overall = certify_people(people, mechanism, delta=EVERYBODY * delta)
    found = {
        f"{group.by} = {group.value}": {
            "bound": group.bound,
            "people": list(group.people),
            "found": read_in_group(release, data, job["private"], group.by, group.value)
            if min(group.people) >= MIDDLING
            else None,
            "reason": group.reason,
        }
        for group in groups
    }
    return {
        **{key: job[key] for key in ("method", "known_target", "seed", "settings", "without")},
        "n": len(test),
        "overall": overall.bound,
        "found": read(release, data, job["private"], np.ones(len(data), dtype=bool)),
        "groups": found,
        "task": task_accuracy(release, data, job["utility"]),
        "noise": release.noise.scale if release.noise else None,
        "met": release.card["chosen"]["met"],
        "held_out": max(
            (e["score"] for e in release.card["history"] if "score" in e), default=None
        ),
        "seconds": round(time.monotonic() - started, 1),
    }


def codes_of(release: Any, data: Any) -> tuple[Any, Any]:
    """Codes before noise, and what is done to them."""
    import torch

    from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
    from privet.evidence.certificate.symbols import response
    from privet.methods.certified import encode
    from privet.train.feed import Feed

    device = next(release.module.parameters()).device
    codes = encode(release.module.body, Feed(release.schema.inputs(data), {}, torch.device(device)))
    if release.noise.law == "uniform":
        size = codes.shape[1]
        return codes.argmax(1), RandomisedSymbols(size, response(size, release.noise.scale))
    return codes, GaussianNoise(release.noise.scale)


def released(release: Any, data: Any, draws: int, seed: int) -> Any:
    """What leaves of records, drawn so many times, one draw after the other."""
    x = release.schema.inputs(data)
    return np.concatenate([release(x, seed=seed + draw) for draw in range(draws)])


def trees(z: Any, labels: Any, weight: str | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    leaf = max(20, len(z) // 200)
    model = HistGradientBoostingClassifier(
        max_iter=80, learning_rate=0.08, min_samples_leaf=leaf, class_weight=weight, random_state=0
    )
    return model.fit(z, labels)


def read(release: Any, data: Any, private: str, inside: Any) -> float:
    """Balanced accuracy, on the test people inside, of boosted trees taught on the others inside
    that learning did not see."""
    from privet.data.dataset import PARTS

    inside = inside & (data.labels[private] >= 0)
    test = data.take(np.flatnonzero(inside & (data.part_of == PARTS.index("test"))))
    others = data.take(
        np.flatnonzero(
            inside & np.isin(data.part_of, [PARTS.index("attack"), PARTS.index("select")])
        )
    )
    labels = np.tile(others.labels[private], DRAWS)
    model = trees(released(release, others, DRAWS, 100), labels, "balanced")
    guess, truth = model.predict(released(release, test, 1, 7)), test.labels[private]
    return float(np.mean([(guess[truth == value] == value).mean() for value in np.unique(truth)]))


def read_in_group(release: Any, data: Any, private: str, by: str, value: str) -> float:
    index = list(map(str, data.attribute(by).values)).index(value)
    return read(release, data, private, data.labels[by] == index)


def task_accuracy(release: Any, data: Any, task: str) -> float:
    """Plain accuracy of boosted trees on what is released."""
    attack, test = data.part("attack"), data.part("test")
    model = trees(released(release, attack, DRAWS, 200), np.tile(attack.labels[task], DRAWS), None)
    return float((model.predict(released(release, test, 1, 7)) == test.labels[task]).mean())


def percent(values: Sequence[float | None]) -> Any:
    """A figure for the tables: the mean of the seeds, and each of them."""
    known = [100 * value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return {"value": round(float(np.mean(known)), 1), "seeds": [round(v, 1) for v in known]}


def highest(run: Mapping[str, Any], least: int, most: float, key: str) -> float | None:
    """The highest figure of the groups with so many people of each private value."""
    values = [
        group[key]
        for group in run["groups"].values()
        if least <= min(group["people"]) < most and group[key] is not None
    ]
    return max(values, default=None)


def frontier(runs: Sequence[Mapping[str, Any]], targets: Sequence[float]) -> list[dict[str, Any]]:
    rows = []
    for target in targets:
        mine = [run for run in runs if run["known_target"] == target]
        row: dict[str, Any] = {
            "known_target": round(100 * target, 1) if target else "groups not aimed at",
            "overall": percent([run["overall"] for run in mine]),
        }
        for name, least, most in (("large", LARGE, np.inf), ("middling", MIDDLING, LARGE)):
            for key in ("bound", "found"):
                row[f"{name}_{key}"] = percent([highest(run, least, most, key) for run in mine])
        rows.append({**row, "task": percent([run["task"] for run in mine])})
    return rows


def each_group(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = [
        {
            "group": "everybody",
            "bound": percent([run["overall"] for run in runs]),
            "found": percent([run["found"] for run in runs]),
        }
    ]
    groups = runs[0]["groups"]
    for name in sorted(groups, key=lambda name: -min(groups[name]["people"])):
        mine, people = [run["groups"][name] for run in runs], groups[name]["people"]
        small = min(people) < MIDDLING
        rows.append(
            {
                "group": name,
                "people": " / ".join(f"{n:,}" for n in people),
                "bound": "too small" if small else percent([group["bound"] for group in mine]),
                "found": None if small else percent([group["found"] for group in mine]),
            }
        )
    return rows


def study(
    path: Path, title: str, columns: Sequence[Mapping[str, str]], rows: Any, about: Any
) -> None:
    """A file for the tables."""
    made = {"title": title, **about, "columns": columns, "rows": rows}
    path.write_text(json.dumps(made))
    tables.write(path, tables.read(path))  # laid out like the others


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--private", required=True)
    parser.add_argument("--utility", required=True)
    parser.add_argument("--known", required=True, help="attributes, with commas")
    parser.add_argument("--known-targets", type=float, nargs="+", default=[0.0, 0.6])
    parser.add_argument("--each", type=float, default=0.6, help="the known target shown by group")
    parser.add_argument("--method", default="hedge")
    parser.add_argument("--without", default="", help="columns that are no input")
    parser.add_argument("--set", action="append", default=[], help="a setting: key=value")
    parser.add_argument("--set-plain", action="append", default=[], help="without the groups")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--machine", default=None)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    known = asked.known.split(",")
    jobs = [
        {
            "data": asked.data,
            "private": asked.private,
            "utility": asked.utility,
            "known": known,
            "known_target": target,
            "method": asked.method,
            "without": asked.without,
            "settings": asked.set if target else asked.set_plain,
            "seed": seed,
            "device": asked.device,
        }
        for target in asked.known_targets
        for seed in range(asked.seeds)
    ]
    with multiprocessing.get_context("spawn").Pool(asked.workers, maxtasksperchild=1) as pool:
        runs = []
        for run in pool.imap(measure, jobs, chunksize=1):
            runs.append(run)
            sys.stderr.write(f"{len(runs)} of {len(jobs)}: {json.dumps(run)[:160]}\n")
    write(asked, runs)


def write(asked: argparse.Namespace, runs: Sequence[Mapping[str, Any]]) -> None:
    """The two files for the tables."""
    about = {
        "command": command(asked),
        "data": f"{Path(asked.data).stem}, private {asked.private}, task {asked.utility}",
        "n": runs[0]["n"],
        "seeds": asked.seeds,
        "confidence": CONFIDENCE,
        "machine": asked.machine,
        "commit": None,
        "published_in": None,
        "source": None,
        "notes": [
            "A value is the mean of the seeds, which follow in brackets.",
            f"All bounds of a release hold at once with {100 * CONFIDENCE:g} % confidence.",
            f"Large groups have {LARGE} people or more of each value in test, middling ones "
            f"{MIDDLING} to {LARGE}.",
            "Found: boosted trees taught on attack and select people of the same group.",
        ],
    }
    title = f"{asked.method} on {Path(asked.data).stem} within groups by {asked.known}"
    columns = [
        {"key": "known_target", "title": "aimed at in groups", "unit": "%"},
        {"key": "overall", "title": "certified: everybody", "unit": "%"},
        {"key": "large_bound", "title": "certified: highest large group", "unit": "%"},
        {"key": "middling_bound", "title": "certified: highest middling group", "unit": "%"},
        {"key": "large_found", "title": "found: highest large group", "unit": "%"},
        {"key": "middling_found", "title": "found: highest middling group", "unit": "%"},
        {"key": "task", "title": f"{asked.utility}: accuracy", "unit": "%"},
    ]
    study(asked.out, title, columns, frontier(runs, asked.known_targets), about)
    shown = [run for run in runs if run["known_target"] == asked.each]
    if shown:
        columns = [
            {"key": "group", "title": "group"},
            {"key": "people", "title": f"test people by {asked.private}"},
            {"key": "bound", "title": "certified", "unit": "%"},
            {"key": "found", "title": "found", "unit": "%"},
        ]
        path = asked.out.with_name(f"{asked.out.stem}-each.json")
        shown_title = f"{title}, aimed at {100 * asked.each:g} %"
        study(path, shown_title, columns, each_group(shown), about)


def command(asked: argparse.Namespace) -> list[str]:
    """Lines that measure it again."""
    targets = " ".join(f"{target:g}" for target in asked.known_targets)
    settings = " ".join(f"--set {word}" for word in asked.set)
    plain = " ".join(f"--set-plain {word}" for word in asked.set_plain)
    without = f" --without {asked.without}" if asked.without else ""
    lines = [
        f"python benchmarks/known_groups.py --data {Path(asked.data).name} "
        f"--private {asked.private} \\",
        f"    --utility {asked.utility} --known {asked.known}{without} \\",
        f"    --known-targets {targets} --each {asked.each:g} --seeds {asked.seeds} \\",
        *textwrap.wrap(
            f"{settings} {plain} --out FILE",
            88,
            initial_indent="    ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        ),
    ]
    return [line if line.endswith("\\") or line is lines[-1] else f"{line} \\" for line in lines]


if __name__ == "__main__":
    main()
