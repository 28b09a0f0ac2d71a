"""Recorded steps against plain ones: how fast they are, whether they compute the same, and how well
they are fed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from learning_parts.bench import Bench, release_memory
from learning_parts.watched import Watched, play
from learning_parts.works import Work, apart, gap_work, hedge_work, loaded, run_data, tiprdc
from privet.data.schema import Inputs
from privet.methods.registry import METHODS
from privet.train.feed import Batch, Feed, Positions
from privet.train.game import Game, Phase, Player, Run


class Same(Watched):
    """The same with one batch again and again, so that nothing is ever loaded."""

    def _batches(self, number: int, phase: Phase, start: int, rounds: int) -> Iterator[Batch]:
        batch = next(super()._batches(number, phase, start, rounds))
        while True:
            yield batch


class Before(Watched):
    """As it was: positions sent to the device with every batch, which waits for what is queued
    there."""

    def _draw(
        self, number: int, player: Player, move: int, orders: dict[str, tuple[int, Positions]]
    ) -> Any:
        return super()._draw(number, player, move, orders).here


class Stopped(Game):
    """Interrupted after so many rounds."""

    stop: int | None = None
    done = 0

    def _round(self, *given: Any) -> dict[str, Tensor]:
        if self.stop is not None and self.done >= self.stop:
            raise KeyboardInterrupt
        self.done += 1
        return super()._round(*given)


def part_f(bench: Bench) -> dict[str, Any]:
    return others(bench, "f", ("plain", "recorded"))


def part_F(bench: Bench) -> dict[str, Any]:
    return others(bench, "F", ("plain", "recorded", "compiled"))


def others(bench: Bench, letter: str, paces: Sequence[str]) -> dict[str, Any]:
    """Moves per second; gap makes six a round."""
    found: dict[str, Any] = {}
    for (name, make, moves), modality in product(
        (("hedge", hedge_work, 1), ("gap", gap_work, 6)), ("table", "image")
    ):
        warm, rounds = (2, 2) if bench.small else (10, 40) if moves == 1 else (4, 8)
        row = found[f"{name} {modality}"] = {}
        for label, kind, pace in (
            ("before", Before, "plain"),
            *((pace, Watched, pace) for pace in paces),
        ):
            began = time.monotonic()
            try:
                game = play(bench, make(bench, modality), pace, warm, rounds, kind)
                row[label] = {"moves_per_s": round(moves / game.each, 1)}  # type: ignore[attr-defined]
            except Exception as error:
                row[label] = {"failed": repr(error)}
            row[label]["took_s"] = round(time.monotonic() - began, 1)
            bench.say(f"{letter}: {name}, {modality}, {label}: {row[label]}")
            bench.found[letter] = found
            bench.write()
            release_memory(bench)
    return found


def part_k(bench: Bench) -> dict[str, Any]:
    """Largest difference of a weight, over the largest weight, after the same rounds; two plain
    games differ by rounding alone."""

    def after(make: Callable[[], Work], pace: str, stop: int | None = None) -> Tensor:
        work = make()
        with tempfile.TemporaryDirectory(prefix="privet-learning-") as folder:
            game = Stopped(work.modules, [], work.feed, work.batch, 0, "")
            game.phases = [
                replace(
                    work.phase,
                    epochs=(6 if bench.small else 24) / game.rounds(replace(work.phase, epochs=1)),
                )
            ]
            game.stop = stop
            run = Run(
                Path(folder),
                device=bench.device.type,
                progress=False,
                pace=pace,
                rounds_between=1 if stop else 10**9,
            )
            try:
                game.play(run)
            except KeyboardInterrupt:
                epochs = game.phases[0].epochs
                work = make()
                phases = [replace(work.phase, epochs=epochs)]
                Game(work.modules, phases, work.feed, work.batch, 0, "").play(
                    replace(run, resume=True)
                )
        return work.weights()

    found: dict[str, Any] = {}
    makers: dict[str, Callable[[], Work]] = {
        "hedge table": lambda: hedge_work(bench, "table"),
        "gap table": lambda: gap_work(bench, "table"),
        "hedge image": lambda: hedge_work(bench, "image"),
        "tiprdc image": lambda: tiprdc(
            bench, bench.square, bench.batches[0], n=10 * bench.batches[0]
        ),
    }
    for name, make in makers.items():
        plain = after(make, "plain")
        others = {
            "plain again": ("plain", None),
            "recorded": ("recorded", None),
            "recorded, interrupted": ("recorded", 3 if bench.small else 12),
        }
        found[name] = {label: apart(after(make, *how), plain) for label, how in others.items()}
        bench.found["k"] = found
        bench.say(
            f"k: {name}: "
            + ", ".join(f"{label} {value:.2e}" for label, value in found[name].items())
        )
        release_memory(bench)
    return found


SHORT: dict[str, dict[str, Any]] = {
    "tiprdc": {"warmup": 1, "epochs": 2},
    "confusion": {"warmup": 1, "epochs": 2},
    "encoder": {"epochs": 3},
    "hedge": {"epochs": 4},
    "codebook": {"epochs": 4},
    "gap": {"pre_d": 2, "pre_g": 2, "rounds": 4},
    "collaborative": {"lessons": 1, "epochs": 2, "stochastic": True},
    "cloak": {"lessons": 2, "epochs": 2, "constants": 2},
    "shredder": {"lessons": 2, "epochs": 2},
    "unoise": {"lessons": 1, "epochs": 1},
}
"""Of every method that plays games, settings with few rounds; sizes are its own."""


def part_K(bench: Bench) -> dict[str, Any]:
    """Every method as `learn` runs it, on pictures: seconds plain and recorded, and the largest
    difference of a weight of the release, over the largest weight. The first run also pays for
    waking the device, so it is made once before."""
    data = loaded(run_data(bench))
    private, task = ("Male", "Smiling") if "Male" in data.attributes else ("beard", "hat")

    def learned(name: str, pace: str) -> tuple[float, Tensor]:
        method = METHODS[name](**SHORT[name], **({"width": 0.1} if bench.small else {}))
        tasks = [] if method.tasks == "none" else [task]
        bench.wait()
        start = time.perf_counter()
        release = method.fit(
            data, [private], tasks, run=Run(device=bench.device.type, progress=False, pace=pace)
        )
        bench.wait()
        took = time.perf_counter() - start
        return took, torch.cat(
            [
                v.detach().float().flatten().cpu()
                for v in release.module.state_dict().values()
                if v.is_floating_point()
            ]
        )

    found: dict[str, Any] = {}
    learned("tiprdc", "plain")
    for name in SHORT:
        try:
            (plain_s, plain), (again_s, again), (recorded_s, recorded) = (
                learned(name, pace) for pace in ("plain", "plain", "recorded")
            )
            found[name] = {
                "plain_s": round(min(plain_s, again_s), 2),
                "recorded_s": round(recorded_s, 2),
                "plain_again": apart(again, plain),
                "recorded": apart(recorded, plain),
            }
        except Exception as error:
            found[name] = {"failed": repr(error)[:300]}
        bench.say(f"K: {name}: {found[name]}")
        bench.found["K"] = found
        bench.write()
        release_memory(bench)
    return found


def part_g(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = {}
    sizes = ((bench.square, bench.batches[0]), (bench.large, bench.batches[0]))
    with tempfile.TemporaryDirectory(prefix="privet-learning-") as folder:
        for size, batch in sizes:
            work = tiprdc(bench, size, batch, n=8 * batch if bench.small else 16 * batch)
            path = Path(folder) / f"{size[0]}.npy"
            np.save(path, work.feed.inputs.array)
            on_disk = Feed(
                Inputs(np.load(path, mmap_mode="r"), np.arange(len(work.feed))),
                {"u": work.feed.labels["u"].cpu().numpy()},
                bench.device,
            )
            on_disk.resident = None
            warm, rounds = (2, 3) if bench.small else (10, 200 if size == bench.square else 25)
            row: dict[str, Any] = {}
            for label, kind, feed in (
                ("one batch", Same, work.feed),
                ("resident", Watched, work.feed),
                ("disk", Watched, on_disk),
                ("one batch again", Same, work.feed),
            ):
                game = play(bench, replace(work, feed=feed), "recorded", warm, rounds, kind)
                row[label] = round(1e3 * game.each, 3)  # type: ignore[attr-defined]
            least = min(row["one batch"], row["one batch again"])
            row |= {
                "resident_over_one": round(row["resident"] / least, 4),
                "disk_over_one": round(row["disk"] / least, 4),
            }
            found[f"{size[0]}x{size[1]} batch {batch}"] = row
            bench.say(f"g: {size[0]}x{size[1]}, batch {batch}, ms per step: {row}")
            del work, on_disk
            release_memory(bench)
    return found
