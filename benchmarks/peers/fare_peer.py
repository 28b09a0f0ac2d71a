"""FARE (Jovanovic, Balunovic, Dimitrov and Vechev, ICML 2023) by its authors' tree and proof.

    python benchmarks/peers/fare_peer.py FOLDER CHECKOUT TARGET WHOSE

CHECKOUT: github.com/eth-sri/fare, commit 89cb1b6. Their patched tree (CHECKOUT/sktree) has to be in
the environment's scikit-learn; they patch commit fd60379 of it, here it was compiled into 1.2.0
(`fare_build.py`). Their bound is src/tree/alphabeta_adversary.py.

The tree learns from *fit*. Its settings are those of the authors' sweep over leaves, records a leaf
and the weight of the private attribute (shell/ACSIncome-CA-2014/run_tree.sh), of which the one that
serves the task best (log likelihood of *select*) is taken among those that WHOSE allows at TARGET,
a balanced accuracy:

    own    their bound, predicted with *fit* for the cells and *select* for the mean; then proved
           with *attack* for the cells and *test* for the mean, so that nothing is proved with
           people it was chosen on
    ours   what the best adversary of the cells gets among *attack* and *select*, plus SLACK for the
           people of *test*; their bound is then proved with halves of *test*

As in their code a tenth of delta goes to the prior (from *fit*) and a tenth to the mean; delta is
0.01, not 0.05. What is released is the number of the leaf, one-hot, which tells as much as the
leaf's median that they release. Categories are learned as such where table.parquet is there; one
that nobody of *fit* has becomes the most frequent.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parent))
from files import Array, Raw

DELTA, SLACK = 0.01, 0.013
# Leaves, records a leaf, weights of the private attribute: both lines of the authors' sweep.
SWEEP = [
    *itertools.product((2, 4, 6, 8, 10, 20, 50, 100, 200), (100,),
                       (0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999)),
    *itertools.product(range(2, 11), (1000,),
                       (0.8, 0.85, 0.9, 0.95, 0.96, 0.97, 0.98, 0.99, 0.999)),
]  # fmt: skip


@dataclass
class Fitted:
    """A tree of the sweep: the leaf of everybody, and how well it does."""

    leaf: Array
    size: int
    setting: str
    private: float
    task: float


def table(folder: Path, raw: Raw) -> tuple[Array, Array]:
    """Columns as FARE takes them (categories as numbers from 1), and which are categories."""
    path = folder / "table.parquet"
    if not path.exists():
        return raw.x.astype(np.float32), np.zeros(0, dtype=np.int32)
    frame = pd.read_parquet(path).drop(columns=["private", "task", "split"])
    words = [i for i, name in enumerate(frame) if frame[name].dtype == object]
    for i in words:
        known = frame.iloc[raw.fit, i].value_counts()  # the tree wants to have seen every value
        column = frame.iloc[:, i].where(frame.iloc[:, i].isin(known.index), known.index[0])
        frame.isetitem(i, pd.Categorical(column).codes + 1)
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return np.column_stack(columns).astype(np.float32), np.array(words, dtype=np.int32)


def own_bound(proof: Any, raw: Raw, fitted: Fitted, cells: Array, mean: Array) -> float:
    """Their bound: prior from *fit*, cells and mean from the people of these masks."""
    people = {"train": raw.fit, "val": cells, "test": mean}
    given: dict[str, Array] = {}
    for name, mask in people.items():
        given[f"z_{name}"] = fitted.leaf[mask].reshape(-1, 1)
        given[f"c_{name}"] = raw.private[mask].reshape(-1, 1)
        given[f"y_{name}"] = raw.task[mask].reshape(-1, 1)
    adversary = proof(
        fitted.size, DELTA, eps_glob=DELTA / 10, eps_ab=DELTA / 10, method="cp", verbose=False
    )
    with contextlib.redirect_stdout(io.StringIO()):
        return (1 + float(np.ravel(adversary.ub_demographic_parity(given)[0])[0])) / 2


def best_adversary(leaf: Array, private: Array, size: int) -> float:
    """Balanced accuracy of the best guess from the leaf, among these people."""
    shares = [np.bincount(leaf[private == value], minlength=size) for value in (0, 1)]
    return float(np.maximum(*(share / share.sum() for share in shares)).sum() / 2)


def sweep(x: Array, words: Array, raw: Raw) -> list[Fitted]:
    some, judged = [], ~raw.fit
    for leaves, fewest, gamma in SWEEP:
        tree = DecisionTreeClassifier(
            criterion="fair_gini_dp",
            max_leaf_nodes=leaves,
            random_state=43,
            min_samples_leaf=fewest,
        )
        tree.fit(
            x[raw.fit],
            raw.task[raw.fit].reshape(-1, 1),
            raw.private[raw.fit].reshape(-1, 1),
            cat_pos=words,
            alpha=gamma,
        )
        leaf = np.unique(tree.apply(x), return_inverse=True)[1]
        size = int(leaf.max()) + 1
        ones = np.bincount(leaf[raw.fit], raw.task[raw.fit], size)
        rates = (ones + 1) / (np.bincount(leaf[raw.fit], minlength=size) + 2)
        right = np.where(raw.task == 1, rates[leaf], 1 - rates[leaf])[raw.select]
        tuned = judged & (raw.columns["split"] != "test")
        some.append(
            Fitted(
                leaf,
                size,
                f"{leaves} leaves of {fewest}, gamma {gamma}",
                best_adversary(leaf[tuned], raw.private[tuned], size),
                float(np.log(right).mean()),
            )
        )
    return some


def main(folder: Path, checkout: str, target: float, whose: str) -> None:
    sys.path.insert(0, str(Path(checkout) / "code/src/tree"))
    from alphabeta_adversary import AlphaBetaAdversary  # type: ignore[import-not-found]

    raw = Raw(folder)
    x, words = table(folder, raw)
    split = raw.columns["split"]
    test, attack = split == "test", split == "attack"
    halves = np.random.default_rng(0).permutation(len(test)) % 2 == 0
    allowed, spared = [], []
    for fitted in sweep(x, words, raw):
        if whose == "own":
            try:
                bound = own_bound(AlphaBetaAdversary, raw, fitted, raw.fit, raw.select)
            except AssertionError:  # a leaf that nobody of *select* is in
                continue
        else:
            bound = fitted.private + SLACK
        (allowed if bound <= target else spared).append((fitted.task, -bound, fitted))
    best = max(allowed, key=lambda row: row[:2]) if allowed else max(spared, key=lambda r: r[1])
    cells, mean = (attack, test) if whose == "own" else (test & halves, test & ~halves)
    bound = own_bound(AlphaBetaAdversary, raw, best[2], cells, mean)
    said = {"own": bound, "setting": best[2].setting, "symbols": best[2].size, "met": bool(allowed)}
    raw.release(np.eye(best[2].size, dtype=np.float32)[best[2].leaf[raw.judged]], **said)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4])
