"""Gender hidden in sentence vectors that stay vectors: the strong battery on three splits, with
settings chosen without looking at *test*.

    python benchmarks/hidden_strong.py choose --data blogs_use512.parquet --out DIR
    python benchmarks/hidden_strong.py attack --data blogs_use512.parquet --out DIR --split 0
    python benchmarks/hidden_strong.py record --out DIR --machine "two cores" --commit HASH

Authors are dealt into five folds of 240. Split k has fold k as *test*, so no author is in two of
the test parts; the others are *fit* (480), *attack* (360) and *select* (120).

`choose` runs every candidate of every split against a few quick attackers. They learn from *attack*
and are counted on *select*; *test* is not read. The rule was written before anything was run: of
the candidates that lose at most 1.5 points of age and keep recall@10 at 0.75 or more on *select*,
the one with the lowest sum of gender from one post and gender from ten.

`attack` runs the strong battery on what was chosen and on fixed rows beside it: the battery on
released vectors, linear and kernel machines that learned from raw vectors, and for ten posts of an
author the pooled attackers of an audit. The best on *select* is counted on *test*.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hidden_parts import maps, record
from hidden_parts.maps import Array
from hidden_vectors import LINEAR, POSTS, READERS, Bench, Release, figure, learned, silent, then

import privet
from privet.adversaries.adversary import Adversary
from privet.adversaries.kernel import Kernel
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.trees import Forest
from privet.adversaries.vector_records import VectorRecords
from privet.auditing.attribute_attack import AttackResult, AttackTarget, run_adversary, strongest
from privet.auditing.batteries import BATTERIES
from privet.auditing.pooled import read_pooled
from privet.core.progress import console
from privet.evidence.retrieval import nearest, recall_at, retrieval

SPLITS = 3
FOLDS = 5
FIT, ATTACK, SELECT, TEST = range(4)
# What may be lost of age, in points, and what must stay of the ranking.
LOST_AGE, LEAST_RECALL = 1.5, 0.75

QUICK: tuple[Adversary, ...] = (LINEAR, Quadratic(), Neighbours(), Forest(trees=100))
ON_RAW: tuple[Adversary, ...] = (LINEAR, Kernel(features=1024, ridges=(1e-3, 1e-1)))


def veil(**settings: Any) -> Release:
    size = {"dims": 256, "width": 0.5, "lessons": 8, "epochs": 20, "batch": 128}
    small = {"restart": 200, "memory": 512}
    return learned(privet.Veil(output="record", **size, **small, **settings))


def by_author(count: int, ridge: float) -> Release:
    return lambda fold, seed: maps.directions(fold, count, ridge, by_author=True)


def noisy(release: Release, deviation: float) -> Release:
    return then(release, lambda fold, seed: maps.noise(fold, deviation, seed))


CANDIDATES: dict[str, Release] = {
    "LEACE": learned(privet.LEACE()),
    **{f"erase, {n} directions": learned(privet.Erase(directions=n)) for n in (0, 1, 2, 3, 5, 8)},
    **{
        f"{count} directions of authors, ridge {ridge:g}": by_author(count, ridge)
        for count in (4, 8, 16, 32, 64)
        for ridge in (0.01, 0.1, 1.0)
    },
    **{
        f"{count} directions of authors, then erase, {n} directions": then(
            by_author(count, 0.1), learned(privet.Erase(directions=n))
        )
        for count in (8, 16)
        for n in (0, 2)
    },
    "LEACE, then noise 0.01": noisy(learned(privet.LEACE()), 0.01),
    "16 directions of authors, ridge 0.1, then noise 0.01": noisy(by_author(16, 0.1), 0.01),
    "veil, beta 0.001": veil(beta=1e-3),
    "veil, beta 0.001, confuse 10, match 30, guessed": veil(
        beta=1e-3, confuse=10.0, match=30.0, guessed=True
    ),
}
RAW: Release = lambda fold, seed: fold.x  # noqa: E731
# Attacked in every split, whatever was chosen.
FIXED = ("raw vectors", "LEACE", "veil, beta 0.001")
CHOSEN, CLOSEST = "chosen on *select*", "chosen on *select*, age and ranking not asked about"


class Split(Bench):
    """The records with one fold as *test*."""

    def __init__(self, path: Path, split: int) -> None:
        super().__init__(path, split)
        self.part = deal_folds(self.author, self.u, split)

    def released(self, name: str) -> Array:
        return {"raw vectors": RAW, **CANDIDATES}[name](self.fold(), self.seed)

    def without_test(self, target: AttackTarget) -> AttackTarget:
        """The same with *select* in the place of *test*."""
        return target._replace(parts={**target.parts, "test": target.parts["select"]})

    def candidate(self, name: str) -> dict[str, Any]:
        """What quick attackers and readers of age say of *select*."""
        begin, z = time.process_time(), self.released(name)
        gender = self.without_test(self.target(z, "gender", self.u, "private"))
        one = [run_adversary(each, gender, self.seed, silent) for each in QUICK]
        ten = pooled(gender, one, self.seed)
        age = self.without_test(self.target(z, "age", self.age, "utility"))
        rows = self.part == SELECT
        places = np.arange(rows.sum())
        raw, found = (nearest(x[rows], x[rows], 10, places) for x in (self.x, z))
        return {
            "release": name,
            "split": self.seed,
            "one": 100 * max(each.finding.select for each in one),
            "ten": 100 * ten.finding.select,
            "age": 100 * run_adversary(LINEAR, age, self.seed, silent).finding.select,
            "recall": float(recall_at(found, raw).mean()),
            "seconds": time.process_time() - begin,
        }

    def strong(self, row: str, name: str) -> dict[str, Any]:
        """What the strong battery says of *test*."""
        begin, z = time.process_time(), self.released(name)
        gender = self.target(z, "gender", self.u, "private")
        attackers = BATTERIES["strong"].against(gender.parts["attack"].view, gender.attribute)
        one = [run_adversary(each, gender, self.seed, silent) for each in attackers]
        one += [
            run_adversary(each, self.learned_on_raw(gender), self.seed, silent) for each in ON_RAW
        ]
        ten = pooled(gender, one, self.seed)
        age = self.target(z, "age", self.age, "utility")
        read = [run_adversary(each, age, self.seed, silent) for each in READERS]
        test = self.part == TEST
        best = strongest([each.finding for each in one])
        return {
            "release": row,
            "setting": name,
            "seed": self.seed,
            "one": {**figure(one[best]), "on_raw": best >= len(attackers)},
            "attackers": [figure(each) for each in one],
            "ten": figure(ten),
            "age": figure(read[strongest([each.finding for each in read])]),
            "search": {
                key: each.value
                for key, each in retrieval(self.x[test], z[test], self.author[test]).items()
            },
            "seconds": time.process_time() - begin,
        }

    def learned_on_raw(self, target: AttackTarget) -> AttackTarget:
        """Attackers learn from raw vectors, and are shown released ones as if they were raw."""
        raw = self.target(self.x, "gender", self.u, "private").parts["attack"]
        assert isinstance(raw, VectorRecords)
        parts: dict[str, Any] = {"attack": raw}
        for part in ("select", "test"):
            seen = target.parts[part]
            assert isinstance(seen, VectorRecords)
            labels = {"gender": target.labels(part)}
            parts[part] = VectorRecords(seen._draw, labels, seen.people, torch.device("cpu"), raw)
        return target._replace(parts=parts)

    def ranking_alone(self, share: float) -> dict[str, Any]:
        """Gender from nothing but which posts of *attack* are nearest, where so large a share of
        the nearest is right and the others are drawn from the next three times as many."""
        random, scores = np.random.default_rng(self.seed), {}
        for part in (SELECT, TEST):
            queries, among = self.x[self.part == part], self.x[self.part == ATTACK]
            truth, votes = self.u[self.part == part], self.u[self.part == ATTACK]
            order = np.argsort(-queries @ among.T, axis=1)
            for k in (10, 50, 150, 400):
                right = random.random((len(queries), k)) < share
                others = random.integers(k, 4 * k, (len(queries), k))
                rows = np.take_along_axis(order, np.where(right, np.arange(k), others), 1)
                scores[part, k] = votes[rows].mean(1), truth
        best = {"select": 0.0, "value": 0.0}
        for k in (10, 50, 150, 400):
            shown, truth = scores[SELECT, k]
            for cut in np.unique(np.quantile(shown, np.linspace(0.05, 0.95, 19))):
                on_select = 100 * balanced(shown >= cut, truth)
                if on_select > best["select"]:
                    shown_test, truth_test = scores[TEST, k]
                    value = 100 * balanced(shown_test >= cut, truth_test)
                    best = {"select": on_select, "value": value, "k": k}
        return {"release": "ranking", "seed": self.seed, "share": share, "one": best}


def balanced(guess: Array, truth: Array) -> float:
    return float(np.mean([(guess == truth)[truth == value].mean() for value in (0, 1)]))


def pooled(target: AttackTarget, one: list[AttackResult], seed: int) -> AttackResult:
    ten = read_pooled(target, one, POSTS, seed)
    assert not isinstance(ten, str), ten
    return ten


def deal_folds(author: Array, u: Array, split: int) -> Array:
    """The part of every record. Folds are the same for every split, values dealt alike."""
    random, first = np.random.default_rng(2026), np.unique(author, return_index=True)[1]
    part = np.zeros(len(first), dtype=np.int64)
    for value in (0, 1):
        folds = np.array_split(random.permutation(np.flatnonzero(u[first] == value)), FOLDS)
        part[folds[split]] = TEST
        rest = np.concatenate([some for fold, some in enumerate(folds) if fold != split])
        rest = np.random.default_rng([2026, split, value]).permutation(rest)
        cuts = (np.array([0.5, 0.875]) * len(rest)).round().astype(int)
        for code, some in enumerate(np.split(rest, cuts)):
            part[some] = code
    return part[author]


def choice(rows: Iterable[dict[str, Any]], raw: dict[str, Any], conditions: bool) -> str:
    """The candidate that hides most of those that keep enough, by *select* alone."""
    enough = [
        row
        for row in rows
        if not conditions or (row["age"] >= raw["age"] - LOST_AGE and row["recall"] >= LEAST_RECALL)
    ]
    return str(min(enough, key=lambda row: row["one"] + row["ten"])["release"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("do", choices=("choose", "attack", "record"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the rows")
    parser.add_argument("--split", type=int, action="append", help="only these")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--machine", default="", help="kind of machine, for the results file")
    parser.add_argument("--commit", help="commit that was run, for the results file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.do == "record":
        chosen, attacked = (read(args.out / f"{name}.jsonl") for name in ("choose", "attack"))
        record.write_strong(chosen, attacked, args.results, args.machine, args.commit)
        return
    for split in args.split or range(SPLITS):
        (choose if args.do == "choose" else attack)(args, Split(args.data, split))


def choose(args: argparse.Namespace, split: Split) -> None:
    path = args.out / "choose.jsonl"
    have = {(row["release"], row["split"]) for row in read(path)}
    for name in ("raw vectors", *CANDIDATES):
        if (name, split.seed) not in have:
            append(path, split.candidate(name))


def attack(args: argparse.Namespace, split: Split) -> None:
    chosen = [row for row in read(args.out / "choose.jsonl") if row["split"] == split.seed]
    raw = next(row for row in chosen if row["release"] == "raw vectors")
    tried = [row for row in chosen if row is not raw]
    assert {row["release"] for row in tried} == set(CANDIDATES), "run `choose` to its end first"
    plan = {name: name for name in FIXED}
    plan |= {CHOSEN: choice(tried, raw, True), CLOSEST: choice(tried, raw, False)}
    path = args.out / "attack.jsonl"
    have = {(row["release"], row["seed"]) for row in read(path)}
    for row, name in plan.items():
        if (row, split.seed) not in have:
            append(path, split.strong(row, name))
    if ("ranking", split.seed) not in have:
        append(path, split.ranking_alone(LEAST_RECALL))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    console.print(json.dumps({k: v for k, v in row.items() if k != "attackers"}), highlight=False)


if __name__ == "__main__":
    main()
