"""Veil against attackers who decode first: a row for each setting and seed, many in one call.

    python benchmarks/veil.py --folder DIR --plan benchmarks/veil_parts/gpu_plan.json \\
        --out out/rows.jsonl --workers 3 --seconds 3000
    python benchmarks/veil.py --small --out out/rows.jsonl    # portraits, on a CPU, to try it out

A plan is a list of questions: `data` (a file in DIR, or a source), `private`, `tasks`, settings that
`rows` have in common, and `rows`, each a `name`, a `method` (veil, or blend), its settings, the
first `seed` (0) and how many `seeds` (1); with `people` false who can be found again is not looked at (it costs as much as the rest); with
`learn_from` the release is learned on other data than it is attacked on. Every release is saved
beside --out before it is read, and not learned again in a later call.

Attackers (veil_parts) learn from *attack*, are chosen on *select* and counted on *test*:
perceptrons, quadratic discriminants and kernel machines on codes with fresh noise; a network on
decoded records; one taught on raw records and shown decoded ones; the same on the mean of eight releases; and the
log-odds of five records of a person. A task is read by perceptrons on codes or by a network on
decoded records, whichever *select* prefers. Of people: whose other picture is found again, and
whether decoded faces are nearer to faces of *fit* than to as many others.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from veil_parts import attackers, people
from veil_parts.attackers import PARTS, Codes, Pictures, Scores, figure

import privet
from privet.core.progress import console
from privet.data.dataset import Dataset
from privet.data.known_attributes import in_classes
from privet.data.schema_file import Layout
from privet.methods.registry import METHODS
from privet.methods.veil import Veil
from privet.nets.convolutions import prepare
from privet.nets.device import pick
from privet.release.drawn_records import draw_records, write_grid
from privet.release.release import Release

# Classes that a private number is read in.
BINS = 8


class Bench:
    """The data of one question on the device, with the labels asked about."""

    def __init__(self, args: argparse.Namespace, question: dict[str, Any]) -> None:
        self.args, self.device = args, pick(args.device)
        self.private, self.tasks = question["private"], question["tasks"]
        size = question.get("size")
        self.learn_from = source(args, question.get("learn_from", question["data"]), size)
        data = source(args, question["data"], size)
        names = [*self.private, *self.tasks]
        data, attributes = in_classes(data, [data.attribute(name) for name in names], BINS)
        self.classes = {attribute.name: attribute.classes for attribute in attributes}
        self.data, self.views = data, {part: data.part(part) for part in ("fit", *PARTS)}
        self.truth = {
            name: {
                part: torch.as_tensor(view.labels[name], device=self.device)
                for part, view in self.views.items()
            }
            for name in names
        }
        self.schema = Veil().problem(data, self.private, without=self.without()).schema
        self.raw = {
            part: torch.as_tensor(self.schema.inputs(view)[:], device=self.device)
            for part, view in self.views.items()
        }
        self.reader: torch.nn.Module | None = None

    def without(self) -> list[str]:
        """Columns of a table that are tasks are no input."""
        return self.tasks if self.data.modality == "table" else []

    def of_raw(self, part: str, index: torch.Tensor | None) -> torch.Tensor:
        x = self.raw[part] if index is None else self.raw[part][index]
        return prepare(x)

    def raw_row(self) -> dict[str, Any]:
        """Raw records, read by the network that decoded ones are later shown to."""
        scores, self.reader = attackers.network(
            self.schema, self.of_raw, self.truth, self.classes, self.args.reading
        )
        figures = {
            name: dataclasses.asdict(figure(one, self.truth[name], self.classes[name]))
            for name, one in scores.items()
        }
        return {
            "name": "raw records, network",
            "private": {name: {"worst": figures[name]} for name in self.private},
            "tasks": {task: figures[task] for task in self.tasks},
        }

    def release(self, settings: dict[str, Any], folder: Path) -> Release:
        """Learned and saved, or as it was saved by an earlier call."""
        if not (folder / "card.json").exists():
            run = privet.Run(progress=False, device=str(self.device), pace=self.args.pace)
            begin = time.monotonic()
            kind = METHODS[settings.pop("method", "veil")]
            made = kind(**settings).fit(
                self.learn_from, self.private, without=self.without(), run=run
            )
            made.card["learning"] = time.monotonic() - begin
            made.save(folder)
        return Release.load(folder, str(self.device))

    def row(self, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
        """One line of the results."""
        settings = dict(settings)
        about_people = settings.pop("people", not self.args.quick)
        release = self.release(settings, folder)
        begin = time.monotonic()
        veil: Any = release.module
        told = {
            part: torch.as_tensor(release.schema.inputs(view)[:], device=self.device)
            for part, view in self.views.items()
        }
        codes = self.released(veil, told)
        row = {
            "nats": float(codes["test"].nats.mean()),
            "guess": {name: one["balanced"] for name, one in release.card["guess"].items()},
            "lost": release.card["lost"]["share"],
            "history": release.card["history"][-1],
            "learning": release.card["learning"],
            "private": self.hidden(veil, codes),
            "tasks": self.serve(codes),
        }
        row["mean"] = sum(one["value"] for one in row["tasks"].values()) / len(row["tasks"])
        is_drawn = self.data.modality == "image" and not self.args.codes
        drawn = draw_records(release, self.data, 12) if is_drawn else None
        if drawn is not None:
            write_grid(drawn, folder / "drawn.png")
        if self.data.modality == "image" and about_people:
            row["found_again"] = people.found_again(release, self.data, self.device)
            faces = {part: self.of_raw(part, None) for part in ("fit", "attack")}
            row["nearest"] = people.nearest(codes["test"].pictures(), faces, folder / "nearest.png")
        return {**row, "reading": time.monotonic() - begin}

    def released(self, veil: Any, told: dict[str, torch.Tensor]) -> dict[str, Codes]:
        """What attackers get: codes, or records and a network that finds the codes behind them."""
        if veil.output == "code":
            return {part: Codes(veil, told[part]) for part in PARTS}
        drawn = {part: Pictures(veil, told[part]) for part in PARTS}
        finder = attackers.find_codes(drawn["attack"], veil.plain, self.args.reading)
        for one in drawn.values():
            one.finder = finder
        return dict(drawn)

    def hidden(self, veil: Any, codes: dict[str, Codes]) -> dict[str, Any]:
        """What attackers read of each private attribute."""
        seen, together = self.attack(veil, codes), {}
        for name in self.private:
            truth, classes = self.truth[name], self.classes[name]
            found = {key: scores[name] for key, scores in seen.items()}
            figures = {key: figure(one, truth, classes) for key, one in found.items()}
            worst = max(figures, key=lambda key: figures[key].select)
            together[name] = {
                "attackers": {key: dataclasses.asdict(one) for key, one in figures.items()},
                "worst": {"by": worst, **dataclasses.asdict(figures[worst])},
                "highest": max(one.value for one in figures.values()),
                "pooled": attackers.pooled(found[worst], truth, self.views["test"].people),
            }
        return together

    def attack(self, veil: Any, codes: dict[str, Codes]) -> dict[str, dict[str, Scores]]:
        """By attacker, its scores of every private attribute."""
        args = self.args
        truth = {name: self.truth[name] for name in self.private}
        classes = {name: self.classes[name] for name in self.private}
        found: dict[str, dict[str, Scores]] = {}
        for releases, mark in ((1, ""), (8, ", eight releases"))[: 1 if args.quick else 2]:

            def of_codes(part: str, index: torch.Tensor | None, k: int = releases) -> torch.Tensor:
                return codes[part].draw(index, k)

            def decoded(part: str, index: torch.Tensor | None, k: int = releases) -> torch.Tensor:
                return codes[part].pictures(index, k)

            members = attackers.perceptrons(of_codes, truth, classes, args.reading)
            for number in range(len(attackers.MEMBERS)):
                found[f"perceptron {number + 1}{mark}"] = {n: members[n][number] for n in truth}
            found[f"quadratic{mark}"] = {
                name: max(
                    attackers.quadratic(of_codes, truth[name], classes[name]),
                    key=lambda one, n=name: figure(one, truth[n], classes[n]).select,
                )
                for name in truth
            }
            found[f"kernel machine{mark}"] = {
                name: attackers.kernel_machine(of_codes, truth[name], classes[name])
                for name in truth
            }
            if args.codes:
                continue
            found[f"network on decoded{mark}"] = attackers.network(
                veil.plain, decoded, truth, classes, args.reading
            )[0]
            if self.reader is not None:
                sizes = list(self.classes.values())
                said = attackers.read(self.reader, decoded, list(self.classes), sizes)
                found[f"raw reader on decoded{mark}"] = said
        return found

    def serve(self, codes: dict[str, Codes]) -> dict[str, Any]:
        """How well each task is read from what is released."""
        truth = {task: self.truth[task] for task in self.tasks}
        classes = {task: self.classes[task] for task in self.tasks}
        members = attackers.perceptrons(
            lambda part, index: codes[part].draw(index), truth, classes, self.args.reading
        )
        on_decoded: dict[str, Scores] = {}
        if not self.args.codes:
            on_decoded, _ = attackers.network(
                codes["test"].veil.plain,
                lambda part, index: codes[part].pictures(index),
                truth,
                classes,
                self.args.reading,
            )
        tasks = {}
        for task in self.tasks:
            figures = {
                f"perceptron {number + 1}": figure(one, truth[task], classes[task])
                for number, one in enumerate(members[task])
            }
            if task in on_decoded:
                seen = on_decoded[task]
                figures["network on decoded"] = figure(seen, truth[task], classes[task])
            by = max(figures, key=lambda key: figures[key].select)
            tasks[task] = {"by": by, **dataclasses.asdict(figures[by])}
        return tasks


def source(args: argparse.Namespace, name: str, size: int | None = None) -> Dataset:
    """A file of the folder, or a source that needs none; pictures of so many pixels a side."""
    where = args.folder / name if name.endswith(".parquet") else name
    layout = Layout(size=(size, size)) if size else None
    return privet.load(where, layout, progress=False)


def jobs(plan: list[dict[str, Any]]) -> list[tuple[int, str, dict[str, Any]]]:
    """Question, name and settings of every release; first seeds first."""
    all_of_them = [
        (
            seed - row.get("seed", 0),
            number,
            row["name"],
            {**question.get("common", {}), **row, "seed": seed},
        )
        for number, question in enumerate(plan)
        for row in question["rows"]
        for seed in range(row.get("seed", 0), row.get("seed", 0) + row.get("seeds", 1))
    ]
    return [
        (number, name, {k: v for k, v in settings.items() if k not in ("name", "seeds")})
        for _, number, name, settings in sorted(all_of_them, key=lambda one: one[0])
    ]


def work(number: int, args: argparse.Namespace, plan: list[dict[str, Any]], begin: float) -> None:
    """Every args.workers-th release of the plan, as long as there is time to start one."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // args.workers))
    benches: dict[int, Bench] = {}
    for place, name, settings in jobs(plan)[number :: args.workers]:
        if time.time() - begin > args.seconds:
            return
        about = {
            "question": {k: v for k, v in plan[place].items() if k not in ("rows", "common")},
            "name": name,
            "settings": settings,
        }
        slug = re.sub(r"[^a-z0-9.]+", "-", f"{place} {name} {settings['seed']}".lower())
        try:
            if place not in benches:
                benches[place] = Bench(args, plan[place])
                if not args.quick:
                    write(args.out, {**about, **benches[place].raw_row(), "settings": None}, begin)
            row = benches[place].row(settings, args.out.parent / "releases" / slug)
        except Exception as error:  # one row that fails must not cost the others
            row = {"failed": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        write(args.out, {**about, **row}, begin)


def write(path: Path, row: dict[str, Any], begin: float) -> None:
    """One line more, and a word about it."""
    row["at"] = time.time() - begin
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    console.print(
        f"[{row['at']:.0f} s] {row['question']['data']} {row['name']}: {row.get('failed', '')}",
        {name: round(one["worst"]["value"], 1) for name, one in row.get("private", {}).items()},
        {name: round(one["value"], 1) for name, one in row.get("tasks", {}).items()},
        f"nats {row.get('nats') or 0:.0f} learning {row.get('learning') or 0:.0f} s reading"
        f" {row.get('reading') or 0:.0f} s",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def small(plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same plan on drawn portraits, a tiny release or two of each question: to see that it
    runs. Of the first question the two rows with most settings."""
    tiny = {"width": 0.05, "dims": 8, "lessons": 1, "epochs": 1, "batch": 32}
    of_veil, of_blend = {"memory": 64}, {"copies": 1, "sample": 32, "drawing": 1}
    known = {"Male": "beard", "Young": "glasses", "race": "background", "age": "hair"}
    some = []
    for question in plan:
        private = [known[name] for name in question["private"]]
        common = question.get("common", {})
        one = {**question, "data": "portraits:160", "private": private, "tasks": ["smiling"]}
        if "learn_from" in question:
            one["learn_from"] = "portraits:200"
        one["rows"] = [
            {
                **row,
                **tiny,
                **(of_blend if "blend" in (row.get("method"), common.get("method")) else of_veil),
                "seeds": 1,
                **({"features": 1} if row.get("features", common.get("features")) else {}),
            }
            for row in question["rows"][6:8] or question["rows"]
        ]
        some.append(one)
    return some


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument(
        "--plan", type=Path, default=Path(__file__).parent / "veil_parts/gpu_plan.json"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reading", type=int, default=25, help="epochs of every reader")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after these")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pace", default="auto")
    parser.add_argument(
        "--quick", action="store_true", help="one release, no reader of raw records, no people"
    )
    parser.add_argument(
        "--codes", action="store_true", help="as --quick, and nobody decodes: for a CPU"
    )
    parser.add_argument("--small", action="store_true", help="the plan on a few drawn portraits")
    args = parser.parse_args()
    args.quick |= args.codes
    begin = time.time()
    plan = json.loads(args.plan.read_text())
    plan, args.reading = (small(plan), 1) if args.small else (plan, args.reading)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    keys = ("data", "learn_from")
    for name, size in {(q[key], q.get("size")) for q in plan for key in keys if key in q}:
        source(args, name, size)  # packed once, before the workers read it
    if args.workers == 1:
        work(0, args, plan, begin)
    else:
        processes.start_processes(
            work, (args, plan, begin), nprocs=args.workers, start_method="spawn"
        )


if __name__ == "__main__":
    main()
