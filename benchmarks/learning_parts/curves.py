"""Does our step learn what the published one does? Curves of both from the same weights on the same
batches."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from reference_tiprdc import Reference
from torch import Tensor

from learning_parts.bench import Bench, release_memory
from learning_parts.watched import Watched
from learning_parts.works import tiprdc
from privet.data.dataset import Array
from privet.train.game import Game, Run

SMOOTH = 20
"""Steps that a loss curve is averaged over before two are compared."""
Curves = dict[int, dict[str, Array]]
"""By seed and by loss."""


def curve_of(rows: Sequence[Mapping[str, Tensor]]) -> dict[str, Array]:
    names = ("adversary loss", "information J", "extractor loss")
    return {name: torch.stack([row[name] for row in rows]).float().cpu().numpy() for name in names}


def smoothed(curve: Array) -> Array:
    wide = min(SMOOTH, max(1, len(curve) // 3))
    return np.convolve(curve, np.ones(wide) / wide, "valid")


def curves(
    bench: Bench,
    letter: str,
    size: tuple[int, int],
    batch: int,
    seeds: Sequence[int],
    paces: Sequence[str],
) -> dict[str, Any]:
    """Both from the same weights on the same batches: is ours as near the reference as the
    reference's seeds are to each other?"""
    steps = 6 if bench.small else 300
    theirs: Curves = {}
    ours: dict[str, Curves] = {pace: {} for pace in paces}
    for seed in seeds:
        work = tiprdc(bench, size, batch, seed, n=max(40 * batch, 256))
        reference = Reference(*size, width=bench.width)
        reference.take(**work.modules)
        reference.to(bench.device)
        game = Game(work.modules, [replace(work.phase, epochs=99)], work.feed, batch, seed, "")
        batches = game._batches(0, work.phase, 0, steps)
        theirs[seed] = curve_of([reference.step(b.x.contiguous(), b.labels["u"]) for b in batches])
        for pace in paces:
            again = tiprdc(bench, size, batch, seed, n=max(40 * batch, 256))
            own = Watched(again.modules, [], again.feed, batch, seed, "")
            own.phases = [
                replace(again.phase, epochs=steps / own.rounds(replace(again.phase, epochs=1)))
            ]
            own.keeps, own.curve = True, []  # type: ignore[attr-defined]
            own.play(Run(device=bench.device.type, progress=False, pace=pace))
            ours[pace][seed] = curve_of(own.curve)  # type: ignore[attr-defined]
            ends = {
                name: round(float(value[-SMOOTH:].mean()), 4)
                for name, value in ours[pace][seed].items()
            }
            bench.say(f"{letter}: seed {seed}, {pace}, means of the last steps: {ends}")
        ends = {
            name: round(float(value[-SMOOTH:].mean()), 4) for name, value in theirs[seed].items()
        }
        bench.say(f"{letter}: seed {seed}, reference, means of the last steps: {ends}")
        bench.found[letter] = compared(
            theirs, ours, {"size": list(size), "batch": batch, "steps": steps}
        )
        bench.write()
        release_memory(bench)
    for name in theirs[seeds[0]]:
        bench.say(f"{letter}: {name}: {bench.found[letter][name]}")
    return dict(bench.found[letter])


def compared(theirs: Curves, ours: Mapping[str, Curves], found: dict[str, Any]) -> dict[str, Any]:
    """How far ours lie from the reference of the same seed, and its seeds from each other: mean
    distance of the smoothed curves."""
    seeds = list(theirs)
    found = {**found, "seeds": seeds}
    for name in theirs[seeds[0]]:
        spread = [apart(theirs[a][name], theirs[b][name]) for a, b in combinations(seeds, 2)]
        row: dict[str, Any] = {"between_seeds_of_reference": [round(v, 5) for v in spread]}
        for pace, own in ours.items():
            near = [apart(own[seed][name], theirs[seed][name]) for seed in seeds]
            row[f"ours_{pace}_to_reference_same_seed"] = [round(v, 5) for v in near]
            row[f"within_{pace}"] = bool(statistics.mean(near) <= max(spread)) if spread else None
            row[f"between_seeds_of_{pace}"] = [
                round(apart(own[a][name], own[b][name]), 5) for a, b in combinations(seeds, 2)
            ]
        found[name] = row
    found["curves"] = {
        label: {
            str(seed): {name: thinned(curve) for name, curve in one.items()}
            for seed, one in by.items()
        }
        for label, by in {"reference": theirs, **ours}.items()
    }
    return found


def apart(a: Array, b: Array) -> float:
    return float(np.abs(smoothed(a) - smoothed(b)).mean())


def thinned(curve: Array) -> list[float]:
    return [round(float(v), 4) for v in smoothed(curve)[::10]]


def part_d(bench: Bench) -> dict[str, Any]:
    return curves(bench, "d", bench.square, 8 if bench.small else 32, (0, 1, 2), ("recorded",))


def part_D(bench: Bench) -> dict[str, Any]:
    return curves(bench, "D", bench.large, 8 if bench.small else 32, (0, 1, 2, 3), ("compiled",))
