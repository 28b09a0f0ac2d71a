"""Runs `privet` with the words given and writes where its seconds went: `python benchmarks/clock.py
FILE.json learn tiprdc ...`

For benchmarks/learning.py. Every piece is watched from outside, on the host's clock; pieces do not
overlap, but for what the thread that writes checkpoints does meanwhile. BEGAN in the environment
says when the process was started (seconds since 1970).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

FIRST = 10
"""Rounds of a phase that count as its beginning: kernels are chosen in them, and the step is
recorded."""
spent: dict[str, float] = {}
inner: list[float] = [0.0]
"""Seconds that watched pieces within the one under way took themselves."""


def add(label: str, seconds: float) -> None:
    spent[label] = spent.get(label, 0.0) + seconds


def watch(owner: Any, name: str, label: Callable[..., str], aside: bool = False) -> None:
    """Count the seconds of a function under a label, less those of watched ones inside it; `aside`:
    it runs in another thread."""
    real = getattr(owner, name)

    @wraps(real)
    def timed(*given: Any, **named: Any) -> Any:
        start = time.perf_counter()
        if not aside:
            inner.append(0.0)
        try:
            return real(*given, **named)
        finally:
            took = time.perf_counter() - start
            if aside:
                add(label(*given), took)
            else:
                add(label(*given), took - inner.pop())
                inner[-1] += took

    setattr(owner, name, timed)


def main() -> None:
    began = float(os.environ.get("BEGAN", time.time()))
    import torch

    import privet.cli.main
    from privet import commands as work
    from privet.methods import tiprdc
    from privet.methods.method import Method, Problem
    from privet.release import graph, release
    from privet.train import checkpoint, game

    add("starting and importing", time.time() - began)
    start = time.perf_counter()
    watch(work, "load", lambda *_: "reading")
    watch(Method, "problem", lambda *_: "schema, and the device's first call")
    watch(Problem, "feed", lambda *_: "records to the device")
    watch(tiprdc.TIPRDCNetworks, "__init__", lambda *_: "making the networks")
    watch(tiprdc.TIPRDCNetworks, "judge", lambda *_: "judging")
    watch(game, "place", lambda *_: "networks to the device")
    watch(game.Game, "_play_phase", lambda self, number, *_: f"{self.phases[number].name}, rounds")
    watch(
        game.Game, "_optimiser", lambda *_: "optimisers (torch imports its compiler for the first)"
    )
    watch(checkpoint.CheckpointWriter, "save", lambda *_: "checkpoints, copying")
    watch(checkpoint.CheckpointWriter, "__exit__", lambda *_: "checkpoints, waiting for the last")
    watch(checkpoint, "_write", lambda *_: "(meanwhile, in a thread: checkpoints)", aside=True)
    watch(graph, "trace", lambda *_: "ONNX export")
    watch(graph, "check", lambda *_: "ONNX check")
    watch(release.Release, "save", lambda *_: "saving")

    real, seen = game.Game._round, {}  # type: tuple[Any, dict[str, int]]

    def counted(self: Any, phase: Any, *given: Any) -> Any:
        done = seen[phase.name] = seen.get(phase.name, 0) + 1
        start = time.perf_counter()
        moved = real(self, phase, *given)
        if done <= FIRST:
            if done == FIRST and torch.cuda.is_available():
                torch.cuda.synchronize()
            took = time.perf_counter() - start
            add(f"{phase.name}, first {FIRST} rounds", took)
            inner[-1] += took
        return moved

    game.Game._round = counted  # type: ignore[method-assign,assignment]
    path, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    try:
        privet.cli.main()
    finally:
        add("the rest", time.perf_counter() - start - inner[0])
        path.write_text(
            json.dumps(
                {
                    "s": {k: round(v, 2) for k, v in spent.items()},
                    "rounds": seen,
                    "ended": time.time(),
                }
            )
        )


if __name__ == "__main__":
    main()
