"""A whole run, as a user runs it, and how its seconds divide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from learning_parts.bench import Bench
from learning_parts.works import loaded, run_data


def part_e(bench: Bench) -> dict[str, Any]:
    return whole_run(bench, "e", 1.0 if bench.small else 14_000 / fit_pictures(bench))


def part_E(bench: Bench) -> dict[str, Any]:
    return whole_run(bench, "E", 1.0)


def fit_pictures(bench: Bench) -> int:
    return len(loaded(run_data(bench)).part("fit"))


def whole_run(bench: Bench, letter: str, many: float) -> dict[str, Any]:
    """As a user runs it, in a process of its own: `many` times the published 5 and 20 epochs."""
    data, fit = run_data(bench), fit_pictures(bench)
    private = "Male" if "Male" in loaded(data).attributes else "beard"
    warm, epochs = (1.0, 1.0) if bench.small else (5.0 * many, 20.0 * many)
    with tempfile.TemporaryDirectory(prefix="privet-learning-") as folder:
        clock = Path(folder) / "clock.json"
        words = [
            sys.executable,
            str(Path(__file__).parents[1] / "clock.py"),
            str(clock),
            "learn",
            "tiprdc",
            "--data",
            data,
        ]
        words += [
            "--private",
            private,
            "--out",
            f"{folder}/release",
            "--set",
            f"width={bench.width}",
            "--set",
            "batch=64",
        ]
        words += ["--set", f"warmup={warm:.4f}", "--set", f"epochs={epochs:.4f}"]
        start = time.monotonic()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path[1:]),
            "BEGAN": str(time.time()),
        }
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        took = time.monotonic() - start
        if done.returncode:
            raise RuntimeError(done.stderr[-1500:])
        card = json.loads((Path(folder) / "release" / "card.json").read_text())
        told = json.loads(clock.read_text())
        if bench.keep:
            shutil.copytree(f"{folder}/release", bench.keep, dirs_exist_ok=True)
    rounds = sum(told["rounds"].values())
    parts = {**told["s"], "leaving": round(time.time() - told["ended"], 2)}
    bench.say(
        f"{letter}: privet learn tiprdc ({fit} fit pictures, {rounds} rounds): {took:.1f} s;"
        f" {card.get('in_game')}"
    )
    bench.say(
        f"{letter}: of these, "
        + "; ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
    )
    return {
        "data": Path(data).name,
        "fit_pictures": fit,
        "s": round(took, 1),
        "rounds": told["rounds"],
        "parts_s": parts,
        "in_game": card.get("in_game"),
        "last": card["history"][-1],
        "said": done.stderr[-400:],
    }
