"""Intervals cover at least as often as they say, also at the ends, and agree with an independent
implementation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from privet.evidence.intervals import Interval, balanced_interval, balanced_limits, clopper_pearson

ROUNDING = 1e-9
CONFIDENCES = st.sampled_from([0.8, 0.95, 0.99])
RECALLS = np.array([0.001, 0.01, 0.02, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999])


@st.composite
def counts(draw: st.DrawFn, smallest: int = 0, largest: int = 500) -> tuple[int, int]:
    n = draw(st.integers(smallest, largest))
    return draw(st.integers(0, n)), n


@given(counts(smallest=1), CONFIDENCES)
def test_clopper_pearson_is_scipys(count: tuple[int, int], confidence: float) -> None:
    expected = binomtest(*count).proportion_ci(confidence_level=confidence, method="exact")
    assert clopper_pearson(*count, confidence) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


@given(counts(), CONFIDENCES)
def test_clopper_pearson_holds_the_estimate_and_mirrors(
    count: tuple[int, int], confidence: float
) -> None:
    right, n = count
    low, high = clopper_pearson(right, n, confidence)
    assert 0 <= low <= (right / n if n else 0.5) <= high <= 1
    assert clopper_pearson(n - right, n, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_clopper_pearson_at_the_ends() -> None:
    assert clopper_pearson(0, 0) == Interval(0, 1)
    assert clopper_pearson(0, 20).low == 0 and 0 < clopper_pearson(0, 20).high < 0.2
    assert clopper_pearson(20, 20).high == 1 and 0.8 < clopper_pearson(20, 20).low < 1


@pytest.mark.parametrize(("right", "n"), [(-1, 5), (6, 5)])
def test_impossible_counts_are_refused(right: int, n: int) -> None:
    with pytest.raises(AssertionError, match="not a count"):
        clopper_pearson(right, n)


@given(st.lists(counts(), min_size=1, max_size=8), CONFIDENCES)
def test_balanced_holds_the_estimate_and_forgets_empty_classes(
    classes: list[tuple[int, int]], confidence: float
) -> None:
    right, n = zip(*classes, strict=True)
    low, high = balanced_interval(right, n, confidence)
    recalls = [r / size for r, size in classes if size]
    assert 0 <= low <= high <= 1
    if recalls:
        assert low - ROUNDING <= np.mean(recalls) <= high + ROUNDING
    assert balanced_interval([*right, 0], [*n, 0], confidence) == (low, high)
    assert balanced_interval(right[::-1], n[::-1], confidence) == pytest.approx(
        (low, high), abs=1e-9
    )
    mirrored = balanced_interval([size - r for r, size in classes], n, confidence)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-6)


@given(counts(smallest=2))
def test_one_class_is_nearly_clopper_pearson(count: tuple[int, int]) -> None:
    low, high = balanced_interval(*([c] for c in count))
    exact = clopper_pearson(*count)
    assert low <= exact.low + ROUNDING and high >= exact.high - ROUNDING
    assert high - low <= 1.5 * (exact.high - exact.low)


def test_nothing_counted_says_nothing() -> None:
    assert balanced_interval([], []) == Interval(0, 1)
    assert balanced_interval([0, 0], [0, 0]) == Interval(0, 1)


def test_more_records_and_less_confidence_give_a_narrower_interval() -> None:
    def width(scale: int, confidence: float = 0.95) -> float:
        low, high = balanced_interval([6 * scale, 16 * scale], [10 * scale, 20 * scale], confidence)
        return high - low

    assert width(1) > width(10) > width(100)
    assert width(1, 0.99) > width(1, 0.95) > width(1, 0.8)


def exact_coverage(n: tuple[int, ...], recalls: np.ndarray) -> list[float]:
    """How often the interval holds the truth, summed over every outcome, for every choice of
    recalls."""
    outcomes = np.stack(
        np.meshgrid(*(np.arange(size + 1) for size in n), indexing="ij"), -1
    ).reshape(-1, len(n))
    low, high = balanced_limits(outcomes, np.array(n))
    chances = [{p: binom.pmf(np.arange(size + 1), size, p) for p in recalls} for size in n]
    covered = []
    for truth in itertools.product(recalls, repeat=len(n)):
        weight = np.prod([chances[i][p][outcomes[:, i]] for i, p in enumerate(truth)], axis=0)
        covered.append(
            float(
                weight[
                    (low <= np.mean(truth) + ROUNDING) & (np.mean(truth) <= high + ROUNDING)
                ].sum()
            )
        )
    return covered


@pytest.mark.parametrize(
    "n", [(1, 1), (2, 2), (3, 5), (10, 10), (20, 20), (20, 100), (1, 100), (100, 100)], ids=str
)
def test_two_classes_are_covered(n: tuple[int, ...]) -> None:
    assert min(exact_coverage(n, RECALLS)) >= 0.95


@pytest.mark.parametrize("n", [(2, 4, 8), (10, 10, 10), (20, 20, 20), (5, 10, 40)], ids=str)
def test_three_classes_are_covered(n: tuple[int, ...]) -> None:
    assert min(exact_coverage(n, RECALLS[[1, 2, 4, 6, 8, 10]])) >= 0.95


def three_or_more() -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    sizes = [
        (20, 2000),
        (2000, 2000),
        (20, 200, 2000),
        (200,) * 3,
        (2000,) * 3,
        (5,) * 10,
        (5, 10, 20, 50, 100, 200),
        (20,) * 30,
    ]
    return [
        (n, p)
        for n in sizes
        for p in (
            (0.005,),
            (0.05,),
            (0.5,),
            (0.2, 0.8),
            (0.98,),
            (0.995,),
            (0.0, 1.0),
            (0.001, 0.6),
        )
    ]


@pytest.mark.parametrize(
    ("n", "pattern"), three_or_more(), ids=lambda v: "-".join(map(str, v))[:24]
)
def test_larger_cases_are_covered_in_simulation(
    n: tuple[int, ...], pattern: tuple[float, ...]
) -> None:
    draws = 2000
    truth = np.resize(pattern, len(n))
    outcomes = np.random.default_rng(7).binomial(n, truth, (draws, len(n)))
    low, high = balanced_limits(outcomes, np.array(n))
    covered = ((low <= truth.mean() + ROUNDING) & (truth.mean() <= high + ROUNDING)).sum()
    # Were the true coverage 0.95, fewer than this would be seen once in 100,000 draws of this test.
    assert covered >= binom.ppf(1e-5, draws, 0.95)


def test_the_interval_is_not_much_wider_than_it_has_to_be() -> None:
    """Beside the normal interval around the truth, which is right for many records."""
    n = np.array([500, 1500])
    for truth in ([0.5, 0.5], [0.7, 0.9], [0.55, 0.5], [0.1, 0.9]):
        outcomes = np.random.default_rng(1).binomial(n, truth, (500, 2))
        low, high = balanced_limits(outcomes, n)
        normal = 2 * 1.96 * np.sqrt((np.array(truth) * (1 - np.array(truth)) / n).sum()) / 2
        assert 1 <= (high - low).mean() / normal < 1.1
