"""How often a certificate is wrong, by simulation: people are drawn from laws of which the best
adversary is known exactly, and every bound is compared with it.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --runs 100 --only groups pair --out -

At 80 % confidence, so that a fault would show: a bound may be below the truth in a fifth of the
runs, and no more. A scenario with several statements, such as groups, misses where any of them is
wrong. The result is benchmarks/results/coverage.json; the exit code is 1 where a scenario misses
more often than one run in five, beyond chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

from privet.evidence.certificate.all_priors import certify_all_priors
from privet.evidence.certificate.coded_people import BALANCED, CodedPeople, certify_people
from privet.evidence.certificate.confidence import share_delta
from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
from privet.evidence.certificate.several_records import one_per_person, tuples_of_records
from privet.evidence.certificate.side_information import (
    SideInformation,
    certify_average,
    certify_groups,
)
from privet.evidence.certificate.smoothing import Draws
from privet.evidence.certificate.symbols import response

DELTA = 0.2
# Where only the bound on balanced accuracy is looked at: it then gets all of DELTA.
ALONE = DELTA / BALANCED
RUNS = 1000
TWO, THREE = ("a", "b"), ("a", "b", "c")
# Enough for laws as smooth as these.
DRAWS = Draws(2000)

Generator = np.random.Generator
Statements = list[tuple[float | None, float]]
Draw = Callable[[Generator], Statements]


@dataclass(frozen=True)
class Scenario:
    """A law of people.

    Parameters:
        name: How the command line calls it.
        title: What is drawn and certified, in words.
        people: How many are drawn in each run.
        draw: One run: bounds, each with the truth.
    """

    name: str
    title: str
    people: int
    draw: Draw


@dataclass(frozen=True)
class Coverage:
    """What many runs of a scenario gave.

    Parameters:
        misses: Share of runs in which any bound is below the truth.
        above: How far the lowest bound of a run lies above its truth, in the median run.
        below: How far below the truth the worst of all runs is; 0 where none is.
        statements: Bounds in each run.
    """

    misses: float
    above: float
    below: float
    statements: int


def simulate(scenario: Scenario, runs: int, seed: int = 0) -> Coverage:
    """So many runs. A bound that says nothing, None, is 1."""
    margins = []
    for run in range(runs):
        pairs = scenario.draw(np.random.default_rng([seed, run]))
        margins.append(min((1.0 if bound is None else bound) - truth for bound, truth in pairs))
    lowest = float(min(margins))
    misses = sum(margin < -1e-9 for margin in margins) / runs
    return Coverage(misses, float(np.median(margins)), max(0.0, -lowest), len(pairs))


def two_gaussians(n: int, gap: float, sigma: float, d: int = 1, releases: int = 1) -> Draw:
    """Codes N(value * gap, I) along the first axis, n people of either value."""
    truth = float(norm.cdf(gap / 2 / math.sqrt(1 + sigma**2 / releases)))
    noise = GaussianNoise(sigma, releases, DRAWS)

    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        codes = random.normal(size=(2 * n, d))
        codes[:, 0] += gap * labels
        people = CodedPeople(codes, labels, np.arange(2 * n), "x", TWO)
        found = certify_people(people, noise, delta=ALONE)
        return [(found.bound, truth)]

    return draw


def told(random: Generator, labels: Any, right: Any) -> Any:
    """Two symbols: the value itself with this probability, else the other."""
    return np.where(random.random(len(labels)) < right, labels, 1 - labels)


def symbols(n: int, right: float) -> Draw:
    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        people = CodedPeople(told(random, labels, right), labels, np.arange(2 * n), "x", TWO)
        return [(certify_people(people, RandomisedSymbols(2), delta=ALONE).bound, right)]

    return draw


def many_symbols(n: int, size: int, flip: float) -> Draw:
    """Eight symbols or more, of which one half is likelier under each value."""
    laws = np.tile(1 / size, (2, size))
    laws[0, : size // 2] *= 1.5
    laws[0, size // 2 :] *= 0.5
    laws[1] = laws[0, ::-1]
    channel = response(size, flip)
    truth = float((laws @ channel).max(0).sum() / 2)

    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        drawn = (random.random(2 * n)[:, None] > laws.cumsum(1)[labels]).sum(1)
        people = CodedPeople(drawn, labels, np.arange(2 * n), "x", TWO)
        found = certify_people(people, RandomisedSymbols(size, channel), delta=ALONE)
        return [(found.bound, truth)]

    return draw


def bounded_codes(n: int, right: float, sigma: float) -> Draw:
    """Codes of +-1 from a network that keeps them within an interval of 2."""
    truth = 0.5 + (2 * right - 1) / 2 * float(2 * norm.cdf(1 / sigma) - 1)

    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        codes = 2.0 * told(random, labels, right) - 1
        people = CodedPeople(codes, labels, np.arange(2 * n), "x", TWO)
        found = certify_people(people, GaussianNoise(sigma, width=2.0), delta=ALONE)
        return [(found.bound, truth)]

    return draw


def three_values(n: int, gap: float, sigma: float) -> Draw:
    t = gap / 2 / math.hypot(1, sigma)
    truth = float(4 * norm.cdf(t) - 1) / 3

    def draw(random: Generator) -> Statements:
        labels = np.arange(3 * n) % 3
        people = CodedPeople(
            random.normal(size=3 * n) + gap * labels, labels, np.arange(3 * n), "x", THREE
        )
        return [(certify_people(people, GaussianNoise(sigma), delta=ALONE).bound, truth)]

    return draw


def both_accuracies(n: int, right: float, rare: float) -> Draw:
    """Balanced accuracy and accuracy at the real frequencies, both at once."""

    def draw(random: Generator) -> Statements:
        labels = (random.random(n) < rare).astype(int)
        people = CodedPeople(told(random, labels, right), labels, np.arange(n), "x", TWO)
        found = certify_people(people, RandomisedSymbols(2), delta=DELTA)
        return [(found.bound, right), (found.at_prior, max(right, 1 - rare))]

    return draw


def several_records(n: int, records: int, gap: float, sigma: float) -> Draw:
    """Half of a code's variance is the person's own."""
    truth = float(norm.cdf(gap / 2 / math.hypot(1, sigma)))

    def draw(random: Generator) -> Statements:
        people = persons(random, n, records, gap)
        return [(certify_people(people, GaussianNoise(sigma), delta=ALONE).bound, truth)]

    return draw


def persons(random: Generator, n: int, records: int, gap: float) -> CodedPeople:
    labels = np.arange(2 * n) % 2
    own = random.normal(size=(2 * n, 1)) + random.normal(size=(2 * n, records))
    codes = gap * labels[:, None] + own * math.sqrt(0.5)
    return CodedPeople(
        codes.ravel(), labels.repeat(records), np.arange(2 * n).repeat(records), "x", TWO
    )


def contradicting(n: int, right: float) -> Draw:
    """Everybody has a record of either value, both told or neither."""

    def draw(random: Generator) -> Statements:
        labels, person = np.arange(2 * n) % 2, np.arange(2 * n) // 2
        truthful = (random.random(n) < right)[person]
        people = CodedPeople(np.where(truthful, labels, 1 - labels), labels, person, "x", TWO)
        return [(certify_people(people, RandomisedSymbols(2), delta=ALONE).bound, right)]

    return draw


def by_records(n: int) -> Draw:
    """Every other person has nine records, all alike, and is told more often: weighing records."""
    truth = (0.55 + 9 * 0.75) / 10

    def draw(random: Generator) -> Statements:
        labels, often = np.arange(2 * n) % 2, np.arange(2 * n) // 2 % 2
        seen, records = told(random, labels, np.where(often, 0.75, 0.55)), np.where(often, 9, 1)
        people = CodedPeople(
            seen.repeat(records), labels.repeat(records), np.arange(2 * n).repeat(records),
            "x", TWO, "records",
        )  # fmt: skip
        return [(certify_people(people, RandomisedSymbols(2), delta=ALONE).bound, truth)]

    return draw


def groups(n: int, rights: Sequence[float]) -> Draw:
    """Every group at once, n people of either value in each."""

    def draw(random: Generator) -> Statements:
        people, side = in_groups(random, n, rights)
        found = certify_groups(people, RandomisedSymbols(2), [side], delta=DELTA, fewest=2)
        return [(group.bound, rights[int(group.value)]) for group in found]

    return draw


def in_groups(
    random: Generator, n: int, rights: Sequence[float]
) -> tuple[CodedPeople, SideInformation]:
    size = 2 * n * len(rights)
    labels, group = np.arange(size) % 2, np.arange(size) // 2 % len(rights)
    people = CodedPeople(
        told(random, labels, np.asarray(rights)[group]), labels, np.arange(size), "x", TWO
    )
    return people, SideInformation("group", tuple(map(str, range(len(rights)))), group)


def gaussian_groups(n: int, gaps: Sequence[float], sigma: float) -> Draw:
    truth = [float(norm.cdf(gap / 2 / math.hypot(1, sigma))) for gap in gaps]

    def draw(random: Generator) -> Statements:
        size = 2 * n * len(gaps)
        labels, group = np.arange(size) % 2, np.arange(size) // 2 % len(gaps)
        codes = random.normal(size=size) + np.asarray(gaps)[group] * labels
        people = CodedPeople(codes, labels, np.arange(size), "x", TWO)
        side = SideInformation("group", tuple(map(str, range(len(gaps)))), group)
        found = certify_groups(people, GaussianNoise(sigma), [side], delta=DELTA, fewest=2)
        return [(one.bound, truth[int(one.value)]) for one in found]

    return draw


def pair(n: int, sigma: float) -> Draw:
    """Codes that tell the value only to who knows s: N(1, 1) where value and s agree, else N(-1,
    1)."""
    truth = float(norm.cdf(1 / math.hypot(1, sigma)))

    def draw(random: Generator) -> Statements:
        labels, known = np.arange(2 * n) % 2, random.integers(0, 2, 2 * n)
        codes = random.normal(size=2 * n) + np.where(labels == known, 1, -1)
        people = CodedPeople(codes, labels, np.arange(2 * n), "x", TWO)
        side = SideInformation("s", TWO, known)
        found = certify_average(people, GaussianNoise(sigma), side, delta=ALONE)
        return [(found.bound, truth)]

    return draw


def pair_of_symbols(n: int, rights: Sequence[float]) -> Draw:
    """s says how well the symbol tells: V(s, z) is the mean."""

    def draw(random: Generator) -> Statements:
        labels, known = np.arange(2 * n) % 2, random.integers(0, len(rights), 2 * n)
        people = CodedPeople(
            told(random, labels, np.asarray(rights)[known]), labels, np.arange(2 * n), "x", TWO
        )
        side = SideInformation("s", tuple(map(str, range(len(rights)))), known)
        found = certify_average(people, RandomisedSymbols(2), side, delta=ALONE)
        return [(found.bound, float(np.mean(rights)))]

    return draw


def coupled_pairs(n: int, alike: float, sigma: float) -> Draw:
    """Two records of +-1 each, alike with this probability under one value and opposite under the
    other; the difference of the two laws is a product, so that TV is a square."""
    truth = 0.5 + (2 * alike - 1) / 2 * float(2 * norm.cdf(1 / sigma) - 1) ** 2

    def draw(random: Generator) -> Statements:
        people = coupled(random, n, alike)
        found = certify_people(
            tuples_of_records(people, 2), GaussianNoise(sigma, draws=DRAWS), delta=ALONE
        )
        return [(found.bound, truth)]

    return draw


def coupled(random: Generator, n: int, alike: float) -> CodedPeople:
    labels, first = np.arange(2 * n) % 2, random.choice([-1.0, 1.0], 2 * n)
    second = first * np.where(told(random, labels, alike) == 1, 1, -1)
    return CodedPeople(
        np.stack([first, second], 1).ravel(),
        labels.repeat(2),
        np.arange(2 * n).repeat(2),
        "x",
        TWO,
    )


def coupled_symbols(n: int, alike: float, flip: float) -> Draw:
    same = (1 - flip / 2) ** 2 + (flip / 2) ** 2
    truth = alike * same + (1 - alike) * (1 - same)
    channel = response(2, flip)

    def draw(random: Generator) -> Statements:
        people = coupled(random, n, alike)
        pairs = tuples_of_records(people, 2)
        pairs = CodedPeople((pairs.codes > 0).astype(int), pairs.labels, pairs.person, "x", TWO)
        return [(certify_people(pairs, RandomisedSymbols(2, channel), delta=ALONE).bound, truth)]

    return draw


def four_records(n: int, gap: float, sigma: float) -> Draw:
    """Four independent records, seen together: four numbers, by draws."""
    truth = float(norm.cdf(gap / math.hypot(1, sigma)))

    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        codes = (random.normal(size=(2 * n, 4)) + gap * labels[:, None]).ravel()
        people = CodedPeople(codes, labels.repeat(4), np.arange(2 * n).repeat(4), "x", TWO)
        found = certify_people(
            tuples_of_records(people, 4), GaussianNoise(sigma, draws=DRAWS), delta=ALONE
        )
        return [(found.bound, truth)]

    return draw


def per_person(n: int, records: int, gap: float, sigma: float) -> Draw:
    """The mean code of so many records and noise once."""
    truth = float(norm.cdf(gap / 2 / math.sqrt(0.5 + 0.5 / records + sigma**2)))

    def draw(random: Generator) -> Statements:
        people = one_per_person(persons(random, n, records + 2, gap), records)
        return [(certify_people(people, GaussianNoise(sigma), delta=ALONE).bound, truth)]

    return draw


def all_priors(n: int, shares: Sequence[float]) -> Draw:
    """ROC curve, posterior and (epsilon, delta) of three symbols, which are as frequent among
    people of the other value the other way round: all points at once."""
    p, q = np.array(shares), np.array(shares[::-1])
    cuts = np.append(0.0, p.cumsum())
    falses = np.append(0.0, q.cumsum())

    def stick(t: float) -> float:
        return float(np.maximum(p - t * q, 0).sum())

    def draw(random: Generator) -> Statements:
        labels = np.arange(2 * n) % 2
        drawn = (random.random(2 * n)[:, None] > np.stack([p, q])[labels].cumsum(1)).sum(1)
        people = CodedPeople(np.minimum(drawn, 2), labels, np.arange(2 * n), "x", TWO)
        found = certify_all_priors(people, RandomisedSymbols(3), delta=DELTA)
        assert found is not None
        curve = [(point.bound, float(np.interp(point.at, falses, cuts))) for point in found.roc]
        tail = [
            (point.bound, float(p[p * (1 - point.at) >= point.at * q].sum()))
            for point in found.posterior
        ]
        sticks = [(point.bound, stick(math.exp(point.at))) for point in found.epsilon_delta]
        return [
            *curve,
            *tail,
            *sticks,
            (found.leakage_bits, math.log2(1 + stick(1.0))),
            (1 - found.bayes_security, stick(1.0)),
        ]

    return draw


def page(n: int, rights: Sequence[float]) -> Draw:
    """Overall, on average given s, and in every group: one confidence for all of it."""
    mean = float(np.mean(rights))

    def draw(random: Generator) -> Statements:
        people, side = in_groups(random, n, rights)
        share = share_delta(DELTA, {"overall": 2, "average": 1, "groups": 3})
        symbol = RandomisedSymbols(2)
        overall = certify_people(people, symbol, delta=share["overall"])
        average = certify_average(people, symbol, side, delta=share["average"])
        each = certify_groups(people, symbol, [side], delta=share["groups"], fewest=2)
        return [
            (overall.bound, mean),
            (overall.at_prior, mean),
            (average.bound, mean),
            (average.at_prior, mean),
            *((group.bound, rights[int(group.value)]) for group in each),
        ]

    return draw


RIGHTS = (0.55, 0.6, 0.7, 0.8)
SCENARIOS = (
    Scenario("one-number", "one number", 200, two_gaussians(100, 1.5, 1.5)),
    Scenario("two-numbers", "two numbers", 200, two_gaussians(100, 1.5, 3.0, d=2)),
    Scenario("four-numbers", "four numbers, by draws", 200, two_gaussians(100, 1.5, 3.0, d=4)),
    Scenario("releases", "four releases of a record", 200, two_gaussians(100, 1.5, 3.0, 1, 4)),
    Scenario("symbols", "two symbols", 200, symbols(100, 0.7)),
    Scenario("replaced", "eight symbols, 30 % replaced", 400, many_symbols(200, 8, 0.3)),
    Scenario("bounded", "one number, kept within an interval", 200, bounded_codes(100, 0.7, 1.5)),
    Scenario("three-values", "three values", 300, three_values(100, 1.5, 1.5)),
    Scenario("frequencies", "balanced and at real frequencies", 300, both_accuracies(300, 0.8, 0.3)),
    Scenario("records", "four records of a person, one seen", 200, several_records(100, 4, 1.5, 1.5)),
    Scenario("contradicting", "records of both values of everybody", 60, contradicting(60, 0.7)),
    Scenario("by-records", "weighing records, one or nine of a person", 400, by_records(200)),
    Scenario("groups", "four groups, symbols", 480, groups(60, RIGHTS)),
    Scenario("gaussian-groups", "four groups, one number", 800, gaussian_groups(100, (0, 0.5, 1, 2), 1.5)),
    Scenario("pair", "s known, one number", 400, pair(200, 1.5)),
    Scenario("pair-symbols", "s known, symbols", 300, pair_of_symbols(150, RIGHTS)),
    Scenario("coupled", "two coupled records seen", 200, coupled_pairs(100, 0.9, 0.8)),
    Scenario("coupled-symbols", "two coupled symbols seen", 200, coupled_symbols(100, 0.85, 0.2)),
    Scenario("four-records", "four records seen, by draws", 60, four_records(30, 0.7, 2.0)),
    Scenario("per-person", "one release of three records", 200, per_person(100, 3, 1.5, 1.5)),
    Scenario("all-priors", "every prior: ROC, posterior, (ε, δ)", 400, all_priors(200, (0.5, 0.3, 0.2))),
    Scenario("rare", "every prior, symbols that seldom tell", 1000, all_priors(500, (0.06, 0.935, 0.005))),
    Scenario("page", "a page: overall, given s, four groups", 480, page(60, RIGHTS)),
)  # fmt: skip


def study(found: Sequence[tuple[Scenario, Coverage]], runs: int) -> Study:
    """The results as a file that tables.py reads."""

    def points(value: float, digits: int = 1) -> Decimal:
        return Decimal(f"{100 * value:.{digits}f}")

    return Study(
        title="Misses of certificates at 80 % confidence, by simulation",
        command=["OMP_NUM_THREADS=1 python benchmarks/coverage.py"],
        data="people drawn from laws of which the best adversary is known",
        n=None,
        seeds=runs,
        confidence=None,
        machine=None,
        commit=None,
        published_in=None,
        source=None,
        columns=[
            {"key": "scenario", "title": "what is certified"},
            {"key": "people", "title": "people"},
            {"key": "statements", "title": "statements"},
            {"key": "misses", "title": "runs with a miss", "unit": "%"},
            {"key": "above", "title": "above the truth, median", "unit": "points"},
            {"key": "below", "title": "furthest below", "unit": "points"},
        ],
        rows=[
            {
                "scenario": scenario.title,
                "people": scenario.people,
                "statements": one.statements,
                "misses": points(one.misses),
                "above": points(one.above),
                "below": points(one.below),
            }
            for scenario, one in found
        ],
        notes=["Of several statements, the lowest against its truth in each run counts."],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument(
        "--out", default=str(RESULTS / "coverage.json"), help="results file; - writes none"
    )
    given = parser.parse_args(words)
    found = []
    for scenario in SCENARIOS:
        if scenario.name not in given.only:
            continue
        one = simulate(scenario, given.runs)
        found.append((scenario, one))
        sys.stderr.write(
            f"{scenario.name}: misses {100 * one.misses:.1f} %, above {100 * one.above:.1f}, "
            f"furthest below {100 * one.below:.1f}\n"
        )
    if given.out != "-":
        write(Path(given.out), study(found, given.runs))
    return int(any(too_often(one, given.runs) for _, one in found))


def too_often(coverage: Coverage, runs: int) -> bool:
    """Whether so many misses are more than chance makes of the promised rate."""
    return bool(binom.sf(round(coverage.misses * runs) - 1, runs, DELTA) < 1e-3)


if __name__ == "__main__":
    sys.exit(main())
