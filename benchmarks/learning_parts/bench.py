"""What every part is given: where to say and write what it finds, and how large things are."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import privet


@dataclass
class Bench:
    out: Path
    data: str | None
    small: bool
    device: torch.device
    seconds: float
    keep: Path | None = None
    """Where the release of a whole run is to stay."""
    found: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def half(self) -> torch.dtype:
        """bf16 where there is hardware for it; some processors know the word and not the
        instruction."""
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
        """Of the large product, in operations per second; of the datasheet's order where it was not
        measured."""
        return float(self.found.get("a", {}).get("tflops", 790.0)) * 1e12


def machine(bench: Bench) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if bench.device.type == "cuda" else "none"
    return {
        "gpu": gpu,
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "privet": privet.__version__,
        "small": bench.small,
    }


def release_memory(bench: Bench) -> None:
    import gc

    gc.collect()
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()


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
