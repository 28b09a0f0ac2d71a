"""Where the time of a step goes: by kernel, by convolution, and by how kernels are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from learning_parts.arithmetic import convolutions, operations
from learning_parts.bench import Bench, events, release_memory
from learning_parts.watched import Watched, play
from learning_parts.works import apart, tiprdc
from privet.methods.tiprdc import MAIN_STREAM
from privet.nets import device
from privet.nets.device import tried_kernels


class Untried(Watched):
    """With the library's choice of kernels."""

    def _play_phase(self, *given: Any) -> None:
        torch.backends.cudnn.benchmark = False
        super()._play_phase(*given)


def part_s(bench: Bench) -> dict[str, Any]:
    """Trying more kernels takes longer and may find faster ones (`None`: the library's choice,
    untried). And two streams, as in a game: the adversary moves while the estimator does, each too
    small to fill the device; that must not change what they learn."""
    found: dict[str, Any] = {}
    before, (height, across) = device.KERNELS, bench.square
    length = (2, 3) if bench.small else (10, 100)

    def timed(label: str, width: int, kind: type[Watched] = Watched, streams: int = 1) -> Tensor:
        work = tiprdc(bench, (height, width), bench.batches[0])
        if streams == 1:
            work.players._adversary_stream = lambda _: MAIN_STREAM
        game = play(bench, work, "recorded", *length, kind)
        found[label] = {"until_round_10_s": round(game.before, 2), "ms": round(1e3 * game.each, 3)}  # type: ignore[attr-defined]
        return work.weights()

    try:
        for turn, limit in enumerate(
            (10, 3, None, 10)
        ):  # the first also pays for waking the device
            device.KERNELS = limit or 10
            label = f"{turn}: {limit} tried"
            timed(
                label, across + turn, Watched if limit else Untried
            )  # another shape each time, of which nothing is known yet
            bench.say(f"s: {height}x{across}, batch {bench.batches[0]}, {label}: {found[label]}")
            release_memory(bench)
    finally:
        device.KERNELS = before
    first = timed("one stream", across + 1)
    for label, streams in (("one stream again", 1), ("two streams", 2), ("two streams again", 2)):
        weights = timed(label, across + 1, streams=streams)
        found[label]["apart"] = apart(weights, first)
        bench.say(
            f"s: {label}: {found[label]}, where one stream takes {found['one stream']['ms']} ms"
        )
        release_memory(bench)
    return found


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
        rows = [
            (e.key, e.count / rounds, getattr(e, "self_device_time_total", 0) / rounds / 1e3)
            for e in watch.key_averages()
        ]
        rows = sorted((r for r in rows if r[2] > 0), key=lambda r: -r[2])
        total = sum(r[2] for r in rows) or 1.0
        groups: dict[str, float] = {}
        for key, _, ms in rows:
            groups[group(key)] = groups.get(group(key), 0.0) + ms
        found[pace] = {
            "ms": round(total, 2),
            "groups_ms": {k: round(v, 2) for k, v in sorted(groups.items(), key=lambda g: -g[1])},
            "kernels": [
                {"name": k[:160], "times": round(c, 1), "ms": round(ms, 3)}
                for k, c, ms in rows[:45]
            ],
        }
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
    """Every distinct convolution alone, in bf16 and channels last; the first also with its input
    padded to 4 and 8 channels."""
    batch = 4 if bench.small else 128
    sizes = bench.large
    seen: dict[tuple[int, int, int, int], int] = {}
    for name, found in convolutions(sizes, bench.width).items():
        for a, b, places in found:
            height, across = next(
                (sizes[0] // 2**k, sizes[1] // 2**k)
                for k in range(6)
                if (sizes[0] // 2**k) * (sizes[1] // 2**k) == places
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

            def backwards(
                which: tuple[bool, bool, bool], x: Tensor = x, w: Tensor = w, g: Tensor = g
            ) -> Callable[[], object]:
                common = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, list(which))
                return lambda: torch.ops.aten.convolution_backward(g, x, w, *common)

            took = {
                "forwards": events(
                    bench, lambda x=x, w=w: torch.nn.functional.conv2d(x, w, padding=1), 12
                ),  # type: ignore[misc]
                "to_input": events(bench, backwards((True, False, False)), 12),
                "to_weights": events(bench, backwards((False, True, False)), 12),
            }
            work = 18.0 * a * b * height * across * batch
            row = {
                "layer": [a, b, height, across],
                "in_step": times,
                **{k: round(1e6 * v / batch, 2) for k, v in took.items()},
            }
            row |= {f"{k}_share": round(work / v / bench.rate(), 3) for k, v in took.items()}
            total += (
                times * sum(v for k, v in took.items() if not (k == "to_input" and a == 3)) / batch
            )
            rows.append(row)
            bench.say(
                f"i: {a:4d}->{b:4d} {height}x{across} (x{times}), us per picture and share of a: "
                + ", ".join(
                    f"{k} {1e6 * v / batch:.1f} ({work / v / bench.rate():.0%})"
                    for k, v in took.items()
                )
            )
            del x, w, g
            release_memory(bench)
    count = operations(bench.large, bench.width)
    bench.say(
        f"i: all convolutions of a step {1e6 * total:.0f} us per picture: at most {1 / total:.0f}"
        f" images/s; {count['ours'] / 1e9:.1f} GFLOP per picture, {count['reference'] / 1e9:.1f} in"
        f" the reference; at rate a {bench.rate() / count['ours']:.0f} images/s"
    )
    return {
        "layers": rows,
        "convolutions_us_per_picture": round(1e6 * total, 1),
        "operations": count,
    }
