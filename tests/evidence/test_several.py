"""The lowest of many certificates fails more often than each; with one confidence for all it does
not. The same for intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privet.evidence.certificate.gaussian import certify
from privet.evidence.certificate.sampling import balanced_slack
from privet.evidence.certificate.symbols import certify_alphabet
from privet.evidence.figures import Certified, Figure
from privet.evidence.intervals import balanced_limits
from privet.evidence.several import shared_bound, shared_ends, shared_figure

CELLS, PEOPLE, TRUTH = 49, 1000, 0.6


def certified(empirical: float, slack: float, people: tuple[int, ...], **more: object) -> Certified:
    bound = empirical + slack
    return Certified(
        "sex",
        ("f", "m"),
        bound,
        None,
        (0.5, 0.5),
        None,
        empirical,
        slack,
        0.99,
        people,
        2,
        None,
        1,
        "histogram",
        **more,
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_of_many_certificates_holds_with_the_confidence_of_one(seed):
    """Releases of one of two symbols, each of which the best rule reads at TRUTH."""
    runs, rng = 2000, np.random.default_rng(seed)
    shares = rng.binomial(PEOPLE, [TRUTH, 1 - TRUTH], (runs, CELLS, 2)) / PEOPLE
    empirical = 0.5 + np.abs(shares[..., 0] - shares[..., 1]) / 2
    slack = balanced_slack((PEOPLE, PEOPLE), 0.01)
    together = shared_bound(certified(0.5, slack, (PEOPLE, PEOPLE)), CELLS) - 0.5
    lowest = empirical.min(1)
    alone_misses, misses = (np.mean(lowest + s < TRUTH) for s in (slack, together))
    assert alone_misses > 0.03  # the claim of 99 % is false of the one that was picked
    assert misses <= 0.01


def test_the_shared_bound_is_that_of_a_certificate_at_the_shared_confidence():
    rng = np.random.default_rng(0)
    labels, person = np.arange(3000) % 2, np.arange(3000)
    symbols = (rng.random(3000) < 0.4 + 0.1 * labels).astype(int)
    asked = (symbols, 2, None, labels, person, "sex", ("f", "m"))
    one = certify_alphabet(*asked)
    slower = certify_alphabet(*asked, confidence=1 - 0.01 / CELLS)
    assert shared_bound(one, CELLS) == pytest.approx(slower.bound, abs=1e-3)


@pytest.mark.parametrize("d", [1, 6])
def test_the_shared_bound_is_never_below_a_certificate_at_the_shared_confidence(d):
    rng = np.random.default_rng(1)
    labels, person = np.arange(3000) % 2, np.arange(3000) // 3
    codes = rng.normal(size=(3000, d)) + 0.3 * labels[:, None]
    asked = (codes, 2.0, labels, person, "sex", ("f", "m"))
    one, slower = certify(*asked), certify(*asked, confidence=1 - 0.01 / CELLS)
    assert slower.bound - 1e-9 <= shared_bound(one, CELLS) <= slower.bound + 0.03


def test_one_statement_and_none_stay_what_they_are():
    one = certified(0.5, 0.03, (500, 500))
    assert shared_bound(one, 1) == one.bound
    assert shared_bound(replace(one, bound=None), 9) is None
    assert shared_bound(certified(0.9, 0.09, (20, 20)), 1000) == 1.0


@pytest.mark.parametrize("truth", [0.5, 0.7, 0.95])
def test_intervals_of_many_cells_hold_at_once(truth):
    runs, rng = 600, np.random.default_rng(3)
    people = np.array([300, 200])
    right = rng.binomial(people, truth, (runs * CELLS, 2))
    low, high = balanced_limits(right, people)
    value = (right / people).mean(1)
    ends = shared_ends(value, low, high, CELLS)
    alone, together = (
        np.mean(((a <= truth) & (truth <= b)).reshape(runs, CELLS).all(1))
        for a, b in ((low, high), ends)
    )
    assert alone < 0.7
    assert together >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)


def test_figures_that_are_no_shares_are_widened_as_they_are():
    explained = Figure(-0.1, -0.3, 0.2, 500, 0.0, measure="variance explained", interval="95 %")
    wide = shared_figure(explained, 10)
    assert wide.low < -0.3 and wide.high > 0.2 and wide.value == explained.value
    plain = Figure(0.3, 0.3, 0.3, 500, 0.0, interval="")
    assert shared_figure(plain, 10) == plain


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_ends_of_shares_stay_between_0_and_1_and_never_come_closer(value):
    low, high = max(0.0, value - 0.02), min(1.0, value + 0.02)
    wide = shared_figure(Figure(value, low, high, 900, 0.5), 200)
    assert 0 <= wide.low <= low and high <= wide.high <= 1
