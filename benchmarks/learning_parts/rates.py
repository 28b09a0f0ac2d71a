"""Pictures per second: the machine's own rate, the published step, and ours at every pace."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from reference_tiprdc import Reference

from learning_parts.arithmetic import operations
from learning_parts.bench import Bench, events, release_memory
from learning_parts.watched import play
from learning_parts.works import Work, pictures, tiprdc


def part_a(bench: Bench) -> dict[str, Any]:
    n = 256 if bench.small else 8192
    a, b = (torch.randn(n, n, device=bench.device, dtype=bench.half) for _ in range(2))
    took = events(bench, lambda: a @ b, 30)
    big = torch.empty(1 << (20 if bench.small else 31), dtype=torch.uint8, device=bench.device)
    other = torch.empty_like(big)
    copied = events(bench, lambda: other.copy_(big), 10)
    found = {
        "tflops": float(f"{2 * n**3 / took / 1e12:.4g}"),
        "size": n,
        "copy_tb_per_s": float(f"{2 * big.numel() / copied / 1e12:.3g}"),
    }
    bench.say(f"a: bf16 product {found['tflops']} TFLOP/s, copy {found['copy_tb_per_s']} TB/s")
    return found


def part_b(bench: Bench) -> dict[str, Any]:
    found = {}
    for batch in bench.batches:
        torch.manual_seed(0)
        reference = Reference(*bench.large, width=bench.width).to(bench.device)
        x, u = pictures(bench, batch, bench.large)
        held, labels = (
            torch.from_numpy(x).to(bench.device),
            torch.from_numpy(u.astype(np.int64)).to(bench.device),
        )
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
        found[str(batch)] = {
            "images_per_s": round(rate, 1),
            "ms": round(1e3 * each, 2),
            "share_of_rate": round(share, 3),
        }
        bench.say(
            f"b: published step at {bench.large[0]}x{bench.large[1]}, batch {batch}: {rate:.1f}"
            f" images/s ({share:.1%} of the bf16 rate)"
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
    base = bench.found.get("b", {}).get(
        str(work.batch), bench.found.get("b", {}).get(str(bench.batches[-1]), {})
    )
    ratio = rate / base["images_per_s"] if "images_per_s" in base else math.nan
    row = {
        "images_per_s": round(rate, 1),
        "ms": round(1e3 * each, 3),
        "share_of_rate": round(share, 3),
        "ratio": round(ratio, 2),
    }
    row["until_round_10_s"] = round(game.before, 1)  # type: ignore[attr-defined]
    if bench.device.type == "cuda":
        row["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
    bench.say(
        f"{note}, {pace}: {rate:.1f} images/s, {ratio:.2f} x, {share:.1%} of the bf16 rate;"
        f" {row['until_round_10_s']} s before"
    )
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
    cases = [
        ("plain", small),
        ("plain", large),
        ("recorded", small),
        ("recorded", large),
        ("compiled", large),
        ("compiled", small),
    ]
    return compare_paces(
        bench, "c", [*cases, ("compiled", 2 * large)] if not bench.small else cases[:4]
    )


def part_m(bench: Bench) -> dict[str, Any]:
    return compare_paces(bench, "m", [("compiled:max-autotune-no-cudagraphs", bench.batches[-1])])
