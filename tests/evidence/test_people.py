"""Drawing people anew covers as often as it says where counting records does not."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom
from scipy.stats import bootstrap as scipy_bootstrap

from privet.evidence import person_intervals as over_people
from privet.evidence.intervals import Interval, balanced_interval, clopper_pearson
from privet.evidence.person_intervals import (
    accuracy_over_people,
    balanced_over_people,
    best_of,
    bootstrap_people,
)

Array = npt.NDArray[Any]


def share(sums: Array) -> Array:
    return np.asarray(sums[:, 0] / sums[:, 1])


def clustered(random: np.random.Generator, people: int, mean: float) -> tuple[Array, Array]:
    """Records of people of whom some are easy to guess and some hard; 1 to 30 records each."""
    sizes = random.integers(1, 31, people)
    ease = random.beta(2 * mean, 2 * (1 - mean), people)
    person = np.repeat(np.arange(people), sizes)
    return person, random.random(len(person)) < ease[person]


def mostly(runs: int, share: float) -> int:
    """Were the true coverage `share`, fewer than this would be seen once in 100,000 such tests."""
    return int(binom.ppf(1e-5, runs, share))


@pytest.mark.parametrize(("people", "mean"), [(8, 0.6), (40, 0.7), (200, 0.9)])
def test_people_are_covered_where_records_are_not(people: int, mean: float) -> None:
    random, runs, by_person, by_record = np.random.default_rng(5), 300, 0, 0
    for _ in range(runs):
        person, right = clustered(random, people, mean)
        ones = np.ones(len(right), int)
        low, high = accuracy_over_people(person, ones, right.astype(int), draws=400)
        by_person += low <= mean <= high
        low, high = clopper_pearson(int(right.sum()), len(right))
        by_record += low <= mean <= high
    # The bootstrap is right only for many people: half a point is granted.
    assert by_person >= mostly(runs, 0.945)
    assert by_record < mostly(runs, 0.85)


def test_balanced_accuracy_is_covered_too() -> None:
    random, runs, by_person, by_record = np.random.default_rng(6), 300, 0, 0
    for _ in range(runs):
        (first, zeros), (second, ones) = clustered(random, 30, 0.9), clustered(random, 90, 0.5)
        truth = np.repeat([0, 1], [len(zeros), len(ones)])
        guesses = np.where(np.concatenate([zeros, ones]), truth, 1 - truth)
        low, high = balanced_over_people(
            np.concatenate([first, second + 30]), truth, guesses, draws=400
        )
        by_person += low <= 0.7 <= high
        low, high = balanced_interval([int(zeros.sum()), int(ones.sum())], [len(zeros), len(ones)])
        by_record += low <= 0.7 <= high
    assert by_person >= mostly(runs, 0.945)
    assert by_record < mostly(runs, 0.85)


@pytest.mark.parametrize("p", [0.0, 0.01, 0.1, 0.5, 0.99, 1.0])
def test_one_record_each_is_covered_up_to_the_ends(p: float) -> None:
    random, runs, n = np.random.default_rng(8), 300, 30
    found = [
        accuracy_over_people(
            range(n), np.ones(n, int), (random.random(n) < p).astype(int), draws=400
        )
        for _ in range(runs)
    ]
    assert sum(low <= p <= high for low, high in found) >= mostly(runs, 0.94)


@pytest.mark.parametrize("n", [2, 5, 20, 500])
def test_none_and_all_of_n_are_clopper_pearsons(n: int) -> None:
    ones, zeros = np.ones(n, int), np.zeros(n, int)
    low, high = accuracy_over_people(range(n), ones, zeros)
    assert low == 0 and high == pytest.approx(clopper_pearson(0, n).high)
    low, high = accuracy_over_people(range(n), ones, ones)
    assert high == 1 and low == pytest.approx(clopper_pearson(n, n).low)
    # More records of the same people are no more people.
    assert accuracy_over_people(np.tile(range(n), 7), np.tile(ones, 7), np.tile(ones, 7)) == (
        low,
        high,
    )


def test_it_is_scipys_percentile_bootstrap_for_many_people() -> None:
    random = np.random.default_rng(0)
    person, right = clustered(random, 400, 0.7)
    sums = np.c_[np.bincount(person, right), np.bincount(person)]
    other = scipy_bootstrap(
        (sums[:, 0], sums[:, 1]),
        lambda a, b, axis: a.sum(axis) / b.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=4000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    low, high = bootstrap_people(person, np.c_[right, np.ones(len(right))], share, draws=4000)
    # A quantile of 4,000 draws errs by about 0.05 deviations, on both sides; the width is four
    # deviations.
    assert (low, high) == pytest.approx(
        (other.low, other.high), abs=0.06 * (other.high - other.low)
    )


def test_order_and_names_change_nothing_and_the_seed_little() -> None:
    random = np.random.default_rng(2)
    person, right = clustered(random, 50, 0.6)
    inputs = np.c_[right, np.ones(len(right))]
    first = bootstrap_people(person, inputs, share)
    order = random.permutation(len(person))
    names = np.array([f"person {i}" for i in random.permutation(50)])
    assert bootstrap_people(names[person][order], inputs[order], share) == first
    assert bootstrap_people(person, inputs, share, seed=1) == pytest.approx(first, abs=0.02)
    assert bootstrap_people(person, inputs, share, seed=1) != first


def test_more_confidence_and_fewer_people_are_wider() -> None:
    person, right = clustered(np.random.default_rng(3), 100, 0.6)
    inputs = np.c_[right, np.ones(len(right))]

    def width(*args: Any) -> float:
        low, high = bootstrap_people(*args)
        return high - low

    widths = [
        width(person, inputs, share, confidence)
        for confidence in (0.8, 0.95, best_of(10), best_of(1000))
    ]
    assert widths == sorted(widths) and widths[-1] > 1.8 * widths[1]  # beyond the draws too
    assert width(person % 10, inputs, share) != width(person, inputs, share)
    few = person < 10
    assert width(person[few], inputs[few], share) > width(person, inputs, share)


def test_a_small_class_widens_the_interval() -> None:
    """Five people who are all read right do not show that such people always are."""
    truth = np.repeat([0, 1], [1000, 5])
    guesses = np.where(np.arange(1005) < 500, 1 - truth, truth)
    low, high = balanced_over_people(range(1005), truth, guesses)
    assert low < 0.5 + 0.5 * clopper_pearson(5, 5).low < 0.75 < high
    truth[-3:] = 0
    assert balanced_over_people(range(1005), truth, truth) == Interval(0, 1)


def test_other_statistics_have_their_own_bounds() -> None:
    random = np.random.default_rng(4)
    loss = random.exponential(size=600)
    low, high = bootstrap_people(
        np.arange(600) // 2, np.c_[loss, np.ones(600)], share, bounds=(0, 50)
    )
    assert 0 < low < loss.mean() < high < 2
    low, high = bootstrap_people(
        np.arange(600), loss > 1, lambda sums: sums[:, 0] / 600 - 0.5, bounds=(-0.5, 0.5)
    )
    assert -0.3 < low < 0 < high - low < 0.1


def test_who_shows_no_spread_gets_all_of_it() -> None:
    assert accuracy_over_people([], [], []) == balanced_over_people([], [], []) == Interval(0, 1)
    assert accuracy_over_people([7] * 50, [1] * 50, [1] * 50) == Interval(0, 1)
    assert bootstrap_people(range(9), np.zeros((9, 2)), share) == Interval(0, 1)
    assert bootstrap_people(range(9), np.zeros((9, 2)), share, bounds=(-1, 2)) == Interval(-1, 2)
    low, high = balanced_over_people(range(50), [1] * 50, [1] * 50)
    assert (low, high) == accuracy_over_people(range(50), [1] * 50, [1] * 50)


@pytest.mark.parametrize("per_person", [1, 5])
def test_a_thousand_draws_of_many_records_take_no_second(per_person: int) -> None:
    random = np.random.default_rng(0)
    truth, guesses = random.integers(0, 5, (2, 20_000))
    begun = time.process_time()
    low, high = balanced_over_people(np.arange(20_000) // per_person, truth, guesses)
    assert time.process_time() - begun < 1
    assert low < 0.2 < high and high - low < 0.03


def test_the_best_of_many_is_covered() -> None:
    """Of ten adversaries at chance the luckiest looks better than chance, unless the interval knows
    of the ten."""
    random, runs, n = np.random.default_rng(9), 2000, 400
    best = random.binomial(n, 0.5, (runs, 10)).max(1)
    plain = sum(clopper_pearson(int(right), n).low <= 0.5 for right in best)
    corrected = sum(clopper_pearson(int(right), n, best_of(10)).low <= 0.5 for right in best)
    assert plain < mostly(runs, 0.9) and corrected >= mostly(runs, 0.95)
    assert best_of(1) == 0.95 and best_of(5, 0.9) == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bootstrap_people([1, 2], [1], share), "have inputs"),
        (lambda: bootstrap_people([1], [[np.nan]], share), "finite"),
        (
            lambda: bootstrap_people([1, 2], np.ones((2, 2)), lambda sums: sums),
            "one value per draw",
        ),
        (lambda: bootstrap_people([1], [1], share, confidence=1), "between 0 and 1"),
        (lambda: bootstrap_people([1], [1], share, draws=0), "draws"),
        (lambda: bootstrap_people([1], [1], share, people=2), "cannot have 2"),
        (lambda: balanced_over_people([1], [-1], [0]), "missing"),
        (lambda: best_of(0), "best of 0"),
        (lambda: best_of(2, 1.0), "between 0 and 1"),
    ],
)
def test_wrong_input_is_named(call: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        call()


@pytest.mark.parametrize("records", [1, 3])
def test_drawing_kinds_is_drawing_people(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    """People with the same sums are told apart by nothing: how many of each kind are drawn has the
    same law either way."""
    random = np.random.default_rng(3)
    person = np.repeat(np.arange(600), records)
    truth = random.integers(0, 2, 600)[person]
    said = np.where(random.random(len(person)) < 0.7, truth, 1 - truth)
    found = []
    for few in (over_people.FEW_KINDS, 10**9):
        monkeypatch.setattr(over_people, "FEW_KINDS", few)
        found.append(balanced_over_people(person, truth, said, draws=20_000))
    assert np.abs(np.subtract(*found)).max() < 0.003, (
        "the quantiles' own error is about a tenth of the interval's hundredth"
    )
