"""Search of a method's dial: the most useful release that a panel of attackers reads at most so
well.

The dial's values come from the method's `sweep`, from most useful to most private, and lie between
its neighbours, or beyond its last one. The middle is tried first, then the range is halved: a
trial that the panel reads above the target makes the rest of the search more private, another one
more useful. Of the trials at or below the target the most useful one wins.

Every trial has a folder of its own: the release, as soon as it is learned (until then, its
checkpoint), and `trial.json`, as soon as it was attacked. A search that was killed goes on from
there, and comes to the same release.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from privet.auditing.batteries import Battery, find_battery
from privet.auditing.panel import Panel
from privet.core.errors import PrivetError, refuse
from privet.core.files import write_text
from privet.core.progress import console
from privet.methods.method import Method, Problem
from privet.nets.device import pick
from privet.release.release import Release
from privet.train import distributed
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run

# The folder of the trials, in that of the release.
TRIALS = "search"
RESULT = "trial.json"
# Names the work of a trial, so that one for other data, settings or attackers is refused.
WORK = "work.txt"
# Most trials, and how close, in steps of the sweep, two values are between which none is tried.
MOST_TRIALS = 8
RESOLUTION = 0.3
# Steps that a search may go beyond the most private value of a sweep.
BEYOND = 4
# A sweep whose neighbours differ by less than this factor is one of shares, not of sizes.
LEAST_RATIO = 1.5


@dataclass(frozen=True)
class Trial:
    """One value of the dial, tried.

    Parameters:
        value: Of the dial.
        leak: What the strongest attacker of the panel reads, balanced accuracy on *select*.
        by: Who that is.
        attribute: What it reads.
        kept: What the release's card says about what is kept: nats of a code, share that is lost.
    """

    value: float
    leak: float
    by: str
    attribute: str
    kept: dict[str, float]

    def sentence(self, dial: str, target: float) -> str:
        """Both figures, for a line of progress.

        >>> Trial(0.01, 0.575, "trees", "sex", {"lost": 0.3, "nats": 12.0}).sentence("beta", 0.6)
        'beta 0.01: sex read at 0.575 by trees (target 0.6: met); lost 0.3, nats 12'
        """
        met = "met" if self.leak <= target else "missed"
        kept = ", ".join(f"{name} {value:.3g}" for name, value in self.kept.items())
        return (
            f"{dial} {self.value:g}: {self.attribute} read at {self.leak:.3f} by {self.by} "
            f"(target {target:g}: {met})" + (f"; {kept}" if kept else "")
        )


def value_at(sweep: Sequence[float], place: float) -> float:
    """The dial's value at a place of the sweep, between its values or beyond its end.

    >>> [value_at((1e-3, 1e-2, 1e-1), place) for place in (0, 0.5, 2, 3)]
    [0.001, 0.00316, 0.1, 1.0]
    >>> value_at((0.0, 0.5, 1.0), 0.5)
    0.25
    """
    first = min(int(place), len(sweep) - 2)
    low, high, share = sweep[first], sweep[first + 1], place - first
    if low > 0 and high > 0:
        return float(f"{math.exp((1 - share) * math.log(low) + share * math.log(high)):.3g}")
    return float(f"{(1 - share) * low + share * high:.3g}")


def beyond(method: type[Method]) -> int:
    """How many steps a search may go beyond the end of the method's sweep: none where the dial is a
    share, or has no room there."""
    *_, before, last = method.sweep
    if min(before, last) <= 0 or 1 / LEAST_RATIO < last / before < LEAST_RATIO:
        return 0
    low, high = method.ranges.get(method.dial, (0.0, math.inf))
    inside = [low <= value_at(method.sweep, len(method.sweep) + i) <= high for i in range(BEYOND)]
    return inside.index(False) if False in inside else BEYOND


def next_place(steps: int, further: int, missed: float | None, met: float | None) -> float | None:
    """Where to try next, given the most private place that missed the target and the most useful
    one that met it; None where the search is over.

    >>> next_place(4, 2, None, None), next_place(4, 2, 2, None), next_place(4, 2, 4, None)
    (2.0, 4.0, 5.0)
    >>> next_place(4, 2, 1, 2), next_place(4, 2, None, 0), next_place(4, 2, 6, None)
    (1.5, None, None)
    """
    if missed is None and met is None:
        return steps / 2
    if met is None:
        assert missed is not None
        place = float(steps if missed < steps else missed + 1)
        return place if place <= steps + further else None
    if missed is None:
        return 0.0 if met > 0 else None
    return (met + missed) / 2 if met - missed > RESOLUTION else None


def check_target(method: Method, problem: Problem, target: float) -> None:
    """Refuse what a search cannot be for, before anything is learned."""
    kind = type(method)
    numbers = [a.name for a in problem.private if not problem.data.attribute(a.name).is_class]
    blind = max((1 / a.classes for a in problem.private), default=0.0)
    few = [part for part in ("attack", "select") if not len(problem.data.part(part))]
    refuse(
        (
            not kind.dial or len(kind.sweep) < 2,
            f"The method {kind.name} has no dial to search: leave out --target.",
        ),
        (
            bool(numbers),
            f"--target is a share of right guesses, and '{''.join(numbers[:1])}' is a number: give "
            "it bins in a --schema file.",
        ),
        (
            target <= blind or target >= 1,
            f"A target of {target:g} cannot be met or missed: guessing blindly is right {blind:.2g}"
            " of the time, and nobody is right more often than always.",
        ),
        (
            bool(few),
            "A search attacks releases with the people of attack and select, and "
            f"{''.join(few[:1])} has none: leave out --target.",
        ),
        (
            distributed.size() > 1,
            "A search for a target runs in one process: leave out torchrun, or --target.",
        ),
    )


class DialSearch:
    """A search under way.

    Parameters:
        method: Settings of all trials but the dial.
        problem: What to learn from and what to hide.
        target: What the panel may read at most.
        battery: The panel.
        run: How to learn; `run.folder` is where trials are kept.
    """

    def __init__(
        self, method: Method, problem: Problem, target: float, battery: str | Battery, run: Run
    ) -> None:
        check_target(method, problem, target)
        assert run.folder is not None, "trials are kept on disk"
        self.method, self.problem, self.target, self.run = method, problem, target, run
        self.battery, self.folder = find_battery(battery), run.folder / TRIALS
        device = pick(run.device)
        self.panel = Panel(
            problem.data, problem.private, self.battery, method.seed, device, run.progress
        )
        if self.folder.exists() and not run.resume:
            raise PrivetError(
                f"{run.folder} holds an unfinished search: go on with --resume, or remove "
                f"{self.folder} first."
            )

    def play(self) -> Release:
        """The most useful release of those that met the target."""
        kind, tried = type(self.method), list[tuple[float, Trial]]()
        steps, further = len(kind.sweep) - 1, beyond(kind)
        missed: float | None = None
        met: float | None = None
        while len(tried) < MOST_TRIALS:
            place = next_place(steps, further, missed, met)
            if place is None:
                break
            trial = self.trial(value_at(kind.sweep, place))
            tried.append((place, trial))
            if trial.leak <= self.target:
                met = place
            else:
                missed = place
            sentence = trial.sentence(kind.dial, self.target)
            console.print(
                f"Trial {len(tried)}: {sentence}", markup=False, highlight=False, soft_wrap=True
            )
        trials = [trial for _, trial in sorted(tried, key=lambda pair: pair[0])]
        if met is None:
            raise PrivetError(self._nothing(trials))
        chosen = next(trial for place, trial in tried if place == met)
        release = Release.load(self._folder(chosen.value), self.run.device)
        release.card["search"] = {
            "dial": kind.dial,
            "target": self.target,
            "battery": self.battery.name,
            "part": "select",
            "people": self._people(),
            "trials": [asdict(trial) for trial in trials],
        }
        return release

    def trial(self, value: float) -> Trial:
        """Learn with this value of the dial, and attack; what is on disk already is not done
        again."""
        dial = type(self.method).dial
        whole = isinstance(getattr(self.method, dial), int)
        method = copy.copy(self.method)
        method.set_params(**{dial: round(value) if whole else value})
        folder, work = self._folder(value), f"{method.identity(self.problem)} {self.battery!r}"
        if (folder / WORK).exists() and (folder / WORK).read_text() != work:
            raise PrivetError(
                f"{self.folder} holds a search for other data, settings or attackers: remove it "
                "first."
            )
        if (folder / RESULT).exists():
            return Trial(**json.loads((folder / RESULT).read_text()))
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / WORK, work)
        if not (folder / "card.json").exists():
            log = self.run.log and self.run.log.within(folder.name)
            made = method.fit_problem(self.problem, replace(self.run, folder=folder, log=log))
            made.save(folder)
            (folder / CHECKPOINT).unlink(missing_ok=True)
        release = Release.load(folder, self.run.device)
        reading = self.panel.read(release)
        trial = Trial(value, *reading, kept=_kept(release.card))
        write_text(folder / RESULT, json.dumps(asdict(trial)) + "\n")
        return trial

    def clear(self) -> None:
        """Remove the trials, after the release that won was written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _folder(self, value: float) -> Path:
        return self.folder / f"{type(self.method).dial}-{value:g}"

    def _people(self) -> int:
        return len(set(self.problem.data.part("select").people.tolist()))

    def _nothing(self, trials: Sequence[Trial]) -> str:
        least = min(trials, key=lambda trial: trial.leak)
        people = self._people()
        return (
            f"No value of {type(self.method).dial} met the target {self.target:g}: the least that "
            f"was read is {least.leak:.3f}, at {least.value:g}, by {least.by}. With {people:,} "
            f"people to choose on, about {1 / max(people, 1) ** 0.5:.2f} of that is chance. Aim "
            "higher, change other settings, or bring more people."
        )


def _kept(card: dict[str, Any]) -> dict[str, float]:
    """What a card says about what is kept, on *select*."""
    figures = {"lost": card.get("lost", {}).get("share"), "nats": card.get("rate", {}).get("nats")}
    return {name: float(value) for name, value in figures.items() if value is not None}
