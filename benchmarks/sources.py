"""Sources at their own operating point, and attackers who come afterwards: a row for each game.

    python benchmarks/sources.py --folder DIR --plan benchmarks/sources_parts/plan.json \\
        --out out/rows.jsonl --releases releases --workers 5 --seconds 480
    python benchmarks/sources.py --small --out out/rows.jsonl    # portraits, on a CPU, to try it
    python benchmarks/sources.py --record rows.jsonl --machine WORDS --commit C    # results files
    python benchmarks/sources.py --record later.jsonl --add --commit C    # more seeds and games

A plan is a list of questions: a `kind` (gap, collaborative, tiprdc), `data` (a file in DIR, or a
source), `size` of its pictures, `private`, `tasks`, settings that `rows` have in common, and `rows`,
each a `name`, its settings, and `rank`: lower ones are played first. `seeds` lists seeds, 0 unless
said otherwise.

Of each row: what the game's own adversary reads on *select*; how far pictures were moved, as mean
absolute error on [0, 1], and PSNR; what new attackers read, who learn from *attack*, are chosen on
*select* and counted on *test*: a residual network, the plain network of TIPRDC's Table 1, and three
perceptrons; the tasks; and of features how well pictures are rebuilt from them. A release is saved
under --releases before it is attacked, and a later call with the same --out and --releases plays
only what is missing.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as processes
from sources_parts import collaborative_rows, gap_rows, readers, record, tiprdc_rows
from sources_parts.learned import Bench, Draws, Learned, distortion
from sources_parts.pictures import SHOWN, sheet

import privet
from privet.core.progress import console
from privet.data.schema_file import Layout
from privet.nets.device import pick

HERE = Path(__file__).parent
LEARN = {
    "gap": gap_rows.learn,
    "collaborative": collaborative_rows.learn,
    "tiprdc": tiprdc_rows.learn,
}
# Keys of a row that are no settings.
ABOUT = ("name", "seeds", "rank", "only")
Plan = list[dict[str, Any]]
# Question, name, settings.
Job = tuple[int, str, dict[str, Any]]


def jobs(plan: Plan) -> list[Job]:
    """Every game of the plan: by rank, then by seed."""
    some = [
        (row.get("rank", 5), seed, number, row["name"], {**question.get("common", {}), **row})
        for number, question in enumerate(plan)
        for row in question["rows"]
        for seed in row.get("seeds", [0])
    ]
    some.sort(key=lambda one: one[:2])
    return [
        (number, name, {k: v for k, v in row.items() if k not in ABOUT} | {"seed": seed})
        for _, seed, number, name, row in some
    ]


def slug(plan: Plan, job: Job) -> str:
    number, name, settings = job
    words = f"{plan[number]['kind']} {name} {settings['seed']}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", words)


class Worker:
    """Plays rows in a process of its own, with the data of each question read once."""

    def __init__(self, args: argparse.Namespace, plan: Plan, begin: float) -> None:
        self.args, self.plan, self.begin = args, plan, begin
        self.device = pick(args.device)
        self._benches: dict[int, Bench] = {}

    def row(self, job: Job) -> None:
        number, name, settings = job
        question = self.plan[number]
        about = {
            "key": slug(self.plan, job),
            "kind": question["kind"],
            "name": name,
            "settings": settings,
            "question": {k: v for k, v in question.items() if k not in ("rows", "common")},
        }
        try:
            row = self._figures(job)
        except Exception as error:  # one row that fails must not cost the others
            row = {"failed": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        self._write({**about, **row})

    def _figures(self, job: Job) -> dict[str, Any]:
        number, _, settings = job
        question, begin = self.plan[number], time.monotonic()
        if number not in self._benches:
            data = source(self.args, question)
            folder = self.args.releases
            tasks = question["tasks"]
            self._benches[number] = Bench.of(data, question["private"], tasks, folder, self.device)
        bench = self._benches[number]
        is_raw = settings.get("form") == "raw"
        learned = raw(bench) if is_raw else self._learned(bench, job)
        learning = time.monotonic() - begin
        figures: dict[str, Any] = {"in_game": learned.in_game, "facts": learned.facts}
        # The same attackers for every row, whatever the game left in the generator.
        torch.manual_seed(settings["seed"])
        if learned.record:
            figures |= distortion(Draws(learned, bench.raw), bench.raw)
            with torch.no_grad():
                shown = learned.release(bench.raw["test"][:SHOWN]).float()
            drawn = (shown.clamp(-1, 1) * 127.5 + 127.5).round().byte()
        else:
            width = settings.get("width", 0.5)
            made = readers.rebuilt(bench, learned, self.args.reading, width)
            with torch.no_grad():
                drawn = made.pop("net")(learned.release(bench.raw["test"][:SHOWN]))
            drawn = drawn.float().round().clamp(0, 255).byte()
            figures |= made
        np.save(self.args.releases / f"{slug(self.plan, job)}.npy", drawn.cpu().numpy())
        figures |= readers.asked(bench, learned, self.args.reading, self.args.reader)
        seconds = time.monotonic() - begin
        n = {part: len(bench.raw[part]) for part in bench.raw}
        return {**figures, "n": n, "learning": learning, "seconds": seconds}

    def _learned(self, bench: Bench, job: Job) -> Learned:
        """Learned and saved, or as it was saved by an earlier call."""
        number, _, settings = job
        learn = LEARN[self.plan[number]["kind"]]
        path = self.args.releases / f"{slug(self.plan, job)}.pt"
        if path.exists():
            saved = torch.load(path, self.device, weights_only=True)
            return learn(bench, {**settings, "saved": saved})
        learned = learn(bench, settings)
        torch.save({"module": learned.module.state_dict(), "facts": learned.facts}, path)
        return learned

    def _write(self, row: dict[str, Any]) -> None:
        """One line more, the pictures again, and a word about it."""
        row["at"] = time.time() - self.begin
        with (self.args.releases / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            draw_all(self.args, self.plan)
        console.print(
            f"[{row['at']:.0f} s] {row['key']}: {row.get('failed', '')}",
            "in-game",
            *(f"{100 * v['balanced']:.1f}" for v in row.get("in_game", {}).values()),
            "after",
            *(f"{v['worst']['value']:.1f}" for v in row.get("private", {}).values()),
            "task",
            *(f"{v['value']:.1f}" for v in row.get("tasks", {}).values()),
            f"moved {row.get('distortion') or 0:.3f} rebuilt {row.get('rebuilt') or 0:.1f} dB"
            f" learning {row.get('learning') or 0:.0f} s of {row.get('seconds') or 0:.0f} s",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def raw(bench: Bench) -> Learned:
    """Nothing hidden."""
    shape = tuple(bench.raw["test"].shape[1:])
    nothing = torch.nn.Identity()
    return Learned(nothing, lambda x: x.float() / 127.5 - 1, shape, True, False)


def draw_all(args: argparse.Namespace, plan: Plan) -> None:
    """A PNG for each kind, beside --out, of the rows that are done, in the order of the plan."""
    for kind in dict.fromkeys(question["kind"] for question in plan):
        lines = []
        for job in jobs(plan):
            path = args.releases / f"{slug(plan, job)}.npy"
            if plan[job[0]]["kind"] == kind and path.exists() and job[2]["seed"] == 0:
                lines.append((f"{job[1]}", np.load(path)))
        if lines:
            sheet(args.out.parent / f"{kind}.png", lines)


def source(args: argparse.Namespace, question: dict[str, Any]) -> privet.data.dataset.Dataset:
    """A file of the folder, or a source that needs none."""
    name, size = question["data"], question.get("size")
    where = args.folder / name if name.endswith(".parquet") else name
    layout = Layout(size=(size, size)) if size else None
    return privet.load(where, layout, progress=False)


def work(
    _: int, args: argparse.Namespace, plan: Plan, begin: float, todo: list[Job], at: Any
) -> None:
    """The next row that nobody has begun, as long as there is time to start one."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // args.workers))
    worker = Worker(args, plan, begin)
    while time.time() - begin < args.seconds:
        with at.get_lock():
            place, at.value = at.value, at.value + 1
        if place >= len(todo):
            return
        worker.row(todo[place])


