"""Eight perceptrons trained together, against one of them alone in the same run. The goal: at most
3 times its time.

    OMP_NUM_THREADS=2 python benchmarks/stack.py

20,000 vectors of 128 numbers and a label; the rates and decays that `MLP` tries are the eight, with
its batch and dropout. One and eight take turns, and a ratio is one turn's time of eight over that
of one, drawing, judging on *select* and all. The exit code is 1 where the ratio of the first shape
is over the goal; of wider and deeper ones it is higher, because there the time goes into products,
of which eight take eight times as many.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from typing import Any

import numpy as np
import torch
from loading import spread
from memory import machine

from privet.adversaries.mlp import MLP
from privet.adversaries.stacked_mlps import Member, Target, train_stack
from privet.core.progress import console

GOAL = 3.0


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--records", type=int, default=20_000)
    words.add_argument("--length", type=int, default=128)
    words.add_argument("--epochs", type=int, default=5)
    words.add_argument("--repetitions", type=int, default=3)
    words.add_argument("--batch", type=int, default=MLP.batch)
    words.add_argument(
        "--shapes", nargs="*", default=None, help="like 256x256; without it, those of the adversary"
    )
    given = words.parse_args()
    shapes = (
        MLP.shapes
        if given.shapes is None
        else [tuple(int(size) for size in word.split("x")) for word in given.shapes]
    )
    before = machine()
    x, y = vectors(given.records, given.length, 0), vectors(given.records // 4, given.length, 1)
    result: dict[str, Any] = {}
    for hidden in shapes:
        turns = [
            turn(x, y, hidden, given.epochs, given.batch) for _ in range(given.repetitions + 1)
        ][1:]  # the first warms up
        name = "x".join(map(str, hidden)) or "linear"
        result[name] = {
            "eight_over_one": spread([eight / one for one, eight in turns]),
            "seconds_of_one": spread([one for one, _ in turns]),
            "seconds_of_eight": spread([eight for _, eight in turns]),
        }
        console.print(
            f"{name}: eight cost {result[name]['eight_over_one']['median']} times one",
            highlight=False,
        )
    told = {
        "goal": GOAL,
        "batch": given.batch,
        "epochs": given.epochs,
        "threads": torch.get_num_threads(),
        **result,
        "machine": before,
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return int(next(iter(result.values()))["eight_over_one"]["median"] > GOAL)


def vectors(n: int, length: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Noise, and a label that two of its coordinates give away together."""
    x = torch.randn(n, length, generator=torch.Generator().manual_seed(seed))
    return x, np.asarray(x[:, 0] * x[:, 1] > 0).astype(np.int64)


def turn(
    seen: tuple[torch.Tensor, np.ndarray],
    select: tuple[torch.Tensor, np.ndarray],
    hidden: tuple[int, ...],
    epochs: int,
    batch: int,
) -> tuple[float, float]:
    """Seconds of one and of eight."""
    eight = [Member(0, rate, decay, 0) for rate, decay in product(MLP.rates, MLP.decays)]
    took = []
    for members in (eight[:1], eight):
        start = time.monotonic()
        train_stack(
            lambda: seen[0],
            [Target(seen[1], 2, select[1])],
            select[0],
            members,
            hidden=hidden,
            dropout=MLP.dropouts[0],
            epochs=epochs,
            least=0,
            batch=batch,
        )
        took.append(time.monotonic() - start)
    return took[0], took[1]


if __name__ == "__main__":
    sys.exit(main())
