"""Privet's certificate for symbols against that of FARE, on laws of which the best adversary is
known.

    python benchmarks/fare.py

FARE (Jovanovic, Balunovic, Dimitrov and Vechev, FARE: Provably fair representation learning with
practical certificates, ICML 2023) encodes people by a decision tree and bounds every
adversary's balanced accuracy from the leaf that a person falls into, of which there are k:

    V  =  E max(alpha P(a = 0 | leaf), beta P(a = 1 | leaf)),     alpha = 1 / (2 P(a = 0)), ...

with alpha and beta bounded on one part of the people and each leaf's conditional probability on
a second, both by Clopper and Pearson, and the mean over leaves on a third, by Hoeffding. As there,
a tenth of delta goes to the first, a tenth to the third, the rest to the leaves in equal parts;
"given the label" (equalised odds) bounds either label with half of delta, and the figure is the
mean of the two. Written anew, in the form of the authors' published experiments. The result is
benchmarks/results/fare.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta as beta_law

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

from privet.evidence.certificate.coded_people import CodedPeople
from privet.evidence.certificate.mechanisms import RandomisedSymbols
from privet.evidence.certificate.side_information import SideInformation, certify_groups
from privet.evidence.certificate.symbols import certify_alphabet

Array = npt.NDArray[Any]
DELTA = 0.01
RUNS = 20
# Shares of delta, as FARE's experiments have them: 0.005 of 0.05 each.
FOR_PRIOR = FOR_MEAN = 0.1
TWO = ("a", "b")


@dataclass(frozen=True)
class Law:
    """People of two equally frequent values, whose symbol is drawn by value and label.

    Parameters:
        size: Symbols.
        people: How many a certificate is computed from.
        truth: Balanced accuracy of the best adversary, among people of either label too.
        seed: Of the law itself.
    """

    size: int
    people: int
    truth: float
    seed: int = 0

    def table(self) -> Array:
        """(label, value, symbol): symbols of unequal frequency, half of them likelier under one
        value and as much rarer under the other."""
        random = np.random.default_rng(self.seed)
        half = random.dirichlet(np.full(self.size // 2, 5.0), 2) / 2
        tilt = 2 * self.truth - 1
        rows = [
            [np.concatenate([(1 + tilt) * one, (1 - tilt) * one[::-1]]),
             np.concatenate([(1 - tilt) * one, (1 + tilt) * one[::-1]])]
            for one in half
        ]  # fmt: skip
        return np.array(rows)

    def draw(self, random: np.random.Generator, people: int) -> tuple[Array, Array, Array]:
        """Symbols, values and labels."""
        value, label = random.integers(0, 2, people), random.integers(0, 2, people)
        ends = self.table().cumsum(2)
        symbol = (random.random(people)[:, None] > ends[label, value]).sum(1)
        return np.minimum(symbol, self.size - 1), value, label


LAWS = (Law(8, 16_000, 0.528), Law(16, 2_000, 0.522))


def clopper_pearson(successes: Array, number: Array, delta: float) -> tuple[Array, Array]:
    """Both ends of an interval for binomial proportions."""
    x, n = np.asarray(successes, dtype=float), np.asarray(number, dtype=float)
    low = np.where(x > 0, beta_law.ppf(delta / 2, np.maximum(x, 1), n - x + 1), 0.0)
    high = np.where(x < n, beta_law.ppf(1 - delta / 2, x + 1, np.maximum(n - x, 1)), 1.0)
    return low, high


def fare(parts: Sequence[tuple[Array, Array]], size: int, delta: float) -> float:
    """FARE's bound from symbols and values of three parts of the people."""
    (_, first), (symbol, value), (third, _) = parts
    low, high = clopper_pearson((first == 0).sum(), len(first), FOR_PRIOR * delta)
    alpha, beta = 1 / (2 * max(float(low), 1e-12)), 1 / (2 * max(1 - float(high), 1e-12))
    number = np.bincount(symbol, minlength=size)
    zeros = np.bincount(symbol[value == 0], minlength=size)
    each = (1 - FOR_PRIOR - FOR_MEAN) * delta / size
    lows, highs = clopper_pearson(zeros, number, each)
    leaves = np.minimum(np.maximum(alpha * highs, beta * (1 - lows)), max(alpha, beta))
    share = np.bincount(third, minlength=size) / len(third)
    width = float(leaves.max() - leaves.min())
    mean = width * np.sqrt(np.log(1 / (FOR_MEAN * delta)) / (2 * len(third)))
    return min(1.0, float(share @ leaves + mean))


