"""`privet bench`: how fast Privet is, as ratios to named references that take turns with it in the
same run.

    ratio = seconds of the reference / seconds of ours    (2: ours is twice as fast)

Seconds are those of the processor, over all threads of this process: programs that run at the same
time hardly change them. They still say as much about the machine as about the code; a ratio of two
things that took turns says mostly the latter. `check` compares ratios with stored ones, never
times.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.files import write_text

# A ratio that is smaller than the stored one by more than this is slower by accident.
FACTOR = 1.5
TURNS = 3

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """Two pieces of work that do the same: ours and a reference.

    Parameters:
        what: What is ours, in words.
        reference: What it is compared with.
        make: Ours and the reference, ready to run again and again; files go to the folder.
    """

    name: str
    what: str
    reference: str
    make: Callable[[Path], tuple[Work, Work]]


@dataclass(frozen=True)
class Ratio:
    """How much faster ours is than its reference, from several turns.

    Parameters:
        values: One a turn.
        seconds: Processor seconds of ours and of the reference, medians: for information.
    """

    name: str
    what: str
    reference: str
    values: tuple[float, ...]
    seconds: tuple[float, float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def line(self) -> str:
        low, high = min(self.values), max(self.values)
        return (
            f"{self.name}: {self.what} at {self.median:.2f} times ({low:.2f} to {high:.2f}) the"
            f" speed of {self.reference}"
        )


def measure(
    case: Case, turns: int = TURNS, enough: Callable[[Ratio], bool] = lambda found: True
) -> Ratio:
    """Ours and the reference in turns, after one for warming up; as many turns again, once, where
    the first are not `enough`."""
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        ours, reference = case.make(Path(folder))
        _seconds(reference), _seconds(ours)
        pairs = [_pair(ours, reference, turn) for turn in range(turns)]
        if not enough(_ratio(case, pairs)):
            pairs += [_pair(ours, reference, turn) for turn in range(turns + 1)]
    return _ratio(case, pairs)


def check(found: Sequence[Ratio], stored: Mapping[str, float], factor: float = FACTOR) -> list[str]:
    """One sentence for every ratio that is smaller than the stored one by more than `factor`; none
    where all is well."""
    return [
        f"{ratio.name} is slower than it was: {ratio.median:.2f} times the speed of"
        f" {ratio.reference}, where {stored[ratio.name]:.2f} is stored and"
        f" {stored[ratio.name] / factor:.2f} the limit."
        for ratio in found
        if ratio.name in stored and ratio.median < stored[ratio.name] / factor
    ]


def read_stored(path: Path, known: Sequence[str]) -> dict[str, float]:
    """Stored ratios by name. One that nothing is measured for any more would be a check that checks
    nothing."""
    try:
        ratios = json.loads(path.read_text(encoding="utf-8"))["ratios"]
        stored = {str(name): float(value) for name, value in ratios.items()}
    except OSError as error:
        raise PrivetError(f"Cannot read the stored ratios {path}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PrivetError(
            f"{path} holds no stored ratios: write them with  privet bench --store {path}."
        ) from None
    wrong = [
        name for name, value in stored.items() if name not in known or not 0 < value < float("inf")
    ]
    if wrong:
        raise PrivetError(
            f"{path} stores a ratio for '{wrong[0]}' that cannot be checked; what is measured:"
            f" {', '.join(known)}."
        )
    return stored


def store(path: Path, found: Sequence[Ratio]) -> None:
    """Keep medians for later checks; those of other cases stay as they are."""
    before: dict[str, float] = {}
    if path.exists():
        before = read_stored(
            path, [*json.loads(path.read_text(encoding="utf-8")).get("ratios", {})]
        )
    ratios = before | {ratio.name: round(ratio.median, 3) for ratio in found}
    write_text(path, json.dumps({"ratios": ratios, "machine": machine()}, indent=1) + "\n")


def save(path: Path, found: Sequence[Ratio]) -> None:
    rows = [
        {
            "name": ratio.name,
            "what": ratio.what,
            "reference": ratio.reference,
            "ratio": round(ratio.median, 4),
            "least": round(min(ratio.values), 4),
            "most": round(max(ratio.values), 4),
            "turns": [round(v, 4) for v in ratio.values],
            "seconds": {
                "ours": round(ratio.seconds[0], 4),
                "reference": round(ratio.seconds[1], 4),
            },
        }
        for ratio in found
    ]
    write_text(path, json.dumps({"ratios": rows, "machine": machine()}, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """What a figure has to be read with."""
    from privet.core.parallel_map import (
        cores,  # with pandas, which `privet --help` need not wait for
    )

    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        info = []
    versions = {}
    for name in ("privet", "torch", "numpy", "onnxruntime", "pillow", "pyarrow", "pandas"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": next(
            (line.partition(":")[2].strip() for line in info if line.startswith("model name")),
            platform.machine(),
        ),
        "cores": cores(),
        "load_average": (
            [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []
        ),
        "python": platform.python_version(),
        **versions,
    }


def _pair(ours: Work, reference: Work, turn: int) -> tuple[float, float]:
    """Seconds of both; who goes first changes, because the first may pay for what the other finds
    done."""
    if turn % 2:
        second, first = _seconds(reference), _seconds(ours)
        return first, second
    return _seconds(ours), _seconds(reference)


def _seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ratio(case: Case, pairs: Sequence[tuple[float, float]]) -> Ratio:
    own, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    empty = Ratio(case.name, case.what, case.reference, (), (own, other))
    return replace(empty, values=tuple(reference / ours for ours, reference in pairs))
