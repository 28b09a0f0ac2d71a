"""Gender hidden in sentence vectors that stay vectors: what one post, an author's ten posts, age and
a search tell, for every map that was tried.

    python benchmarks/hidden_vectors.py --data blogs_use512.parquet --out rows.jsonl
    python benchmarks/hidden_vectors.py --data blogs_use512.parquet --out rows.jsonl \\
        --record benchmarks/results                         # the results files, from what is there

By linear and quadratic attackers alone, which win most often; hidden_strong.py has the strong
battery. Authors are dealt into *fit* (480), *attack* (360), *select* (120) and *test* (240), anew
for every seed. Attackers learn from *attack*, are chosen on *select* and counted on *test*; so are
readers of age (23 and older), which no release is told. Noise is drawn once per record. Settings of
the maps were found on authors outside the test part of seed 0. Rows that are in --out already are
not run again; none is begun after --seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import torch
from hidden_parts import maps, record
from hidden_parts.maps import Array, Fold

import privet
from privet.adversaries.adversary import Adversary
from privet.adversaries.kernel import Kernel
from privet.adversaries.linear import Logistic
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.vector_records import VectorRecords
from privet.auditing.attribute_attack import AttackResult, AttackTarget, run_adversary, strongest
from privet.auditing.pooled import read_pooled
from privet.core.progress import console
from privet.data.dataset import PARTS, Attribute
from privet.data.in_memory import as_dataset
from privet.evidence.retrieval import nearest, recall_at
from privet.methods.method import Method

OLDER = 23
SHARES = (0.4, 0.3, 0.1, 0.2)
POSTS = 10
FIT_AUTHORS = (60, 120, 240)

LINEAR = Logistic(strengths=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0))
ATTACKERS: tuple[Adversary, ...] = (LINEAR, Quadratic())
READERS: tuple[Adversary, ...] = (LINEAR, Kernel(features=1024, widths=(1.0,), ridges=(1e-1,)))

Release = Callable[[Fold, int], Array]


def learned(method: Method) -> Release:
    """The vectors that a release of a method of Privet gives, in their own units."""

    def release(fold: Fold, seed: int) -> Array:
        names = [f"v{i}" for i in range(fold.x.shape[1])]
        frame = pd.DataFrame(fold.x.astype(np.float32), columns=names)
        spare = np.flatnonzero(~fold.fit & (fold.part == 0))  # left out of a smaller *fit*
        split = np.array(PARTS)[fold.part]
        split[spare] = "attack"
        frame = frame.assign(gender=fold.u.astype(str), author=fold.author, split=split)
        data = as_dataset(frame)
        fitted = method.fit(data, "gender", run=privet.Run(progress=False, device="cpu"))
        columns = fitted.schema.columns  # type: ignore[attr-defined]
        assert [column.name for column in columns] == names
        mean, std = (np.array([getattr(c, key) for c in columns]) for key in ("mean", "std"))
        given = fitted(fitted.schema.inputs(data), seed=seed)
        return np.asarray(mean + std * given)

    return release


def then(first: Release, second: Release) -> Release:
    return lambda fold, seed: second(fold._replace(x=first(fold, seed)), seed)


RELEASES: dict[str, Release] = {
    "raw vectors": lambda fold, seed: fold.x,
    "LEACE": learned(privet.LEACE()),
    "erase": learned(privet.Erase()),
    "erase, 3 directions": learned(privet.Erase(directions=3)),
    "erase, 10 directions": learned(privet.Erase(directions=10)),
    "erase, 30 directions": learned(privet.Erase(directions=30)),
    "nullspace projection, 4 mean directions": lambda f, s: maps.directions(f, 4, 10.0),
    "nullspace projection, 16 ridge directions": lambda f, s: maps.directions(f, 16, 0.1),
    "the same on means of authors": lambda f, s: maps.directions(f, 16, 0.1, by_author=True),
    "LEACE, mean of 20 halves of the authors": lambda f, s: maps.bagged(f, 20, s),
    "LEACE, 0.7 of the movement": lambda f, s: maps.bagged(f, 1, s, 0.7),
    "quadratic reader's level set, then erase": then(
        lambda f, s: maps.level_set(f, 0.4), learned(privet.Erase())
    ),
    "20 directions bent, then erase": then(
        lambda f, s: maps.clipped(f, 20, 1.0), learned(privet.Erase())
    ),
    "Gaussian noise 0.02": lambda f, s: maps.noise(f, 0.02, s),
    "erase, then Gaussian noise 0.01": then(
        learned(privet.Erase()), lambda f, s: maps.noise(f, 0.01, s)
    ),
    "one noise for all posts of an author, 0.02": lambda f, s: maps.author_noise(f, 0.02, s),
    "metric DP, epsilon 1,000": learned(privet.Metric(epsilon=1000.0)),
    "metric DP, epsilon 200": learned(privet.Metric(epsilon=200.0)),
    "class means moved together, value told": lambda f, s: maps.means_told(f),
}


class Bench:
    """The records, their labels, and the parts of one seed."""

    def __init__(self, path: Path, seed: int) -> None:
        table = parquet.read_table(path)
        vectors = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        self.x = vectors.astype(np.float64).reshape(len(table), -1)
        gender = np.array(table["gender"].to_pylist())
        self.u = (gender == "male").astype(np.int64)
        self.age = (table["age"].to_numpy() >= OLDER).astype(np.int64)
        _, self.author = np.unique(table["author"].to_numpy(), return_inverse=True)
        self.seed, self.part = seed, deal(self.author, self.u, seed)

    def fold(self, authors: int | None = None) -> Fold:
        """What a release may learn from; of fewer authors where a number is given."""
        fit = self.part == 0
        if authors is not None:
            people = np.random.default_rng(self.seed).permutation(np.unique(self.author[fit]))
            fit &= np.isin(self.author, people[:authors])
        return Fold(self.x, self.u, self.author, self.part, fit)

    def row(self, name: str, authors: int | None) -> dict[str, Any]:
        begin = time.monotonic()
        z = RELEASES[name](self.fold(authors), self.seed)
        gender = self.target(z, "gender", self.u, "private")
        one = [run_adversary(each, gender, self.seed, silent) for each in ATTACKERS]
        ten = read_pooled(gender, one, POSTS, self.seed)
        assert not isinstance(ten, str), ten
        age = self.target(z, "age", self.age, "utility")
        read = run_adversary(LINEAR, age, self.seed, silent)
        return {
            "release": name,
            "seed": self.seed,
            "authors": authors,
            "one": figure(one[strongest([each.finding for each in one])]),
            "attackers": {each.finding.adversary: figure(each) for each in one},
            "ten": figure(ten),
            "age": figure(read),
            "search": {"recall_at_10": self.recall(z)},
            "seconds": time.monotonic() - begin,
        }

    def recall(self, z: Array) -> float:
        """recall@10 among the test records, queries released too."""
        test = self.part == 3
        places = np.arange(test.sum())
        raw, found = (nearest(rows[test], rows[test], 10, places) for rows in (self.x, z))
        return float(recall_at(found, raw).mean())

    def target(self, z: Array, name: str, labels: Array, role: Any) -> AttackTarget:
        parts: dict[str, VectorRecords] = {}
        for code, part in enumerate(PARTS):
            if part != "fit":
                rows = self.part == code
                vectors = torch.as_tensor(z[rows], dtype=torch.float32)
                parts[part] = VectorRecords(
                    lambda vectors=vectors: vectors,
                    {name: labels[rows]},
                    self.author[rows],
                    torch.device("cpu"),
                    parts.get("attack"),
                )
        attribute = Attribute(name, "binary", ("0", "1"))
        return AttackTarget(dict(parts), attribute, role, "released")


def deal(author: Array, u: Array, seed: int) -> Array:
    """The part of every record: SHARES of the authors, of each value alike."""
    random, first = np.random.default_rng(seed), np.unique(author, return_index=True)[1]
    part = np.zeros(len(first), dtype=np.int64)
    for value in (0, 1):
        people = random.permutation(np.flatnonzero(u[first] == value))
        cuts = (np.cumsum(SHARES)[:-1] * len(people)).round().astype(int)
        for code, some in enumerate(np.split(people, cuts)):
            part[some] = code
    return part[author]


def silent(share: float) -> None:
    """No progress within a row."""


def figure(result: AttackResult) -> dict[str, Any]:
    """In per cent."""
    score = result.finding.score
    return {
        "value": 100 * score.value,
        "low": 100 * score.low,
        "high": 100 * score.high,
        "select": 100 * result.finding.select,
        "by": result.finding.adversary,
    }


def plan(seeds: int) -> list[tuple[str, int, int | None]]:
    """Release, seed, authors of *fit* (None: all)."""
    rows: list[tuple[str, int, int | None]] = []
    for seed in range(seeds):
        rows += [(name, seed, None) for name in RELEASES]
        rows += [(name, seed, count) for name in ("LEACE", "erase") for count in FIT_AUTHORS]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a release's name")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row after these")
    parser.add_argument("--record", type=Path, help="write results files into this folder")
    parser.add_argument("--machine", help="kind of machine, for the results files")
    parser.add_argument("--commit", help="commit that was run, for the results files")
    args = parser.parse_args()
    begin = time.monotonic()
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = [json.loads(line) for line in lines]
    if args.record:
        record.write(done, args.record, args.machine, args.commit)
        return
    have = {(row["release"], row["seed"], row["authors"]) for row in done}
    torch.set_num_threads(1)
    benches: dict[int, Bench] = {}
    for name, seed, authors in plan(args.seeds):
        if (name, seed, authors) in have or args.only not in name:
            continue
        if time.monotonic() - begin > args.seconds:
            break
        if seed not in benches:
            benches[seed] = Bench(args.data, seed)
        row = benches[seed].row(name, authors)
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        console.print(
            f"{name} {seed} {authors or ''}: one {row['one']['value']:.1f} by {row['one']['by']}, "
            f"ten {row['ten']['value']:.1f}, age {row['age']['value']:.1f}, recall "
            f"{row['search']['recall_at_10']:.2f}, {row['seconds']:.0f} s",
            highlight=False,
        )


if __name__ == "__main__":
    main()