def fare_parity(law: Law, random: np.random.Generator, each: int) -> float:
    """FARE from three parts of so many people."""
    drawn = [law.draw(random, each)[:2] for _ in range(3)]
    return fare(drawn, law.size, DELTA)


def fare_odds(law: Law, random: np.random.Generator, each: int) -> float:
    """FARE given the label: the mean over labels."""
    drawn = [law.draw(random, each) for _ in range(3)]
    bounds = [
        fare([(s[y == label], a[y == label]) for s, a, y in drawn], law.size, DELTA / 2)
        for label in (0, 1)
    ]
    return float(np.mean(bounds))


def ours_parity(law: Law, random: np.random.Generator) -> float:
    symbol, value, _ = law.draw(random, law.people)
    found = certify_alphabet(
        symbol, law.size, None, value, np.arange(law.people), "x", TWO, confidence=1 - DELTA
    )
    return 1.0 if found.bound is None else found.bound


def ours_odds(law: Law, random: np.random.Generator) -> float:
    symbol, value, label = law.draw(random, law.people)
    people = CodedPeople(symbol, value, np.arange(law.people), "x", TWO)
    groups = certify_groups(
        people, RandomisedSymbols(law.size), [SideInformation("label", TWO, label)], delta=DELTA
    )
    return float(np.mean([1.0 if group.bound is None else group.bound for group in groups]))


def measured(law: Law, what: str, runs: int) -> dict[str, Any]:
    """A row of the table."""
    columns: dict[str, list[float]] = {"ours": [], "fare": [], "fare_thrice": []}
    for run in range(runs):
        random = np.random.default_rng([law.size, run])
        ours, theirs = (ours_odds, fare_odds) if what == "given the label" else (
            ours_parity, fare_parity)  # fmt: skip
        columns["ours"].append(ours(law, random))
        columns["fare"].append(theirs(law, random, law.people // 3))
        columns["fare_thrice"].append(theirs(law, random, law.people))
    row: dict[str, Any] = {
        "statement": what,
        "symbols": law.size,
        "people": law.people,
        "truth": _percent(law.truth),
    }
    for key, bounds in columns.items():
        row[key] = {
            "value": _percent(float(np.mean(bounds))),
            "low": _percent(min(bounds)),
            "high": _percent(max(bounds)),
        }
    return row


def _percent(value: float) -> Decimal:
    return Decimal(f"{100 * value:.1f}")


def study(rows: Sequence[dict[str, Any]], runs: int) -> Study:
    return Study(
        title="Certified balanced accuracy, 99 %, against FARE's bound",
        command=["python benchmarks/fare.py"],
        data="people of two values drawn from known laws over symbols",
        n=None,
        seeds=runs,
        confidence=None,
        machine=None,
        commit=None,
        published_in=None,
        source="Jovanović, Balunović, Dimitrov and Vechev, FARE, ICML 2023",
        columns=[
            {"key": "statement", "title": "statement"},
            {"key": "symbols", "title": "symbols"},
            {"key": "people", "title": "people"},
            {"key": "truth", "title": "truth", "unit": "%"},
            {"key": "ours", "title": "Privet", "unit": "%"},
            {"key": "fare", "title": "FARE, people split in three", "unit": "%"},
            {"key": "fare_thrice", "title": "FARE, three times the people", "unit": "%"},
        ],
        rows=rows,
        notes=["In brackets the lowest and highest of the runs."],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument(
        "--out", default=str(RESULTS / "fare.json"), help="results file; - writes none"
    )
    given = parser.parse_args(words)
    rows = [
        measured(law, what, given.runs)
        for what in ("demographic parity", "given the label")
        for law in LAWS
    ]
    for row in rows:
        sys.stderr.write(f"{row}\n")
    if given.out != "-":
        write(Path(given.out), study(rows, given.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