def small(plan: Plan) -> Plan:
    """The same plan on drawn portraits, with tiny networks and a few rounds: to see that it
    runs."""
    tiny = {
        "gap": {"width": 0.06, "pre_d": 0.2, "pre_g": 0.2, "rounds": 2, "itr_d": 1, "itr_g": 1},
        "collaborative": {"width": 0.2, "service": 0.05, "lessons": 0.5, "epochs": 0.5},
        "tiprdc": {"width": 0.05, "warmup": 0.2, "epochs": 0.5},
    }
    known = {"Smiling": "smiling", "Male": "beard"}
    some = []
    for question in plan:
        # Of rows that differ in numbers alone, one.
        rows = {_without_numbers(row): row for row in reversed(question["rows"])}
        about = {
            "data": "portraits:60",
            "size": None,
            "private": [known[name] for name in question["private"]],
            "tasks": ["glasses"],
            "rows": [
                {**row, **tiny[question["kind"]], "batch": 32, "seeds": row.get("seeds", [0])[:1]}
                for row in rows.values()
            ],
        }
        some.append({**question, **about})
    return some


def _without_numbers(row: dict[str, Any]) -> str:
    plain = {k: v for k, v in row.items() if k not in ABOUT}
    return str({k: v if isinstance(v, str | bool) else "" for k, v in sorted(plain.items())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--plan", type=Path, default=HERE / "sources_parts/plan.json")
    parser.add_argument("--out", type=Path, default=Path("out/sources/rows.jsonl"))
    parser.add_argument("--record", type=Path, nargs="+", help="finished rows to make results of")
    parser.add_argument("--add", action="store_true", help="to the results that are there")
    parser.add_argument("--note", nargs="+", default=[], help="sentences for the results")
    parser.add_argument("--machine", help="of finished rows, such as: one NVIDIA H200")
    parser.add_argument("--commit", help="that finished rows were made with")
    parser.add_argument("--releases", type=Path, default=Path("out/sources-releases"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reading", type=int, default=24, help="epochs of every reader")
    parser.add_argument("--reader", type=float, default=0.5, help="width of every reader")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after these")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--small", action="store_true", help="the plan on a few drawn portraits")
    args = parser.parse_args()
    if args.record:
        about = (HERE / "results", args.machine, args.commit)
        record.record(args.record, *about, add=args.add, notes=args.note)
        return
    begin = time.time()
    plan = json.loads(args.plan.read_text())
    if args.small:
        plan, args.reading, args.reader = small(plan), 1, 0.05
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.releases.mkdir(parents=True, exist_ok=True)
    done = set()
    if args.out.exists():
        rows = [json.loads(line) for line in args.out.read_text().splitlines()]
        done = {row["key"] for row in rows if "failed" not in row}
    todo = [job for job in jobs(plan) if slug(plan, job) not in done]
    for name, size in {(q["data"], q.get("size")) for q in plan}:
        source(args, {"data": name, "size": size})  # packed once, before the workers read it
    at = processes.get_context("spawn").Value("i", 0)
    if args.workers == 1:
        work(0, args, plan, begin, todo, at)
    else:
        processes.start_processes(
            work, (args, plan, begin, todo, at), nprocs=args.workers, start_method="spawn"
        )


if __name__ == "__main__":
    main()
