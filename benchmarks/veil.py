"""Veil against attackers who decode first: a row for each setting, many of them in one call.

    python benchmarks/veil.py --data celeba64.parquet --private Male --tasks Smiling,Young \\
        --plan plan.json --out rows.jsonl --workers 3
    python benchmarks/veil.py --small --out rows.jsonl        # portraits, on a CPU, to try it out

A plan is a list of settings of `privet.Veil`, each with a `name`. Attackers (veil_parts) learn from
*attack*, are chosen on *select* and counted on *test*: perceptrons and quadratic discriminants on
codes with fresh noise; a network on decoded records; one taught on raw records and shown decoded
ones; the same on the mean of eight releases; and the log-odds of five records of a person. A task
is read by perceptrons on codes or by a network on decoded records, whichever *select* prefers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from veil_parts import attackers
from veil_parts.attackers import PARTS, Codes, Scores, figure

import privet
from privet.core.progress import console
from privet.methods.veil import Veil
from privet.nets.convolutions import prepare
from privet.nets.device import pick

SMALL: list[dict[str, Any]] = [
    {"name": "not hidden", "aware": False, "confuse": 0.0, "match": 0.0, "beta": 1e-4},
    {"name": "veil", "view": 0.5, "beta": 3e-3},
]
SMALL_SETTINGS = {"dims": 16, "width": 0.1, "lessons": 2, "epochs": 6, "batch": 64}


class Bench:
    """The data of one question on the device, with the labels asked about."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.device = args, pick(args.device)
        self.data = privet.load(args.data, progress=False)
        self.private, self.tasks = args.private, args.tasks.split(",")
        names = [self.private, *self.tasks]
        self.classes = {name: self.data.attribute(name).classes for name in names}
        self.views = {part: self.data.part(part) for part in PARTS}
        self.truth = {
            name: {
                part: torch.as_tensor(view.labels[name], device=self.device)
                for part, view in self.views.items()
            }
            for name in names
        }
        schema = Veil().problem(self.data, self.private, without=self.without()).schema
        self.raw = {
            part: torch.as_tensor(schema.inputs(view)[:], device=self.device)
            for part, view in self.views.items()
        }
        self.schema, self.reader = schema, None

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
            "attackers": {"network": figures[self.private]},
            "worst": figures[self.private],
            "tasks": {task: figures[task] for task in self.tasks},
        }

    def rows(
        self, name: str, settings: dict[str, Any], picture: Path | None
    ) -> Iterator[dict[str, Any]]:
        """One row, or two where codes are moved together afterwards: before, and after."""
        begin = time.monotonic()
        method = Veil(**settings)
        run = privet.Run(progress=False, device=str(self.device), pace=self.args.pace)
        release = method.fit(self.data, self.private, without=self.without(), run=run)
        learned = time.monotonic() - begin
        release.to(self.device)
        veil = release.module
        told = {
            part: torch.as_tensor(release.schema.inputs(view)[:], device=self.device)
            if method.told
            else self.raw[part]
            for part, view in self.views.items()
        }
        codes = {part: Codes(veil, x) for part, x in told.items()}
        if picture is not None and self.data.modality == "image":
            self.draw(veil, codes["test"], picture)
        about = {
            "settings": settings,
            "nats": float(codes["test"].nats.mean()),
            "guess": release.card["guess"][self.private]["balanced"],
            "lost": release.card["lost"]["share"],
            "history": release.card["history"][-1],
            "learning": learned,
        }
        for moved in (False, True) if method.transport else (False,):
            veil.transport = moved
            words = f"{name}, moved together" if moved else name
            yield {"name": words, **about, **self.judged(veil, codes)}

    def judged(self, veil: Any, codes: dict[str, Codes]) -> dict[str, Any]:
        """What attackers and tasks read."""
        begin = time.monotonic()
        found = self.attack(veil, codes)
        tasks = self.serve(codes)
        truth, classes = self.truth[self.private], self.classes[self.private]
        figures = {key: figure(one, truth, classes) for key, one in found.items()}
        worst = max(figures, key=lambda key: figures[key].select)
        people = self.views["test"].people
        together = {key: attackers.pooled(one, truth, people) for key, one in found.items()}
        return {
            "attackers": {key: dataclasses.asdict(one) for key, one in figures.items()},
            "worst": {"by": worst, **dataclasses.asdict(figures[worst])},
            "highest": max(one.value for one in figures.values()),
            "pooled": together[worst],
            "pooled_highest": max((one["value"] for one in together.values() if one), default=None),
            "tasks": tasks,
            "mean": sum(one["value"] for one in tasks.values()) / len(tasks),
            "reading": time.monotonic() - begin,
        }

    def attack(self, veil: Any, codes: dict[str, Codes]) -> dict[str, Scores]:
        """The scores of every attacker of the private attribute, by name."""
        args, name = self.args, self.private
        truth, classes = {name: self.truth[name]}, {name: self.classes[name]}
        found: dict[str, Scores] = {}
        for releases, mark in ((1, ""), (8, ", eight releases"))[: 1 if args.quick else 2]:

            def of_codes(part: str, index: torch.Tensor | None, k: int = releases) -> torch.Tensor:
                return codes[part].draw(index, k)

            def decoded(part: str, index: torch.Tensor | None, k: int = releases) -> torch.Tensor:
                return codes[part].pictures(index, k)

            members = attackers.perceptrons(of_codes, truth, classes, args.reading)[name]
            for number, scores in enumerate(members):
                found[f"perceptron {number + 1}{mark}"] = scores
            spreads = attackers.quadratic(of_codes, self.truth[name], classes[name])
            found[f"quadratic{mark}"] = max(
                spreads, key=lambda one: figure(one, self.truth[name], classes[name]).select
            )
            found[f"network on decoded{mark}"] = attackers.network(
                veil.plain, decoded, truth, classes, args.reading
            )[0][name]
            if self.reader is not None:
                sizes = list(self.classes.values())
                said = attackers.read(self.reader, decoded, list(self.classes), sizes)
                found[f"raw reader on decoded{mark}"] = said[name]
        return found

    def serve(self, codes: dict[str, Codes]) -> dict[str, Any]:
        """How well each task is read from what is released."""
        truth = {task: self.truth[task] for task in self.tasks}
        classes = {task: self.classes[task] for task in self.tasks}
        members = attackers.perceptrons(
            lambda part, index: codes[part].draw(index), truth, classes, self.args.reading
        )
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
            figures["network on decoded"] = figure(on_decoded[task], truth[task], classes[task])
            by = max(figures, key=lambda key: figures[key].select)
            tasks[task] = {"by": by, **dataclasses.asdict(figures[by])}
        return tasks

    @torch.no_grad()
    def draw(self, veil: Any, codes: Codes, path: Path, faces: int = 12) -> None:
        """Raw faces, decoded with the guess, and with every value for everybody."""
        from PIL import Image

        some = torch.arange(faces, device=self.device)
        z = codes.draw(some)
        rows = [prepare(self.raw["test"][:faces])]
        rows.append(veil.draw(z, codes.u[:faces]))
        rows += [
            veil.draw(z, one.expand(faces, -1))
            for one in torch.eye(sum(veil.classes), device=self.device)
        ]
        grid = torch.cat([torch.cat(list(row), 2) for row in rows], 1)
        pixels = ((grid.clamp(-1, 1) + 1) * 127.5).byte().permute(1, 2, 0).cpu().numpy()
        Image.fromarray(pixels).save(path)


