"""Time and memory of a certificate by people and by dimensions of the code. The goal: 20,000 people
of each value under 60 s and 2 GB.

    python benchmarks/certificate.py
    python benchmarks/certificate.py --sizes 1250 2500 5000 10000 20000 --d 1 2 4 8 --out docs/certificate-cost.svg

Each size runs in a process of its own, so that its peak memory is its own. Beside it, the error of
the Monte Carlo integral over the slack for people: where that is well below 1, fewer draws would
do. With --out, processor seconds, which other programs on the machine hardly change, are drawn
against people, a line for each number of dimensions. The result is JSON on standard output; the
exit code is 1 over the goal.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (5_000, 10_000, 20_000, 40_000)
GOAL = {"people_of_each_value": 20_000, "seconds": 60.0, "bytes": 2e9}
COLOURS = ("#1b6ca8", "#c05621", "#2f855a", "#805ad5", "#b83280", "#4a5568")


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="people of each of two values"
    )
    words.add_argument("--d", type=int, nargs="+", default=[4], help="dimensions of the code")
    words.add_argument(
        "--sigma", type=float, default=0.4, help="noise, in standard deviations of the code"
    )
    words.add_argument("--draws", type=int, default=100_000)
    words.add_argument("--out", type=Path, help="SVG file for the plot")
    given = words.parse_args()
    rows = []
    for d in given.d:
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            rows += [pool.apply(measure, (n, d, given.sigma, given.draws)) for n in given.sizes]
    within = [row for row in rows if row["n"] <= GOAL["people_of_each_value"]]
    met = all(
        row["seconds"] < GOAL["seconds"] and row["peak_bytes"] < GOAL["bytes"] for row in within
    )
    settings = {"d": given.d, "sigma": given.sigma, "draws": given.draws}
    result = {
        "goal": GOAL,
        "goal_met": met,
        "sizes": rows,
        "settings": settings,
        "machine": machine(),
    }
    if given.out is not None:
        given.out.write_text(plot(rows, given.draws), encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0 if met else 1


def plot(rows: Sequence[dict[str, Any]], draws: int) -> str:
    """Processor seconds against people, both on logarithmic axes, as SVG."""
    left, right, top, bottom = 64.0, 560.0, 44.0, 300.0
    people, spent = (
        [row["n"] for row in rows],
        [max(row["processor_seconds"], 0.001) for row in rows],
    )
    x, y = (
        _scale(min(people), max(people), left, right),
        _scale(min(spent), max(spent), bottom, top),
    )
    out = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 360" font-family="system-ui,'
            ' sans-serif" font-size="13" role="img" aria-label="Processor seconds of a certificate'
            ' against people of each value, by dimensions of the code">'
        ),
        '<rect width="680" height="360" fill="#fff"/>',
        (
            f'<text x="{left}" y="22" font-weight="600">Processor seconds of a certificate'
            f" ({draws:,} draws, one core)</text>"
        ),
        (
            f'<text x="{(left + right) / 2}" y="{bottom + 44}" text-anchor="middle">people of each'
            " of two values</text>"
        ),
    ]
    for value in sorted(set(people)):
        out.append(
            f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{top}" y2="{bottom}"'
            ' stroke="#e2e8f0"/>'
        )
        out.append(
            f'<text x="{x(value):.1f}" y="{bottom + 20}" text-anchor="middle"'
            f' fill="#4a5568">{value:,}</text>'
        )
    for value in _round_numbers(min(spent), max(spent)):
        out.append(
            f'<line x1="{left}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
            ' stroke="#e2e8f0"/>'
        )
        out.append(
            f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end"'
            f' fill="#4a5568">{value:g} s</text>'
        )
    labels: list[float] = []
    for colour, d in zip(COLOURS, sorted({row["d"] for row in rows}), strict=False):
        own = sorted(
            (row["n"], max(row["processor_seconds"], 0.001)) for row in rows if row["d"] == d
        )
        points = " ".join(f"{x(n):.1f},{y(s):.1f}" for n, s in own)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [
            f'<circle cx="{x(n):.1f}" cy="{y(s):.1f}" r="3.5" fill="{colour}"/>' for n, s in own
        ]
        place = y(own[-1][1]) + 4
        while any(abs(place - other) < 15 for other in labels):
            place -= 1
        labels.append(place)
        named = f"{d} dimension{'s' * (d > 1)}"
        out.append(f'<text x="{right + 10}" y="{place:.1f}" fill="{colour}">{named}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Logarithmic, from [low, high] to [start, end]."""
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(value / low) / span


def _round_numbers(low: float, high: float) -> list[float]:
    steps = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
    return [value for value in steps if low <= value <= high]


def measure(n: int, d: int, sigma: float, draws: int) -> dict[str, Any]:
    import torch  # noqa: F401  # loading it is not what is measured

    from privet.evidence.certificate.gaussian import certify

    labels = np.arange(2 * n) % 2
    codes = np.random.default_rng(0).normal(size=(2 * n, d)) + 0.1 * labels[:, None]
    before, worked = time.monotonic(), time.process_time()
    found = certify(codes, sigma, labels, np.arange(2 * n), "value", ("a", "b"), draws=draws)
    people = float(np.sqrt(np.log(1 / 0.009) / (4 * n)))
    return {
        "n": n,
        "d": d,
        "seconds": round(time.monotonic() - before, 2),
        "processor_seconds": round(time.process_time() - worked, 4),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "bound": found.bound,
        "slack": round(found.slack, 5),
        "integral_error_over_people_slack": round((found.slack - people) / people, 4),
    }


def machine() -> dict[str, Any]:
    """What a figure has to be read with."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "processor": next(
            (line.partition(":")[2].strip() for line in info if line.startswith("model name")),
            platform.machine(),
        ),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in ("privet", "torch", "numpy", "scipy")},
    }


if __name__ == "__main__":
    sys.exit(main())
