"""`privet bench`: measure all cases, keep the ratios, and hold them against stored ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from privet.benchmarking.cases import CASES
from privet.benchmarking.ratios import Ratio, check, measure, read_stored, save, store
from privet.core.errors import unknown


def bench(
    names: Iterable[str] = (),
    *,
    turns: int = 3,
    out: Path | None = None,
    stored: Path | None = None,
    keep: Path | None = None,
    each: Callable[[Ratio], None] = lambda ratio: None,
) -> tuple[list[Ratio], list[str]]:
    """How fast Privet is, as ratios to named references that run in turn with it.

    names: which cases; all without a name.
    turns: how often ours and the reference take turns.
    out: a JSON file for the ratios, with machine, versions and spread.
    stored: ratios to hold these against.
    keep: a JSON file to keep these ratios in, for later checks.
    each: called with every ratio as it comes.

    Returns the ratios, and a sentence for each that is worse than `stored` by a factor of 1.5.
    """
    chosen = list(names) or list(CASES)
    for name in chosen:
        if name not in CASES:
            raise unknown("case", name, CASES)
    limits = read_stored(stored, list(CASES)) if stored else {}
    ratios = []
    for name in chosen:
        ratios.append(measure(CASES[name], turns, lambda ratio: not check([ratio], limits)))
        each(ratios[-1])
    if out is not None:
        save(out, ratios)
    if keep is not None:
        store(keep, ratios)
    return ratios, check(ratios, limits)
