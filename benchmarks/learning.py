"""Learning on a GPU: TIPRDC through the product's own loop, against its published step in the same
run.

    PYTHONPATH=src python3 benchmarks/learning.py --out learning.json [--data celeba64.parquet] [--parts a,b,c] [--small]

    a  rate of a large bf16 product: what a share below is a share of
    A  the audit's own learners on raw pictures: seconds plain and recorded, and how well they do
    b  the published step (reference_tiprdc.py), pictures per second
    c  ours at every pace, pictures per second, ratio to b, share of a
    d  300 steps of both from the same weights on the same batches of 32, against the spread of the reference's seeds (64 x 64)
    D  the same at the large size: long, not run unless named
    e  a whole run as `privet learn tiprdc` with the rounds that 14,000 pictures have, in seconds, and how they divide (clock.py)
    E  the same with the rounds of the pictures there are
    f  hedge and gap: moves per second as they were, plain and recorded
    F  the same, compiled as well: long, not run unless named
    g  a step with records from the packed set on disk, and resident ones, over a step with one batch again and again
    h  where the time of a compiled step goes, by kernel
    k  does a recorded step compute what a plain one does: weights after the same rounds, and after an interruption
    K  every method as `learn` runs it, on pictures: seconds plain and recorded, and whether they give the same release
    i  every convolution of the step alone: share of a forwards, and backwards to input and to weights
    s  the step at 64 x 64: seconds until it is recorded and milliseconds from there on, by how many kernels are tried;
       on two streams, and whether that learns the same
    m  c with torch.compile's max-autotune: long, not run unless named

Every line is printed when it is known, and --out is written again after every part. A part that
fails says why, and the others go on. `--small` is for trying the script out on a CPU; its figures
mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from learning_parts.attackers import part_A
from learning_parts.bench import Bench, machine, release_memory
from learning_parts.curves import part_D, part_d
from learning_parts.kernels import part_h, part_i, part_s
from learning_parts.rates import part_a, part_b, part_c, part_m
from learning_parts.recorded import part_F, part_f, part_g, part_K, part_k
from learning_parts.runs import part_E, part_e

DEFAULT = "k,d,f,g,e"

PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "a": part_a,
    "A": part_A,
    "b": part_b,
    "c": part_c,
    "d": part_d,
    "D": part_D,
    "e": part_e,
    "E": part_E,
    "f": part_f,
    "F": part_F,
    "g": part_g,
    "h": part_h,
    "i": part_i,
    "k": part_k,
    "K": part_K,
    "m": part_m,
    "s": part_s,
}


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--data", help="celeba64.parquet; drawn portraits without it")
    words.add_argument("--parts", default=DEFAULT)
    words.add_argument("--small", action="store_true")
    words.add_argument(
        "--seconds", type=float, default=540.0, help="after these, no further part is begun"
    )
    words.add_argument("--keep", type=Path, help="where the release of e or E is to stay")
    given = words.parse_args()
    unknown = set(given.parts.split(",")) - set(PARTS)
    if unknown:
        words.error(f"no part {min(unknown)}; there are {','.join(PARTS)}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(given.out, given.data, given.small, device, given.seconds, given.keep)
    bench.found["machine"] = machine(bench)
    for letter in given.parts.split(","):
        if time.monotonic() - bench.began > bench.seconds:
            bench.say(f"{letter}: left out, {bench.seconds:.0f} s are over")
            continue
        start = time.monotonic()
        try:
            bench.found[letter] = PARTS[letter](bench)
        except Exception as error:
            bench.found[letter] = {
                "failed": repr(error),
                "where": traceback.format_exc().splitlines()[-12:],
            }
            bench.say(f"{letter}: FAILED {error!r}\n" + "\n".join(bench.found[letter]["where"]))
        bench.found.setdefault("took", {})[letter] = round(time.monotonic() - start, 1)
        bench.write()
        release_memory(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
