"""Veil on rows, windows and sentence vectors, and rivals on the same records and attackers.

    python benchmarks/veil_rows.py --folder DIR --out rows.jsonl --workers 14 --seconds 250
    python benchmarks/veil_rows.py --small --out rows.jsonl          # drawn rows on a CPU, to try it

DIR holds adult, motionsense and blogs_use512 (parquet). No task is told to anybody. Attackers learn
from *attack*, are chosen on *select* and counted on *test*: perceptrons, quadratic discriminants,
boosted trees, forests and logistic regressions on what is released, with fresh noise; trees and
perceptrons on decoded records; those taught on raw records and shown decoded ones; the same on the
mean of eight releases; and the log-odds of several records of a person. Rows of the plan come in
their order, and none is begun after --seconds. With --quick, to search: trees and quadratic
discriminants alone, on one release, on the mean of eight, and on what is decoded.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as processes
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from veil_parts import attackers, rivals
from veil_parts.attackers import PARTS, Codes, Scores, figure, pooled

import privet
from privet.core.progress import console
from privet.methods.donors import Donors
from privet.methods.leace import LEACE
from privet.methods.veil import Veil
from privet.nets.convolutions import prepare
from privet.nets.device import pick

# What leaves of the records of a part: numbers (n, d), fresh for every call; the mean of some.
Draw = Callable[[str, torch.Tensor | None, int], torch.Tensor]

SETS: dict[str, dict[str, Any]] = {
    "adult": {"private": "sex", "tasks": ["income"], "without": ["income"], "together": 0},
    "blogs_use512": {
        "private": "gender",
        "tasks": ["age"],
        "without": ["age", "topic", "text"],
        "together": 10,
    },
    "motionsense": {
        "private": "gender",
        "tasks": ["activity"],
        "without": [],
        "together": 0,
    },
}
# From so many numbers on, models of scikit-learn see one release of a record, and not two.
WIDE = 256
# Of blogs: who is that old is in the upper class.
OLDER = 23

ROWS = {"epochs": 50, "dims": 16, "lessons": 10, "restart": 200}
VECTORS = {"epochs": 150, "dims": 64, "lessons": 15, "restart": 200}
WINDOWS = {"epochs": 80, "dims": 32, "lessons": 15, "restart": 200, "width": 0.5}


def plan() -> list[dict[str, Any]]:
    """All rows, those that matter most first."""
    rows: list[dict[str, Any]] = []
    quiet = {"aware": False, "confuse": 0.0, "match": 0.0}
    for seed in range(3):
        for strength, beta in ((1, 0.02), (1, 0.05), (1, 0.1), (1, 0.2), (3, 0.05), (3, 0.1)):
            rows.append({"set": "adult", "by": "veil", "seed": seed, **ROWS, "beta": beta,
                         "confuse": float(strength), "match": float(strength)})  # fmt: skip
        for beta in (0.002, 0.01, 0.03):
            rows.append({"set": "blogs_use512", "by": "veil", "seed": seed, **VECTORS, "beta": beta,
                         "confuse": 1.0, "match": 1.0})  # fmt: skip
        for beta in (3e-4, 3e-3, 1e-2):
            rows.append({"set": "motionsense", "by": "veil", "seed": seed, **WINDOWS, "beta": beta,
                         "confuse": 1.0, "match": 1.0})  # fmt: skip
        for name in ("adult", "blogs_use512"):
            for by in ("flow", "oblivious", "kernel"):
                rows.append({"set": name, "by": by, "seed": seed})
        if seed == 0:
            for name in SETS:
                rows.append({"set": name, "by": "raw", "seed": 0})
            for name in ("adult", "blogs_use512"):
                rows += [{"set": name, "by": by, "seed": 0} for by in ("leace", "inlp")]
                rows.append({"set": name, "by": "donors", "target": 0.6, "seed": 0})
            for name, common, beta in (
                ("adult", ROWS, 0.02),
                ("blogs_use512", VECTORS, 0.002),
                ("motionsense", WINDOWS, 3e-4),
            ):
                rows.append({"set": name, "by": "veil", "seed": 0, **common, **quiet, "beta": beta})
    return rows


class Bench:
    """The records of one set on the device, with the labels asked about."""

    def __init__(self, args: argparse.Namespace, name: str) -> None:
        self.args, self.name, self.device = args, name, pick(args.device)
        about = SETS[name]
        source = args.folder / f"{name}.parquet"
        self.data = privet.load(source, progress=False)
        self.private, self.tasks, self.without = (
            about[key] for key in ("private", "tasks", "without")
        )
        self.together = about["together"]
        self.views = {part: self.data.part(part) for part in ("fit", *PARTS)}
        schema = Veil().problem(self.data, self.private, without=self.without).schema
        self.schema = schema
        self.raw = {
            part: torch.as_tensor(schema.inputs(view)[:], device=self.device)
            for part, view in self.views.items()
        }
        self.truth = {n: self.labels(n) for n in (self.private, *self.tasks)}
        self.classes = {
            n: int(max(int(column.max()) for column in parts.values())) + 1
            for n, parts in self.truth.items()
        }

    def labels(self, name: str) -> dict[str, torch.Tensor]:
        columns = {part: view.labels[name] for part, view in self.views.items()}
        if self.name == "blogs_use512" and name == "age":
            columns = {part: (column >= OLDER).astype(np.int64) for part, column in columns.items()}
        return {p: torch.as_tensor(np.asarray(c), device=self.device) for p, c in columns.items()}

    def flat(self, part: str) -> torch.Tensor:
        return prepare(self.raw[part]).flatten(1).float()

    def row(self, spec: dict[str, Any]) -> dict[str, Any]:
        """One line of the results."""
        begin = time.monotonic()
        torch.manual_seed(spec["seed"])
        draw, decoded, about = self.release(spec)
        learned = time.monotonic() - begin
        random = spec["by"] in ("veil", "donors")
        found = self.attack(draw, decoded, 8 if random and spec["by"] == "veil" else 1)
        truth, classes = self.truth[self.private], self.classes[self.private]
        figures = {key: figure(one, truth, classes) for key, one in found.items()}
        worst = max(figures, key=lambda key: figures[key].select)
        people = self.views["test"].people
        pools = {}
        if self.together:
            pools = {key: pooled(one, truth, people, self.together) for key, one in found.items()}
        tasks = self.serve(draw, decoded)
        return {
            **spec,
            **about,
            "attackers": {key: dataclasses.asdict(one) for key, one in figures.items()},
            "worst": {"by": worst, **dataclasses.asdict(figures[worst])},
            "highest": max(one.value for one in figures.values()),
            "pooled": max((p for p in pools.values() if p), key=lambda p: p["value"], default=None),
            "tasks": tasks,
            "learning": learned,
            "reading": time.monotonic() - begin - learned,
        }

    def release(self, spec: dict[str, Any]) -> tuple[Draw, Draw | None, dict[str, Any]]:
        """What leaves, what is decoded of it, and what there is to say about it."""
        by, seed = spec["by"], spec["seed"]
        run = privet.Run(progress=False, device=str(self.device), pace=self.args.pace)
        if by == "veil":
            settings = {k: v for k, v in spec.items() if k not in ("set", "by")}
            release = Veil(**settings).fit(self.data, self.private, without=self.without, run=run)
            veil = release.to(self.device).module
            inputs = {part: release.schema.inputs(self.views[part])[:] for part in PARTS}
            codes = {
                part: Codes(veil, torch.as_tensor(x, device=self.device))
                for part, x in inputs.items()
            }
            about = {
                "nats": float(codes["test"].nats.mean()),
                "guess": release.card["guess"][self.private]["balanced"],
                "lost": release.card["lost"]["share"],
            }

            def decoded(part: str, index: torch.Tensor | None, releases: int) -> torch.Tensor:
                return codes[part].pictures(index, releases).flatten(1)

            return lambda part, index, k: codes[part].draw(index, k), decoded, about
        if by in ("donors", "leace"):
            method = Donors(target=spec["target"], seed=seed) if by == "donors" else LEACE()
            release = method.fit(self.data, self.private, without=self.without,
                                 run=dataclasses.replace(run, device="cpu"))  # fmt: skip
            release.to(self.device)
            about = {k: release.card[k] for k in ("chosen", "lost") if k in release.card}

            def draw(part: str, index: torch.Tensor | None, k: int) -> torch.Tensor:
                x = self.raw[part] if index is None else self.raw[part][index]
                with torch.no_grad():
                    return release.forward(x).flatten(1).float()

            return draw, None, about
        fit, u = self.flat("fit"), self.truth[self.private]["fit"]
        made: dict[str, Callable[[], rivals.Erasure]] = {
            "raw": lambda: lambda rows: rows,
            "inlp": lambda: rivals.inlp(fit, u),
            "kernel": lambda: rivals.kernel(fit, u, seed=seed),
            "flow": lambda: rivals.flow(fit, u, dims=64 if fit.shape[1] > 256 else 32, seed=seed),
            "oblivious": lambda: rivals.oblivious(fit, u, seed=seed),
        }
        erase = made[by]()
        with torch.no_grad():
            fixed = {part: erase(self.flat(part)).float() for part in PARTS}
        return lambda part, index, k: fixed[part] if index is None else fixed[part][index], None, {}

    def attack(self, draw: Draw, decoded: Draw | None, averaged: int) -> dict[str, Scores]:
        """The scores of every attacker of the private attribute, by name."""
        found = self.readers(draw, 1, "", quick=self.args.quick)
        if averaged > 1:
            found |= self.readers(draw, averaged, ", eight releases", quick=True)
        if decoded is not None:
            found |= self.readers(decoded, 1, " on decoded", quick=True)
            found |= {} if self.args.quick else self.raw_readers(decoded)
        return found

    def readers(self, draw: Draw, k: int, mark: str, quick: bool = False) -> dict[str, Scores]:
        name, seed = self.private, 0
        truth, classes = {name: self.truth[name]}, {name: self.classes[name]}

        def of(part: str, index: torch.Tensor | None) -> torch.Tensor:
            return draw(part, index, k)

        found = {}
        if not self.args.quick:
            members = attackers.perceptrons(of, truth, classes, self.args.reading)[name]
            for number, scores in enumerate(members):
                found[f"perceptron {number + 1}{mark}"] = scores
        found[f"quadratic{mark}"] = max(
            attackers.quadratic(of, truth[name], classes[name]),
            key=lambda one: figure(one, truth[name], classes[name]).select,
        )
        found[f"trees{mark}"] = self.fitted(trees(seed), draw, name, k)
        if not quick:
            found[f"forest{mark}"] = self.fitted(forest(seed), draw, name, k)
            found[f"logistic{mark}"] = self.fitted(logistic(), draw, name, k)
        return found

    def fitted(self, model: Any, draw: Draw, name: str, k: int = 1, shown: Draw | None = None,
               draws: int = 2) -> Scores:  # fmt: skip
        """A model of scikit-learn that learns from *attack*; it may be shown other records."""
        draws = 1 if draw("attack", None, k).shape[1] > WIDE else draws
        seen = torch.cat([draw("attack", None, k) for _ in range(draws)]).cpu().numpy()
        truth = self.truth[name]["attack"].repeat(draws).cpu().numpy()
        model.fit(seen[truth >= 0], truth[truth >= 0])
        said = []
        for part in ("select", "test"):
            z = (shown or draw)(part, None, k).cpu().numpy()
            odds = np.full((len(z), self.classes[name]), 1e-6)
            odds[:, model.classes_] = model.predict_proba(z)
            said.append(torch.as_tensor(np.log(odds + 1e-6), device=self.device).float())
        return Scores(*said)

    def raw_readers(self, decoded: Draw) -> dict[str, Scores]:
        """Those who learned on raw records and are shown decoded ones."""

        def raw(part: str, index: torch.Tensor | None, k: int) -> torch.Tensor:
            rows = self.flat(part)
            return rows if index is None else rows[index]

        name = self.private
        shown = {"raw trees on decoded": trees(0), "raw logistic on decoded": logistic()}
        return {
            key: self.fitted(model, raw, name, shown=decoded, draws=1)
            for key, model in shown.items()
        }

    def serve(self, draw: Draw, decoded: Draw | None) -> dict[str, Any]:
        """How well each task is read from what is released."""
        truth = {task: self.truth[task] for task in self.tasks}
        classes = {task: self.classes[task] for task in self.tasks}
        members: dict[str, list[Scores]] = {task: [] for task in self.tasks}
        if not self.args.quick:
            members = attackers.perceptrons(
                lambda part, index: draw(part, index, 1), truth, classes, self.args.reading
            )
        tasks = {}
        for task in self.tasks:
            scores = {f"perceptron {n + 1}": one for n, one in enumerate(members[task])}
            scores["trees"] = self.fitted(trees(0, even=True), draw, task)
            if decoded is not None:
                scores["trees on decoded"] = self.fitted(trees(0, even=True), decoded, task)
            figures = {k: figure(one, truth[task], classes[task]) for k, one in scores.items()}
            by = max(figures, key=lambda key: figures[key].select)
            tasks[task] = {"by": by, **dataclasses.asdict(figures[by])}
        return tasks


def trees(seed: int, even: bool = True) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=120,
        learning_rate=0.08,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        class_weight="balanced" if even else None,
        random_state=seed,
    )


def forest(seed: int) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(
        150, min_samples_leaf=5, class_weight="balanced", n_jobs=1, random_state=seed
    )


def logistic() -> LogisticRegression:
    return LogisticRegression(C=0.1, max_iter=150, class_weight="balanced")


def work(number: int, args: argparse.Namespace, rows: Any, begin: float) -> None:
    """Rows of the plan, one after the other, as long as there is time to start one."""
    torch.set_num_threads(1)
    benches: dict[str, Bench] = {}
    while time.time() - begin < args.seconds:
        try:
            spec = rows.get(timeout=1)
        except Exception:  # the queue is empty
            return
        try:
            if spec["set"] not in benches:
                benches[spec["set"]] = Bench(args, spec["set"])
            row = benches[spec["set"]].row(spec)
        except Exception as error:  # one row that fails must not cost the others
            row = {**spec, "failed": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        row["at"] = time.time() - begin
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        task = {k: round(v["value"], 1) for k, v in row.get("tasks", {}).items()}
        worst = row.get("worst", {})
        console.print(
            f"[{row['at']:.0f}] {row['set']} {row['by']} beta {row.get('beta')} seed {row['seed']}:"
            f" worst {worst.get('value', 0):.1f} by {worst.get('by')} {task} nats"
            f" {row.get('nats', 0):.1f} learn {row.get('learning', 0):.0f} read"
            f" {row.get('reading', 0):.0f} {row.get('failed', '')}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--plan", type=Path, help="a JSON list of rows instead of the usual ones")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reading", type=int, default=25, help="epochs of every perceptron")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after these")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pace", default="recorded")
    parser.add_argument("--quick", action="store_true", help="trees and quadratics alone")
    parser.add_argument("--small", action="store_true", help="plain settings, for a try")
    args = parser.parse_args()
    begin = time.time()
    rows = plan() if args.plan is None else json.loads(args.plan.read_text())
    if args.small:
        rows = [{**row, "epochs": 1, "lessons": 1, "width": 0.1} if row["by"] == "veil" else row
                for row in rows if row["seed"] == 0]  # fmt: skip
    for name in dict.fromkeys(row["set"] for row in rows):  # packed once, before workers read it
        privet.load(args.folder / f"{name}.parquet", progress=False)
    os.environ["OMP_NUM_THREADS"] = "1"
    context = processes.get_context("spawn")
    queue = context.Queue()
    for row in rows:
        queue.put(row)
    if args.workers == 1:
        time.sleep(0.5)
        work(0, args, queue, begin)
    else:
        processes.start_processes(
            work, (args, queue, begin), nprocs=args.workers, start_method="spawn"
        )


if __name__ == "__main__":
    main()
