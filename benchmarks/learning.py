"""Learning on a GPU: TIPRDC through the product's own loop, against its published step in the same run.

    PYTHONPATH=src python3 benchmarks/learning.py --out learning.json [--data celeba64.parquet] [--parts a,b,c] [--small]

    a  rate of a large bf16 product: what a share below is a share of
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
    i  every convolution of the step alone: share of a forwards, and backwards to input and to weights
    s  the step at 64 x 64: seconds until it is recorded and milliseconds from there on, by how its kernels are chosen; on two streams
    m  c with torch.compile's max-autotune: long, not run unless named

Every line is printed when it is known, and --out is written again after every part. A part that fails says why, and the others go on.
`--small` is for trying the script out on a CPU; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from reference_tiprdc import Reference
from torch import Tensor, nn

import privet
from privet.data.attributes import code
from privet.data.dataset import Array, Attribute, Dataset
from privet.data.parts import assign
from privet.data.schema import Inputs
from privet.device import tried_kernels
from privet.feed import Batch, Feed, Places
from privet.game import Game, Move, Phase, Player, Run
from privet.methods.gap import GAP
from privet.methods.gap import Players as GapPlayers
from privet.methods.hedge import Hedge, _Players
from privet.methods.tiprdc import TIPRDC, scale_gradient
from privet.methods.tiprdc import Players as TiprdcPlayers

DEFAULT = "k,d,f,g,e"
SMOOTH = 20
"""Steps that a loss curve is averaged over before two are compared."""


@dataclass
class Bench:
    out: Path
    data: str | None
    small: bool
    device: torch.device
    seconds: float
    found: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def half(self) -> torch.dtype:
        """bf16 where there is hardware for it; some processors know the word and not the instruction."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    @property
    def large(self) -> tuple[int, int]:
        return (48, 40) if self.small else (218, 178)

    @property
    def square(self) -> tuple[int, int]:
        return (32, 32) if self.small else (64, 64)

    @property
    def width(self) -> float:
        return 0.05 if self.small else 1.0

    @property
    def batches(self) -> tuple[int, ...]:
        return (8, 16) if self.small else (64, 256)

    def say(self, text: str) -> None:
        sys.stdout.write(f"[{time.monotonic() - self.began:6.1f} s] {text}\n")
        sys.stdout.flush()

    def write(self) -> None:
        temporary = self.out.with_suffix(".part")
        temporary.write_text(json.dumps(self.found, indent=1) + "\n")
        temporary.replace(self.out)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def rate(self) -> float:
        """Of the large product, in operations per second; of the datasheet's order where it was not measured."""
        return float(self.found.get("a", {}).get("tflops", 790.0)) * 1e12


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--data", help="celeba64.parquet; drawn portraits without it")
    words.add_argument("--parts", default=DEFAULT)
    words.add_argument("--small", action="store_true")
    words.add_argument("--seconds", type=float, default=540.0, help="after these, no further part is begun")
    given = words.parse_args()
    unknown = set(given.parts.split(",")) - set(PARTS)
    if unknown:
        words.error(f"no part {min(unknown)}; there are {','.join(PARTS)}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(given.out, given.data, given.small, device, given.seconds)
    bench.found["machine"] = machine(bench)
    for letter in given.parts.split(","):
        if time.monotonic() - bench.began > bench.seconds:
            bench.say(f"{letter}: left out, {bench.seconds:.0f} s are over")
            continue
        start = time.monotonic()
        try:
            bench.found[letter] = PARTS[letter](bench)
        except Exception as error:
            bench.found[letter] = {"failed": repr(error), "where": traceback.format_exc().splitlines()[-12:]}
            bench.say(f"{letter}: FAILED {error!r}\n" + "\n".join(bench.found[letter]["where"]))
        bench.found.setdefault("took", {})[letter] = round(time.monotonic() - start, 1)
        bench.write()
        release_memory(bench)
    return 0


def machine(bench: Bench) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if bench.device.type == "cuda" else "none"
    return {
        "gpu": gpu, "cores": len(os.sched_getaffinity(0)), "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "privet": privet.__version__, "small": bench.small,
    }  # fmt: skip


def release_memory(bench: Bench) -> None:
    import gc

    gc.collect()
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()


# --- records --------------------------------------------------------------------------------------------------------


@cache
def loaded(spec: str) -> Dataset:
    return privet.load(spec, progress=False)


def pictures(bench: Bench, n: int, size: tuple[int, int]) -> tuple[Array, Array]:
    """n pictures of this size, uint8 (n, 3, height, width), and a private value each: the data set's, stretched."""
    return stretched(bench.data or f"portraits:{400 if bench.small else 4000}", n, size)


@cache
def stretched(spec: str, n: int, size: tuple[int, int]) -> tuple[Array, Array]:
    data = loaded(spec)
    name = "Male" if "Male" in data.attributes else "beard"
    rows = np.arange(min(n, len(data)))
    made = np.empty((n, 3, *size), np.uint8)
    for start in range(0, n, 256):
        some = rows[np.arange(start, min(start + 256, n)) % len(rows)]
        x = torch.from_numpy(np.ascontiguousarray(data.records[data.rows[some]])).float()
        made[start : start + 256] = torch.nn.functional.interpolate(x, size, mode="bilinear").round().clamp(0, 255).byte().numpy()
    return made, np.asarray(data.labels[name])[rows[np.arange(n) % len(rows)]]


def dataset(records: Any, labels: Mapping[str, Array], modality: Any = "image") -> Dataset:
    import pandas as pd

    coded = {name: code(name, pd.Series(column)) for name, column in labels.items()}
    n = len(next(iter(labels.values())))
    part, notes = assign(n, None, None, 0)
    attributes: dict[str, Attribute] = {name: attribute for name, (attribute, _) in coded.items()}
    columns = {name: column for name, (_, column) in coded.items()}
    return Dataset("benchmark", modality, records, attributes, columns, part, np.arange(n), "benchmark", None, notes)


@dataclass
class Work:
    """A phase to be timed, with what it needs."""

    modules: Mapping[str, nn.Module]
    phase: Phase
    feed: Feed
    batch: int
    players: Any = None


def tiprdc(bench: Bench, size: tuple[int, int], batch: int, seed: int = 0, n: int | None = None) -> Work:
    """The game of TIPRDC, as `learn` sets it up."""
    found = pictures(bench, n or 3 * batch, size)
    method = TIPRDC(width=bench.width, batch=batch, seed=seed)
    problem = method.problem(dataset(found[0], {"u": found[1]}), ["u"], [], [], Run(device=bench.device.type))
    torch.manual_seed(seed)
    players = TiprdcPlayers(problem, method)
    feed = Feed(Inputs(found[0]), {"u": found[1].astype(np.int64)}, bench.device)
    return Work(players.modules(), players.play(1, method.lr, fused=True), feed, batch, players)


# --- the product's loop, watched ------------------------------------------------------------------------------------


class Watched(Game):
    """The game itself; notes when round `warm` begins, and every round's figures where they are asked for."""

    warm, keeps, wait = 0, False, staticmethod(lambda: None)
    started = 0.0
    done = 0

    def _round(self, *given: Any) -> dict[str, Tensor]:
        if self.done == self.warm:
            self.wait()
            self.started = time.perf_counter()
        self.done += 1
        moved = super()._round(*given)
        if self.keeps:
            self.curve.append({name: value.clone() for name, value in moved.items()})
        return moved


class Same(Watched):
    """The same with one batch again and again, so that nothing is ever loaded."""

    def _batches(self, number: int, phase: Phase, start: int, rounds: int) -> Iterator[Batch]:
        batch = next(super()._batches(number, phase, start, rounds))
        while True:
            yield batch


class Before(Watched):
    """As it was: positions sent to the device with every batch, which waits for what is queued there."""

    def _draw(self, number: int, player: Player, move: int, orders: dict[str, tuple[int, Places]]) -> Any:
        return super()._draw(number, player, move, orders).here


class Untried(Watched):
    """With the library's choice of kernels."""

    def _play_phase(self, *given: Any) -> None:
        torch.backends.cudnn.benchmark = False
        super()._play_phase(*given)


class Stopped(Game):
    """Interrupted after so many rounds."""

    stop: int | None = None
    done = 0

    def _round(self, *given: Any) -> dict[str, Tensor]:
        if self.stop is not None and self.done >= self.stop:
            raise KeyboardInterrupt
        self.done += 1
        return super()._round(*given)


def play(bench: Bench, work: Work, pace: str, warm: int, rounds: int, kind: type[Watched] = Watched, keeps: bool = False) -> Watched:
    """`warm` + `rounds` rounds of the phase; the seconds of one are in `.each`."""
    game = kind(work.modules, [work.phase], work.feed, work.batch, 0, "")
    per_epoch = game.rounds(replace(work.phase, epochs=1))
    game.phases = [replace(work.phase, epochs=(warm + rounds) / per_epoch)]
    game.warm, game.keeps, game.wait, game.curve = warm, keeps, bench.wait, []  # type: ignore[attr-defined,misc]
    began = time.perf_counter()
    game.play(Run(device=bench.device.type, progress=False, pace=pace))
    bench.wait()
    game.each = (time.perf_counter() - game.started) / rounds  # type: ignore[attr-defined]
    game.before = game.started - began  # type: ignore[attr-defined]
    return game


# --- arithmetic -----------------------------------------------------------------------------------------------------


def layers(
    size: tuple[int, int], width: float, plan: Sequence[tuple[int, int]], channels: int
) -> tuple[list[tuple[int, int, int]], int, int]:
    """(channels in, out, places) of every 3 x 3 convolution of a plan; then the channels and places that come out."""
    height, across = size
    found = []
    for count, wide in plan:
        out = max(4, round(wide * width))
        for _ in range(count):
            found.append((channels, out, height * across))
            channels = out
        height, across = height // 2, across // 2
    return found, channels, height * across


def convolutions(size: tuple[int, int], width: float = 1.0) -> dict[str, list[tuple[int, int, int]]]:
    """The convolutions of extractor, estimator's lift, and one pass of a trunk."""
    extractor, channels, _ = layers(size, width, ((2, 64), (2, 128)), 3)
    lift, _, _ = layers(size, width, ((3, 64), (2, 128)), 3)
    trunk, _, _ = layers((size[0] // 4, size[1] // 4), width, ((3, 256), (3, 512), (3, 512)), channels)
    return {"extractor": extractor, "lift": lift, "trunk": trunk}


def operations(size: tuple[int, int], width: float = 1.0) -> dict[str, float]:
    """Floating-point operations of one picture in one round, a multiplication and an addition counting as two.

    Ours: extractor and lift once, the trunk three times (adversary; estimator on x and z), forwards and twice that backwards, but
    for the first layers, which hand nothing on. The reference: see its step.
    """
    made = convolutions(size, width)
    forwards = {name: sum(18.0 * a * b * places for a, b, places in found) for name, found in made.items()}
    first = sum(18.0 * a * b * places for a, b, places in (made["extractor"][0], made["lift"][0]))
    places, out = (size[0] // 32) * (size[1] // 32), max(4, round(512 * width))
    hidden, second = max(4, round(4096 * width)), max(4, round(512 * width))
    heads = 2.0 * (out * places * hidden + hidden * hidden)
    pair = 2.0 * (2 * out * places * hidden + 2 * hidden * second)
    once = forwards["extractor"] + forwards["lift"] + 3 * forwards["trunk"] + heads + pair
    estimator = 2 * (forwards["lift"] + 2 * forwards["trunk"]) + 2 * pair
    accused = forwards["trunk"] + heads
    reference = 5 * forwards["extractor"] + 6 * accused + 6 * estimator
    return {"ours": 3 * once - first, "reference": reference, "forwards": once}


# --- parts ----------------------------------------------------------------------------------------------------------


def events(bench: Bench, work: Callable[[], object], repeat: int) -> float:
    """Median seconds of a piece of device work."""
    for _ in range(3):
        work()
    if bench.device.type != "cuda":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    marks = []
    for _ in range(repeat):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        work()
        last.record()
        marks.append((first, last))
    bench.wait()
    return statistics.median(a.elapsed_time(b) for a, b in marks) / 1e3


def part_a(bench: Bench) -> dict[str, Any]:
    n = 256 if bench.small else 8192
    a, b = (torch.randn(n, n, device=bench.device, dtype=bench.half) for _ in range(2))
    took = events(bench, lambda: a @ b, 30)
    big = torch.empty(1 << (20 if bench.small else 31), dtype=torch.uint8, device=bench.device)
    other = torch.empty_like(big)
    copied = events(bench, lambda: other.copy_(big), 10)
    found = {"tflops": float(f"{2 * n**3 / took / 1e12:.4g}"), "size": n, "copy_tb_per_s": float(f"{2 * big.numel() / copied / 1e12:.3g}")}
    bench.say(f"a: bf16 product {found['tflops']} TFLOP/s, copy {found['copy_tb_per_s']} TB/s")
    return found


def part_b(bench: Bench) -> dict[str, Any]:
    found = {}
    for batch in bench.batches:
        torch.manual_seed(0)
        reference = Reference(*bench.large, width=bench.width).to(bench.device)
        x, u = pictures(bench, batch, bench.large)
        held, labels = torch.from_numpy(x).to(bench.device), torch.from_numpy(u.astype(np.int64)).to(bench.device)
        for _ in range(3):
            reference.step(held, labels)
        bench.wait()
        rounds = 2 if bench.small else max(4, 1024 // batch)
        start = time.perf_counter()
        for _ in range(rounds):
            reference.step(held, labels)
        bench.wait()
        each = (time.perf_counter() - start) / rounds
        rate = batch / each
        share = rate * operations(bench.large, bench.width)["reference"] / bench.rate()
        found[str(batch)] = {"images_per_s": round(rate, 1), "ms": round(1e3 * each, 2), "share_of_rate": round(share, 3)}
        bench.say(
            f"b: published step at {bench.large[0]}x{bench.large[1]}, batch {batch}: {rate:.1f} images/s ({share:.1%} of the bf16 rate)"
        )
        del reference, held
        release_memory(bench)
    return found


def timed(bench: Bench, work: Work, pace: str, note: str, rounds: int) -> dict[str, Any]:
    game = play(bench, work, pace, 2 if bench.small else 10, 2 if bench.small else rounds)
    each: float = game.each  # type: ignore[attr-defined]
    rate = work.batch / each
    size = cast(tuple[int, int], tuple(work.feed.inputs.array.shape[2:]))
    share = rate * operations(size, bench.width)["ours"] / bench.rate()
    base = bench.found.get("b", {}).get(str(work.batch), bench.found.get("b", {}).get(str(bench.batches[-1]), {}))
    ratio = rate / base["images_per_s"] if "images_per_s" in base else math.nan
    row = {"images_per_s": round(rate, 1), "ms": round(1e3 * each, 3), "share_of_rate": round(share, 3), "ratio": round(ratio, 2)}
    row["until_round_10_s"] = round(game.before, 1)  # type: ignore[attr-defined]
    if bench.device.type == "cuda":
        row["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
    bench.say(f"{note}, {pace}: {rate:.1f} images/s, {ratio:.2f} x, {share:.1%} of the bf16 rate; {row['until_round_10_s']} s before")
    return row


def compare_paces(bench: Bench, letter: str, cases: Sequence[tuple[str, int]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pace, batch in cases:
        work = tiprdc(bench, bench.large, batch)
        try:
            row = timed(bench, work, pace, f"{letter}: ours, batch {batch}", max(10, 4096 // batch))
        except Exception as error:
            row = {"failed": repr(error)}
            bench.say(f"{letter}: {pace} at {batch} FAILED {error!r}")
        found.setdefault(pace, {})[str(batch)] = row
        bench.found[letter] = found
        bench.write()
        del work
        release_memory(bench)
    return found


def part_c(bench: Bench) -> dict[str, Any]:
    small, large = bench.batches
    cases = [("plain", small), ("plain", large), ("recorded", small), ("recorded", large), ("compiled", large), ("compiled", small)]
    return compare_paces(bench, "c", [*cases, ("compiled", 2 * large)] if not bench.small else cases[:4])


def part_m(bench: Bench) -> dict[str, Any]:
    return compare_paces(bench, "m", [("compiled:max-autotune-no-cudagraphs", bench.batches[-1])])


def curve_of(rows: Sequence[Mapping[str, Tensor]]) -> dict[str, Array]:
    names = ("adversary loss", "information J", "extractor loss")
    return {name: torch.stack([row[name] for row in rows]).float().cpu().numpy() for name in names}


def smoothed(curve: Array) -> Array:
    wide = min(SMOOTH, max(1, len(curve) // 3))
    return np.convolve(curve, np.ones(wide) / wide, "valid")


def curves(bench: Bench, letter: str, size: tuple[int, int], batch: int, seeds: Sequence[int], paces: Sequence[str]) -> dict[str, Any]:
    """Both from the same weights on the same batches: is ours as near the reference as the reference's seeds are to each other?"""
    steps = 6 if bench.small else 300
    theirs: dict[int, dict[str, Array]] = {}
    ours: dict[str, dict[int, dict[str, Array]]] = {pace: {} for pace in paces}
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
            own.phases = [replace(again.phase, epochs=steps / own.rounds(replace(again.phase, epochs=1)))]
            own.keeps, own.curve = True, []  # type: ignore[attr-defined]
            own.play(Run(device=bench.device.type, progress=False, pace=pace))
            ours[pace][seed] = curve_of(own.curve)  # type: ignore[attr-defined]
            ends = {name: round(float(value[-SMOOTH:].mean()), 4) for name, value in ours[pace][seed].items()}
            bench.say(f"{letter}: seed {seed}, {pace}, means of the last steps: {ends}")
        ends = {name: round(float(value[-SMOOTH:].mean()), 4) for name, value in theirs[seed].items()}
        bench.say(f"{letter}: seed {seed}, reference, means of the last steps: {ends}")
        release_memory(bench)

    def apart(a: Array, b: Array) -> float:
        return float(np.abs(smoothed(a) - smoothed(b)).mean())

    found: dict[str, Any] = {"size": list(size), "batch": batch, "steps": steps, "seeds": list(seeds)}
    for name in theirs[seeds[0]]:
        spread = [apart(theirs[a][name], theirs[b][name]) for a, b in combinations(seeds, 2)]
        row: dict[str, Any] = {"between_seeds_of_reference": [round(v, 5) for v in spread]}
        for pace in paces:
            near = [apart(ours[pace][seed][name], theirs[seed][name]) for seed in seeds]
            row[f"ours_{pace}_to_reference_same_seed"] = [round(v, 5) for v in near]
            row[f"within_{pace}"] = bool(statistics.mean(near) <= max(spread)) if spread else None
        found[name] = row
        bench.say(f"{letter}: {name}: {row}")
    found["curves"] = {
        "reference": {str(s): {k: thinned(v) for k, v in c.items()} for s, c in theirs.items()},
        **{pace: {str(s): {k: thinned(v) for k, v in c.items()} for s, c in by.items()} for pace, by in ours.items()},
    }
    return found


def thinned(curve: Array) -> list[float]:
    return [round(float(v), 4) for v in smoothed(curve)[::10]]


def part_d(bench: Bench) -> dict[str, Any]:
    return curves(bench, "d", bench.square, 8 if bench.small else 32, (0, 1, 2), ("recorded",))


def part_D(bench: Bench) -> dict[str, Any]:
    return curves(bench, "D", bench.large, 8 if bench.small else 64, (0, 1, 2), ("compiled",))


def part_e(bench: Bench) -> dict[str, Any]:
    return whole_run(bench, "e", 1.0 if bench.small else 14_000 / fit_pictures(bench))


def part_E(bench: Bench) -> dict[str, Any]:
    return whole_run(bench, "E", 1.0)


def run_data(bench: Bench) -> str:
    return bench.data or ("portraits:400" if bench.small else "portraits:20000")


def fit_pictures(bench: Bench) -> int:
    return len(loaded(run_data(bench)).part("fit"))


def whole_run(bench: Bench, letter: str, many: float) -> dict[str, Any]:
    """As a user runs it, in a process of its own: `many` times the published 5 and 20 epochs."""
    data, fit = run_data(bench), fit_pictures(bench)
    private = "Male" if "Male" in loaded(data).attributes else "beard"
    warm, epochs = (1.0, 1.0) if bench.small else (5.0 * many, 20.0 * many)
    with tempfile.TemporaryDirectory(prefix="privet-learning-") as folder:
        clock = Path(folder) / "clock.json"
        words = [sys.executable, str(Path(__file__).with_name("clock.py")), str(clock), "learn", "tiprdc", "--data", data]
        words += ["--private", private, "--out", f"{folder}/release", "--set", f"width={bench.width}", "--set", "batch=64"]
        words += ["--set", f"warmup={warm:.4f}", "--set", f"epochs={epochs:.4f}"]
        start = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:]), "BEGAN": str(time.time())}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        took = time.monotonic() - start
        if done.returncode:
            raise RuntimeError(done.stderr[-1500:])
        card = json.loads((Path(folder) / "release" / "card.json").read_text())
        told = json.loads(clock.read_text())
    rounds = sum(told["rounds"].values())
    parts = {**told["s"], "leaving": round(time.time() - told["ended"], 2)}
    bench.say(f"{letter}: privet learn tiprdc ({fit} fit pictures, {rounds} rounds): {took:.1f} s; {card.get('in_game')}")
    bench.say(f"{letter}: of these, " + "; ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items()))
    return {
        "data": Path(data).name, "fit_pictures": fit, "s": round(took, 1), "rounds": told["rounds"], "parts_s": parts,
        "in_game": card.get("in_game"), "last": card["history"][-1], "said": done.stderr[-400:],
    }  # fmt: skip


def hedge_work(bench: Bench, modality: str) -> Work:
    records, u, y = some_records(bench, modality)
    method = Hedge(width=0.05 if bench.small else 0.5, batch=32 if bench.small else 256)
    problem = method.problem(dataset(records, {"u": u, "y": y}, modality), ["u"], ["y"], [], Run(device=bench.device.type))
    torch.manual_seed(0)
    players = _Players(problem, method)
    players.judge = dict  # type: ignore[method-assign,assignment]
    return Work(players.modules(), players.play(), problem.feed(), method.batch, players)


def gap_work(bench: Bench, modality: str) -> Work:
    records, u, y = some_records(bench, modality)
    method = GAP(width=0.05 if bench.small else 0.5, batch=32 if bench.small else 128, itr_d=3, itr_g=3)
    problem = method.problem(dataset(records, {"u": u, "y": y}, modality), ["u"], ["y"], [], Run(device=bench.device.type))
    torch.manual_seed(0)
    players = GapPlayers(problem, method)
    return Work(players.modules(), players.phases()[-1], players.feed, method.batch, players)


def some_records(bench: Bench, modality: str) -> tuple[Any, Array, Array]:
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 600 if bench.small else 2048
    if modality == "image":
        x, u = pictures(bench, n, bench.square)
        return x, u, rng.integers(0, 2, n)
    u, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    numbers = rng.standard_normal((n, 14)).astype(np.float32)
    numbers[:, 0] += u
    numbers[:, 1] += y
    return pd.DataFrame(numbers, columns=[f"c{i}" for i in range(14)]), u, y


def part_f(bench: Bench) -> dict[str, Any]:
    return others(bench, "f", ("plain", "recorded"))


def part_F(bench: Bench) -> dict[str, Any]:
    return others(bench, "F", ("plain", "recorded", "compiled"))


def others(bench: Bench, letter: str, paces: Sequence[str]) -> dict[str, Any]:
    """Moves per second; gap makes six a round."""
    found: dict[str, Any] = {}
    for (name, make, moves), modality in product((("hedge", hedge_work, 1), ("gap", gap_work, 6)), ("table", "image")):
        warm, rounds = (2, 2) if bench.small else (10, 40) if moves == 1 else (4, 8)
        row = found[f"{name} {modality}"] = {}
        for label, kind, pace in (("before", Before, "plain"), *((pace, Watched, pace) for pace in paces)):
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
    """Largest difference of a weight, over the largest weight, after the same rounds; two plain games differ by rounding alone."""

    def after(make: Callable[[], Work], pace: str, stop: int | None = None) -> Tensor:
        work = make()
        with tempfile.TemporaryDirectory(prefix="privet-learning-") as folder:
            game = Stopped(work.modules, [], work.feed, work.batch, 0, "")
            game.phases = [replace(work.phase, epochs=(6 if bench.small else 24) / game.rounds(replace(work.phase, epochs=1)))]
            game.stop = stop
            run = Run(Path(folder), device=bench.device.type, progress=False, pace=pace, rounds_between=1 if stop else 10**9)
            try:
                game.play(run)
            except KeyboardInterrupt:
                epochs = game.phases[0].epochs
                work = make()
                phases = [replace(work.phase, epochs=epochs)]
                Game(work.modules, phases, work.feed, work.batch, 0, "").play(replace(run, resume=True))
        return torch.cat([p.detach().float().flatten() for module in work.modules.values() for p in module.parameters()])

    found: dict[str, Any] = {}
    makers: dict[str, Callable[[], Work]] = {
        "hedge table": lambda: hedge_work(bench, "table"),
        "gap table": lambda: gap_work(bench, "table"),
        "hedge image": lambda: hedge_work(bench, "image"),
        "tiprdc image": lambda: tiprdc(bench, bench.square, bench.batches[0], n=10 * bench.batches[0]),
    }  # fmt: skip
    for name, make in makers.items():
        plain = after(make, "plain")
        top = float(plain.abs().max())
        others = {
            "plain again": ("plain", None),
            "recorded": ("recorded", None),
            "recorded, interrupted": ("recorded", 3 if bench.small else 12),
        }
        found[name] = {label: float((after(make, *how) - plain).abs().max()) / top for label, how in others.items()}
        bench.found["k"] = found
        bench.say(f"k: {name}: " + ", ".join(f"{label} {value:.2e}" for label, value in found[name].items()))
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
                Inputs(np.load(path, mmap_mode="r"), np.arange(len(work.feed))), {"u": work.feed.labels["u"].cpu().numpy()}, bench.device
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
            row |= {"resident_over_one": round(row["resident"] / least, 4), "disk_over_one": round(row["disk"] / least, 4)}
            found[f"{size[0]}x{size[1]} batch {batch}"] = row
            bench.say(f"g: {size[0]}x{size[1]}, batch {batch}, ms per step: {row}")
            del work, on_disk
            release_memory(bench)
    return found


def part_s(bench: Bench) -> dict[str, Any]:
    """Trying more kernels takes longer and may find faster ones (`None`: the library's choice, untried). And with two streams: the
    adversary moves while the estimator does, each too small to fill the device."""
    found: dict[str, Any] = {}
    before, (height, across) = torch.backends.cudnn.benchmark_limit, bench.square
    for limit, streams in ((10, 1), (3, 1), (None, 1), (10, 1), (10, 2)):  # the first also pays for waking the device
        torch.backends.cudnn.benchmark_limit = limit or 10
        work = tiprdc(bench, (height, across + len(found)), bench.batches[0])  # another shape each time, of which nothing is known yet
        if streams == 2:
            work.phase = replace(work.phase, fused=forked(work.players))
        label = f"{len(found)}: {limit} tried, {streams} stream{'s' if streams > 1 else ''}"
        try:
            game = play(bench, work, "recorded", *((2, 3) if bench.small else (10, 100)), Watched if limit else Untried)
            found[label] = {"until_round_10_s": round(game.before, 2), "ms": round(1e3 * game.each, 3)}  # type: ignore[attr-defined]
        except Exception as error:
            found[label] = {"failed": repr(error)[:300]}
        bench.say(f"s: {height}x{across}, batch {bench.batches[0]}, {label}: {found[label]}")
        release_memory(bench)
    torch.backends.cudnn.benchmark_limit = before
    return found


def forked(players: TiprdcPlayers) -> Callable[[Batch], Move]:
    """The fused step of TIPRDC with the adversary's part on a stream of its own; gradients flow back on the stream they came by."""
    if not torch.cuda.is_available():
        return players.all_at_once
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def move(batch: Batch) -> Move:
        z = players.release(batch)
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            accused = players.accuse(batch, scale_gradient(z, -players.budget))
        informed = players.inform(batch, scale_gradient(z, 1 - players.budget))
        here.wait_stream(side)
        shown = {**accused.figures, **informed.figures, "extractor loss": players.defence(accused, informed)}
        return Move(accused.loss + informed.loss, shown)

    return move


def part_h(bench: Bench) -> dict[str, Any]:
    """Kernels of the product's step, compiled and recorded, by their share of the device's time."""
    from torch.profiler import ProfilerActivity, profile

    found: dict[str, Any] = {}
    for pace in ("recorded",) if bench.small else ("compiled", "recorded"):
        work = tiprdc(bench, bench.large, bench.batches[-1])
        kinds = [ProfilerActivity.CPU] if bench.device.type == "cpu" else [ProfilerActivity.CUDA]
        rounds = 2 if bench.small else 5
        watch = profile(activities=kinds)

        class Profiled(Watched):
            def _round(self, *given: Any) -> dict[str, Tensor]:
                if self.done == self.warm:
                    bench.wait()
                    watch.__enter__()  # noqa: B023
                return super()._round(*given)

        play(bench, work, pace, 2 if bench.small else 10, rounds, Profiled)
        watch.__exit__(None, None, None)
        rows = [(e.key, e.count / rounds, getattr(e, "self_device_time_total", 0) / rounds / 1e3) for e in watch.key_averages()]
        rows = sorted((r for r in rows if r[2] > 0), key=lambda r: -r[2])
        total = sum(r[2] for r in rows) or 1.0
        groups: dict[str, float] = {}
        for key, _, ms in rows:
            groups[group(key)] = groups.get(group(key), 0.0) + ms
        found[pace] = {
            "ms": round(total, 2), "groups_ms": {k: round(v, 2) for k, v in sorted(groups.items(), key=lambda g: -g[1])},
            "kernels": [{"name": k[:160], "times": round(c, 1), "ms": round(ms, 3)} for k, c, ms in rows[:45]],
        }  # fmt: skip
        bench.say(f"h: {pace}, {total:.1f} ms of kernels a step: {found[pace]['groups_ms']}")
        for key, count, ms in rows[:28]:
            bench.say(f"h:   {ms:8.3f} ms {ms / total:6.1%} x{count:5.1f}  {key[:110]}")
        del work
        release_memory(bench)
    return found


KERNELS = {
    "to weights": ("wgrad",),
    "to input": ("dgrad",),
    "forwards": ("fprop", "implicit_gemm", "convolve"),
    "product": ("gemm", "nvjet", "cutlass"),
    "optimiser": ("adam", "multi_tensor"),
    "compiled": ("triton",),
    "pooling": ("pool",),
    "normalisation": ("batch_norm", "batchnorm", "bn_"),
    "layout": ("nchw", "nhwc", "transpose", "transform"),
    "copies": ("memcpy", "copy", "memset", "fill"),
    "elementwise": ("elementwise", "vectorized"),
}
"""Kinds of work, by what is in a kernel's name; the first that fits."""


def group(kernel: str) -> str:
    """What kind of work a kernel is, by its name."""
    name = kernel.lower()
    for kind, marks in KERNELS.items():
        if any(mark in name for mark in marks):
            return kind
    return "other"


def part_i(bench: Bench) -> dict[str, Any]:
    """Every distinct convolution alone, in bf16 and channels last; the first also with its input padded to 4 and 8 channels."""
    batch = 4 if bench.small else 128
    sizes = bench.large
    seen: dict[tuple[int, int, int, int], int] = {}
    for name, found in convolutions(sizes, bench.width).items():
        for a, b, places in found:
            height, across = next(
                (sizes[0] // 2**k, sizes[1] // 2**k) for k in range(6) if (sizes[0] // 2**k) * (sizes[1] // 2**k) == places
            )
            key = (a, b, height, across)
            seen[key] = seen.get(key, 0) + (3 if name == "trunk" else 1)
    wide = next(iter(seen))
    rows, total = [], 0.0
    padded = [((4, *wide[1:]), 0), ((8, *wide[1:]), 0), ((wide[0], 2 * wide[1], *wide[2:]), 0)]
    with tried_kernels(bench.device):
        for (a, b, height, across), times in [*seen.items(), *padded]:
            kind = {"device": bench.device, "dtype": bench.half}
            x = torch.randn(batch, a, height, across, **kind).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            w = torch.randn(b, a, 3, 3, **kind).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            g = torch.randn(batch, b, height, across, **kind).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

            def backwards(which: tuple[bool, bool, bool], x: Tensor = x, w: Tensor = w, g: Tensor = g) -> Callable[[], object]:
                common = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, list(which))
                return lambda: torch.ops.aten.convolution_backward(g, x, w, *common)

            took = {
                "forwards": events(bench, lambda x=x, w=w: torch.nn.functional.conv2d(x, w, padding=1), 12),  # type: ignore[misc]
                "to_input": events(bench, backwards((True, False, False)), 12),
                "to_weights": events(bench, backwards((False, True, False)), 12),
            }
            work = 18.0 * a * b * height * across * batch
            row = {"layer": [a, b, height, across], "in_step": times, **{k: round(1e6 * v / batch, 2) for k, v in took.items()}}
            row |= {f"{k}_share": round(work / v / bench.rate(), 3) for k, v in took.items()}
            total += times * sum(v for k, v in took.items() if not (k == "to_input" and a == 3)) / batch
            rows.append(row)
            bench.say(
                f"i: {a:4d}->{b:4d} {height}x{across} (x{times}), us per picture and share of a: "
                + ", ".join(f"{k} {1e6 * v / batch:.1f} ({work / v / bench.rate():.0%})" for k, v in took.items())
            )
            del x, w, g
            release_memory(bench)
    count = operations(bench.large, bench.width)
    bench.say(
        f"i: all convolutions of a step {1e6 * total:.0f} us per picture: at most {1 / total:.0f} images/s; "
        f"{count['ours'] / 1e9:.1f} GFLOP per picture, {count['reference'] / 1e9:.1f} in the reference; "
        f"at rate a {bench.rate() / count['ours']:.0f} images/s"
    )
    return {"layers": rows, "convolutions_us_per_picture": round(1e6 * total, 1), "operations": count}


PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "a": part_a, "b": part_b, "c": part_c, "d": part_d, "D": part_D, "e": part_e, "E": part_E,
    "f": part_f, "F": part_F, "g": part_g, "h": part_h, "i": part_i, "k": part_k, "m": part_m, "s": part_s,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