def work(number: int, args: argparse.Namespace, plan: list[dict[str, Any]], begin: float) -> None:
    """Every args.workers-th row of the plan, as long as there is time to start one."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // args.workers))
    bench = Bench(args)
    raw = {} if args.quick else bench.raw_row()
    if raw and number == 0:
        write(args.out, {**raw, "at": time.time() - begin})
    for place in range(number, len(plan), args.workers):
        if time.time() - begin > args.seconds:
            return
        settings = dict(plan[place])
        name = settings.pop("name")
        picture = args.pictures and args.pictures / f"faces-{place}.png"
        try:
            for row in bench.rows(name, settings, picture):
                write(args.out, {**row, "at": time.time() - begin})
        except Exception as error:  # one row that fails must not cost the others
            row = {"name": name, "settings": settings, "failed": f"{type(error).__name__}: {error}"}
            write(args.out, {**row, "at": time.time() - begin})


def write(path: Path, row: dict[str, Any]) -> None:
    """One line more, and a word about it."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    shown = {key: round(one["value"], 1) for key, one in row.get("tasks", {}).items()}
    attack = {key: round(one["value"], 1) for key, one in row.get("attackers", {}).items()}
    pool = round((row.get("pooled") or {}).get("value", 0), 1)
    console.print(
        f"[{row['at']:.0f} s] {row['name']}: {row.get('failed', '')} worst"
        f" {row.get('worst', {}).get('value', 0):.1f} pooled {pool}"
        f" mean {row.get('mean') or 0:.1f} nats {row.get('nats') or 0:.0f}"
        f" lost {row.get('lost') or 0:.3f} learning {row.get('learning') or 0:.0f} s\n   {attack}\n"
        f"   {shown}",
        highlight=False,
        markup=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default="portraits:600")
    parser.add_argument("--private", default="beard")
    parser.add_argument("--tasks", default="smiling")
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reading", type=int, default=25, help="epochs of every reader")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after these")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pace", default="auto")
    parser.add_argument(
        "--quick", action="store_true", help="one release, no reader of raw records"
    )
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    begin = time.time()
    plan = (
        [{**SMALL_SETTINGS, **one} for one in SMALL]
        if args.small
        else json.loads(args.plan.read_text())
    )
    privet.load(args.data, progress=False)  # packed once, before the workers read it
    if args.workers == 1:
        work(0, args, plan, begin)
    else:
        processes.start_processes(
            work, (args, plan, begin), nprocs=args.workers, start_method="spawn"
        )


if __name__ == "__main__":
    main()
