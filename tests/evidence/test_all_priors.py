"""Bounds at every prior, against two Gaussians of which everything is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from privet.evidence.certificate.all_priors import EPSILONS, certify_all_priors
from privet.evidence.certificate.coded_people import CodedPeople
from privet.evidence.certificate.mechanisms import GaussianNoise, Mechanism, RandomisedSymbols
from privet.evidence.certificate.sampling import bernstein, hoeffding
from privet.evidence.certificate.smoothing import Draws
from privet.evidence.certificate.symbols import response
from privet.evidence.figures import AllPriors

TWO = ("a", "b")


def two_gaussians(n: int, gap: float, d: int = 1) -> CodedPeople:
    """People of either value with one code each, `gap` apart: with noise of 1 two known
    Gaussians."""
    labels = np.arange(n) % 2
    codes = np.zeros((n, d))
    codes[:, 0] = gap * labels
    return CodedPeople(codes, labels, np.arange(n), "x", TWO)


def certified(people: CodedPeople, mechanism: Mechanism, delta: float = 0.01) -> AllPriors:
    found = certify_all_priors(people, mechanism, delta=delta)
    assert found is not None
    return found


def hockey_stick(gap: float, t: float) -> float:
    """E_t of N(gap, 1) against N(0, 1)."""
    cut = math.log(t) / gap
    return float(norm.sf(cut - gap / 2) - t * norm.sf(cut + gap / 2))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("gap", [0.3, 1.0])
def test_all_curves_lie_above_the_truth_and_near_it_with_many_people(d: int, gap: float) -> None:
    many = 400_000 if d == 1 else 40_000
    found = certified(two_gaussians(many, gap, d), GaussianNoise(1.0, draws=Draws(50_000)))
    room = 0.03 if d == 1 else 0.1
    for point in found.roc:
        truth = float(norm.sf(norm.isf(point.at) - gap))
        assert truth <= point.bound <= truth + room + (0.03 if gap == 1 else 0)
    for point in found.epsilon_delta:
        truth = hockey_stick(gap, math.exp(point.at))
        assert truth <= point.bound <= truth + room + 0.02 * point.at
    for point in found.posterior:
        cut = math.log(point.at / (1 - point.at)) / gap
        assert float(norm.sf(cut - gap / 2)) <= point.bound
    apart = 2 * float(norm.cdf(gap / 2)) - 1
    assert 1 - apart - room <= found.bayes_security <= 1 - apart
    assert math.log2(1 + apart) <= found.leakage_bits <= math.log2(1 + apart + room)


def test_an_average_hides_releases_that_tell_and_the_posterior_shows_them() -> None:
    """1.9 % of releases have a posterior above 0.7 at a bound of 54: the share must be bounded by
    no less."""
    random = np.random.default_rng(0)
    labels = np.arange(40_000) % 2
    rare = random.random(40_000) < 0.02
    codes = np.where(rare, 6.0 * (2 * labels - 1), 0.0)
    people = CodedPeople(codes, labels, np.arange(40_000), "x", TWO)
    found = certified(people, GaussianNoise(1.0))
    tail = next(point.bound for point in found.posterior if point.at == 0.7)
    assert rare.mean() < tail < 0.15


def test_symbols_are_exact_but_for_the_slack() -> None:
    labels = np.arange(400_000) % 2
    people = CodedPeople(labels, labels, np.arange(len(labels)), "x", TWO)
    found = certified(people, RandomisedSymbols(2, response(2, 0.5)))  # tells 3 times in 4
    for point in found.epsilon_delta:
        truth = max(0.0, 0.75 - math.exp(point.at) * 0.25)
        assert truth <= point.bound <= truth + 0.04
    assert found.epsilon_delta[0].bound == pytest.approx(0.5, abs=0.01)
    assert [point.at for point in found.epsilon_delta] == list(EPSILONS)


def test_three_values_are_bounded_by_their_worst_pair() -> None:
    labels = np.arange(90_000) % 3
    codes = np.where(labels == 2, 0.0, labels.astype(float))
    people = CodedPeople(codes, labels, np.arange(90_000), "x", ("a", "b", "c"))
    found = certified(people, GaussianNoise(1.0))
    apart = 2 * float(norm.cdf(0.5)) - 1
    assert 1 - apart - 0.04 < found.bayes_security < 1 - apart
    assert math.log2(1 + apart) < found.leakage_bits < math.log2(1 + apart) + 0.06


def test_curves_hold_together_as_often_as_promised() -> None:
    """Symbols, whose V(P^) is hardly biased: at 80 % confidence all points hold in most runs."""
    runs, misses = 200, 0
    for seed in range(runs):
        labels = np.arange(200) % 2
        symbols = (np.random.default_rng(seed).random(200) < np.where(labels, 0.7, 0.3)).astype(int)
        people = CodedPeople(symbols, labels, np.arange(200), "x", TWO)
        found = certified(people, RandomisedSymbols(2), delta=0.2)
        roc = [min(1.0, p.at * 0.7 / 0.3, 0.7 + (p.at - 0.3) * 0.3 / 0.7) for p in found.roc]
        misses += any(p.bound < truth for p, truth in zip(found.roc, roc, strict=True))
    assert misses <= 0.2 * runs


def test_nothing_is_said_where_nothing_can_be() -> None:
    assert certify_all_priors(two_gaussians(3, 1.0), GaussianNoise(1.0)) is None
    assert certify_all_priors(two_gaussians(300, 1.0), GaussianNoise(None)) is None
    few = certified(two_gaussians(20, 0.0), GaussianNoise(1.0))
    assert all(0 <= point.bound <= 1 for point in (*few.roc, *few.posterior, *few.epsilon_delta))
    assert few.roc[-1].bound == 1.0


def test_rare_sets_have_a_small_slack_and_are_still_covered() -> None:
    """A symbol that 6 % of one value and 0.5 % of the other have, and the other way round."""
    runs, misses, n = 200, 0, 500
    p, q = np.array([0.06, 0.935, 0.005]), np.array([0.005, 0.935, 0.06])
    for seed in range(runs):
        labels = np.arange(2 * n) % 2
        ends = np.stack([p, q]).cumsum(1)[labels]
        symbols = (np.random.default_rng(seed).random(2 * n)[:, None] > ends).sum(1)
        people = CodedPeople(np.minimum(symbols, 2), labels, np.arange(2 * n), "x", TWO)
        found = certified(people, RandomisedSymbols(3), delta=0.2)
        truth = [np.maximum(p - math.exp(e) * q, 0).sum() for e in EPSILONS]
        bounds = [point.bound for point in found.epsilon_delta]
        misses += any(b < t - 1e-12 for b, t in zip(bounds, truth, strict=True))
        other = math.sqrt(math.log(12 / 0.2) * (1 + math.e**2) / (2 * n))
        assert bounds[4] < truth[4] + other, "Bernstein's is the smaller"
    assert misses <= 0.2 * runs


def test_slack_of_a_rule_that_says_a_value_seldom() -> None:
    """Against draws: the mean of rare events strays no further than it says, as often as it
    says."""
    random, n, share, delta = np.random.default_rng(0), 400, 0.02, 0.1
    people = np.repeat(np.eye(2), n, 0) / n * [1, 3]
    slack = bernstein(people, (share, share), delta)
    drawn = random.binomial(n, share, (20_000, 2)) / n @ [1, -3]
    short = (share - 3 * share) - drawn
    assert 0.01 * delta < (short > slack).mean() <= delta
    both = bernstein(np.array([[1.0, 3.0]] * n) / n, (share, share), delta)
    assert slack < both < hoeffding(people, delta)
