"""Do two versions of the source learn the same releases, bit for bit?

    python benchmarks/same_weights.py OLD/src NEW/src
    python benchmarks/same_weights.py OLD/src NEW/src --only hedge,gap

Each release is learned twice by `privet learn`, on built-in data, on one thread of one machine's
processor. Weights are compared tensor by tensor, cards key by key. Exit code 1 where one differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FACES = "--data portraits:240 --private beard"
TASK = f"{FACES} --utility smiling"
TOY = "--data toy:gaussian --private u"
QUICK = "--set width=0.05 --set epochs=1"
RELEASES = {
    "hedge": f"hedge {TASK} --set width=0.05 --set epochs=3 --set memory=64 --set batch=32",
    "hedge-no-task": f"hedge {FACES} {QUICK} --set dims=3",
    "codebook": f"codebook {FACES} {QUICK} --set symbols=4",
    "tiprdc": f"tiprdc {FACES} {QUICK} --set warmup=1",
    "tiprdc-noise": f"tiprdc {FACES} {QUICK} --set warmup=0 --set noise=0.5 --seed 3",
    "confusion": f"confusion {FACES} {QUICK} --set warmup=1 --set restart=2",
    "gap": f"gap {TOY} --set pre_d=1 --set pre_g=1 --set rounds=2 --set itr_d=2 --set itr_g=2",
    "collaborative": f"collaborative {TASK} {QUICK} --set service=0.1 --set lessons=1",
    "cloak": f"cloak {TASK} {QUICK} --set lessons=1 --set constants=1 --budget 0.5",
    "shredder": f"shredder {TASK} {QUICK} --set lessons=1 --set batch=32",
    "unoise": f"unoise {TASK} {QUICK} --set size=small --set lessons=1",
    "leace": f"leace {TOY}",
    "erase": f"erase {TOY}",
    "noisy": f"noisy {FACES} --budget 20",
    "dp": f"dp {TOY} --set per=record",
    "metric": f"metric {TOY}",
    "encoder": f"encoder {FACES} {QUICK}",
    "hybrid": f"hybrid {FACES} {QUICK} --set dims=3",
    "microaggregation": f"microaggregation {TOY} --set k=3",
}
"""What follows `privet learn`: every method at least once, as small as it goes."""
MAY_DIFFER = ("privet", "command", "sha256")
"""Keys of a card: the version and the words it was made with. Weights are compared by themselves, and
a graph may name the same nodes differently."""


def learn(src: Path, words: str, folder: Path) -> None:
    command = [sys.executable, "-m", "privet", "learn", *shlex.split(words), "--device", "cpu"]
    limits = {"PYTHONPATH": str(src), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, "--out", str(folder)],
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{src} cannot learn '{words}': {done.stderr.strip()[-800:]}")


def tensors(path: Path) -> dict[str, str]:
    """Type, shape and SHA-256 of every tensor of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, about in header.items():
        low, high = (start + offset for offset in about["data_offsets"])
        digest = hashlib.sha256(content[low:high]).hexdigest()
        found[name] = f"{about['dtype']} {about['shape']} {digest[:16]}"
    return found


def differences(old: Path, new: Path) -> list[str]:
    """Names of tensors and keys of the card that are not the same in two releases."""
    weights = [tensors(folder / "weights.safetensors") for folder in (old, new)]
    cards = [json.loads((folder / "card.json").read_text()) for folder in (old, new)]
    found = []
    for what, (a, b), left_out in (("tensor", weights, ()), ("card", cards, MAY_DIFFER)):
        keys = sorted({*a, *b} - set(left_out))
        found += [f"{what} {key}" for key in keys if a.get(key) != b.get(key)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default="", help="releases whose names start so, with commas")
    asked = parser.parse_args()
    wanted = tuple(word for word in asked.only.split(",") if word) or ("",)
    chosen = [name for name in RELEASES if name.startswith(wanted)]
    if not chosen:
        parser.error(f"no release starts with '{asked.only}': there are {', '.join(RELEASES)}")
    differing = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            for side in ("old", "new"):
                learn(getattr(asked, side).resolve(), RELEASES[name], Path(folder) / side)
            found = differences(Path(folder) / "old", Path(folder) / "new")
        differing += bool(found)
        sys.stdout.write(f"{name}: {'differs in ' + ', '.join(found) if found else 'the same'}\n")
        sys.stdout.flush()
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
