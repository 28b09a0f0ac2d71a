"""Noise on counts follows its law, and shares are right in the mean."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from privet.evidence.private_counts import discrete_laplace, half_width, private_counts
from privet.evidence.randomised_answers import shares, told_answer, truth_probability


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_the_noise_has_the_law_that_it_should(epsilon: Fraction) -> None:
    generator, n = random.Random(1), 20_000
    drawn = Counter(discrete_laplace(epsilon, generator.randrange) for _ in range(n))
    ratio = math.exp(-epsilon)
    for k in range(-3, 4):
        expected = (1 - ratio) / (1 + ratio) * ratio ** abs(k)
        assert abs(drawn[k] / n - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_no_answer_is_more_than_e_to_the_epsilon_times_as_likely(epsilon: float) -> None:
    """The law itself, between two counts that differ by one person."""
    ratio = math.exp(-math.floor(epsilon * 1000) / 1000)

    def probability(told: int, count: int) -> float:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(told - count)

    for told in range(-50, 50):
        assert probability(told, 10) <= math.exp(epsilon) * probability(told, 11) * (1 + 1e-12)


def test_a_count_is_off_by_no_more_than_said() -> None:
    generator, n = random.Random(2), 4000
    width = half_width(0.5)
    off = [
        abs(private_counts({"a": 7}, 0.5, generator.randrange)["a"] - 7) > width for _ in range(n)
    ]
    assert sum(off) / n < 0.05 + 5 * math.sqrt(0.05 * 0.95 / n)
    narrower = [
        abs(private_counts({"a": 7}, 0.5, generator.randrange)["a"] - 7) > width - 2
        for _ in range(n)
    ]
    assert sum(narrower) / n > 0.05, "the width is no wider than it has to be"


@pytest.mark.parametrize("answers", [2, 3, 7])
def test_every_other_answer_is_told_as_often(answers: int) -> None:
    generator, n, epsilon = random.Random(3), 20_000, 1.2
    told = Counter(told_answer(1, answers, epsilon, generator.random()) for _ in range(n))
    keep = truth_probability(epsilon, answers)
    for place in range(answers):
        expected = keep if place == 1 else (1 - keep) / (answers - 1)
        assert abs(told[place] / n - expected) < 5 * math.sqrt(expected * (1 - expected) / n)
    assert keep / ((1 - keep) / (answers - 1)) == pytest.approx(math.exp(epsilon))


def test_intervals_of_shares_hold_the_truth() -> None:
    generator, inside, runs = random.Random(4), 0, 300
    for _ in range(runs):
        told = [0, 0, 0]
        for _ in range(500):
            true = generator.choices(range(3), (0.6, 0.3, 0.1))[0]
            told[told_answer(true, 3, 1.5, generator.random())] += 1
        found = shares(told, ["a", "b", "c"], 1.5)
        inside += found[0].low <= 0.6 <= found[0].high
    assert inside / runs > 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)
