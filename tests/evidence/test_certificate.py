"""A certificate is never below what the best adversary reaches, and says so where it has nothing to
say."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom, norm

from privet.core.errors import PrivetError
from privet.evidence.certificate import transport
from privet.evidence.certificate.classes import binned, jointly, quantile_edges
from privet.evidence.certificate.gaussian import (
    Certificate,
    certify,
    information,
    smallest_sigma,
)
from privet.evidence.certificate.smoothing import Draws, by_draws, on_grid
from privet.evidence.certificate.symbols import certify_alphabet

Array = npt.NDArray[Any]
TWO = ("a", "b")
THREE = ("a", "b", "c")
FEW = 2000
"""Draws of the Monte Carlo integral, which are enough here."""


def normal(n: int, d: int, gap: float, seed: int = 0, k: int = 2) -> tuple[Array, Array, Array]:
    """n people of each of k values with one record each: codes N(value * gap, I) along the first
    axis."""
    labels = np.arange(k * n) % k
    codes = np.random.default_rng(seed).normal(size=(k * n, d))
    codes[:, 0] += gap * labels
    return codes, labels, np.arange(k * n)


def exact(gap: float, sigma: float) -> float:
    return float(norm.cdf(gap / 2 / math.hypot(1, sigma)))


def mixture_value(codes: Array, weights: Array, sigma: float) -> float:
    """V of weighted one-dimensional mixtures, slowly."""
    z = np.linspace(codes.min() - 9 * sigma, codes.max() + 9 * sigma, 20_001)
    densities = weights.T @ norm.pdf(z[None], codes, sigma)
    return float(np.trapezoid(densities.max(0), z))


def sure(c: Certificate) -> float:
    assert c.bound is not None, c.reason
    return c.bound


def often(misses: int, runs: int, delta: float) -> bool:
    """Whether so many misses are more than chance makes of a miss rate of delta."""
    return bool(binom.sf(misses - 1, runs, delta) < 1e-3)


# Never below the exact value.


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("gap", [0.0, 1.5])
def test_two_gaussians_are_told_apart_no_better_than_the_bound_says(d: int, gap: float) -> None:
    runs, truth = 10 if d == 2 else 50, exact(gap, 0.8)
    found = [
        certify(
            *_order(normal(50, d, gap, seed), 0.8), "x", TWO, confidence=0.9, draws=Draws(FEW, seed)
        )
        for seed in range(runs)
    ]
    assert not often(sum(c.bound is not None and c.bound < truth for c in found), runs, 0.1)
    plain = [c.at_prior for c in found]
    assert not often(sum(p is not None and p < truth for p in plain), runs, 0.1)


def _order(drawn: tuple[Array, Array, Array], sigma: float) -> tuple[Array, float, Array, Array]:
    codes, labels, person = drawn
    return codes, sigma, labels, person


def test_misses_are_as_rare_as_promised_where_the_sample_is_not_biased() -> None:
    """Two symbols: V(P^) alone is too low every other time, so the slack is what keeps the
    promise."""
    random, runs, truth = np.random.default_rng(0), 400, 0.7
    labels, people = np.arange(100) % 2, np.arange(100)
    symbols = (random.random((runs, 100)) < np.where(labels, 0.7, 0.3)).astype(int)
    found = [
        certify_alphabet(drawn, 2, None, labels, people, "x", TWO, confidence=0.9)
        for drawn in symbols
    ]
    assert sum(c.empirical < truth for c in found) > 0.3 * runs
    assert not often(sum(c.bound is not None and c.bound < truth for c in found), runs, 0.1)


def test_people_with_records_of_several_values_are_not_counted_as_more_people() -> None:
    """Each of 60 people has a record of either value, and the rule is right on both or wrong on
    both."""
    random, runs, truth, n = np.random.default_rng(1), 400, 0.7, 60
    labels, people = np.arange(2 * n) % 2, np.arange(2 * n) // 2
    found = []
    for _ in range(runs):
        right = np.repeat(random.random(n) < truth, 2)
        found.append(
            certify_alphabet(
                np.where(right, labels, 1 - labels),
                2,
                None,
                labels,
                people,
                "x",
                TWO,
                confidence=0.9,
            )
        )
    assert not often(sum(c.bound is not None and c.bound < truth for c in found), runs, 0.1)
    assert not often(sum(c.at_prior is not None and c.at_prior < truth for c in found), runs, 0.1)
    assert found[0].slack == pytest.approx(math.sqrt(math.log(2 / 0.1) / (2 * n)), abs=1e-6)
    assert found[0].people == (n, n)


def test_a_known_prior_and_that_of_the_people_bound_plain_accuracy() -> None:
    n, prior, sigma = 400, (0.8, 0.2), 0.5
    labels = (np.arange(n) % 5 == 0).astype(int)
    z = np.linspace(-9, 11, 20_001)
    densities = [p * norm.pdf(z, 2.0 * a, math.hypot(1, sigma)) for a, p in enumerate(prior)]
    truth, low = float(np.trapezoid(np.maximum(*densities), z)), []
    for seed in range(40):
        codes = np.random.default_rng(seed).normal(size=(n, 1)) + 2.0 * labels[:, None]
        for known in (None, prior):
            c = certify(codes, sigma, labels, np.arange(n), "x", TWO, confidence=0.9, prior=known)
            assert c.prior == pytest.approx(prior) and c.at_prior is not None
            low.append(c.at_prior < truth)
            assert c.at_prior < truth + 0.15
    assert not often(sum(low[::2]), 40, 0.1) and not often(sum(low[1::2]), 40, 0.1)


def test_the_best_attack_does_not_beat_the_bound() -> None:
    """The likelihood ratio of the true laws, on many new people, against a bound from few."""
    for d, releases in ((1, 1), (3, 1), (2, 4)):
        codes, labels, person = normal(150, d, 1.0, seed=d)
        c = certify(codes, 1.2, labels, person, "x", TWO, releases=releases, draws=Draws(FEW))
        new, truth, _ = normal(20_000, d, 1.0, seed=100 + d)
        random = np.random.default_rng(7)
        seen = np.mean([new + 1.2 * random.normal(size=new.shape) for _ in range(releases)], axis=0)
        assert np.mean((seen[:, 0] > 0.5) == truth) < sure(c)


# The integral.


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 12), st.just(1)), elements=st.floats(-5, 5)),
    st.integers(2, 4),
    st.sampled_from([0.05, 0.3, 1.0, 4.0]),
    st.sampled_from([4, 16, 64]),
)
def test_the_grid_is_as_exact_as_it_says(codes: Array, k: int, sigma: float, steps: int) -> None:
    weights = (
        np.random.default_rng(len(codes)).dirichlet(np.full(len(codes) * k, 0.3)).reshape(-1, k)
    )
    found = on_grid(codes, weights, sigma, steps)
    assert abs(found.value - mixture_value(codes, weights, sigma)) <= found.error + 1e-5


@pytest.mark.parametrize("k", [2, 3])
def test_draws_and_grid_agree_within_their_errors(k: int) -> None:
    random = np.random.default_rng(k)
    codes, within = random.normal(size=(60, 2)), random.dirichlet(np.full(60, 0.5), k).T
    joint = within * random.dirichlet(np.ones(k))
    even, real = by_draws(codes, within, joint, 0.4, Draws(20_000), 1e-3)
    for drawn, grid in (
        (even, on_grid(codes, within / k, 0.4, 24)),
        (real, on_grid(codes, joint, 0.4, 24)),
    ):
        assert drawn.error < 0.02
        assert abs(drawn.value - grid.value) <= drawn.error + grid.error


def test_more_grid_points_come_closer() -> None:
    codes, labels, _ = normal(100, 2, 0.5)
    weights = np.eye(2)[labels] / 200
    fine = on_grid(codes, weights, 0.5, 40).value
    for steps in (3, 6, 12):
        coarse = on_grid(codes, weights, 0.5, steps)
        assert abs(coarse.value - fine) <= coarse.error + on_grid(codes, weights, 0.5, 40).error


# Transport.


def test_a_coupling_has_the_two_samples_as_marginals_whether_in_blocks_or_not() -> None:
    pytest.importorskip("ot")
    random = np.random.default_rng(0)
    first, second = random.normal(size=(130, 2)), random.normal(size=(90, 2)) + 0.3
    weights = random.dirichlet(np.ones(130)), random.dirichlet(np.ones(90))
    whole = transport.couple(first, second, 0.5, weights)
    for plan in (whole, transport.couple(first, second, 0.5, weights, most=50)):
        assert np.bincount(plan.first, plan.mass, 130) == pytest.approx(weights[0], abs=1e-9)
        assert np.bincount(plan.second, plan.mass, 90) == pytest.approx(weights[1], abs=1e-9)
        apart = np.linalg.norm(first[plan.first] - second[plan.second], axis=1)
        assert plan.cost == pytest.approx(
            plan.mass @ transport.noise_distance(apart, 0.5), abs=1e-9
        )
        assert whole.cost - 1e-9 <= plan.cost <= whole.cost + 0.2


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 3])
def test_the_integral_is_never_above_transport(d: int, k: int) -> None:
    pytest.importorskip("ot")
    codes, labels, person = normal(80, d, 0.4, seed=d, k=k)
    for prior in (None, tuple(np.arange(1, k + 1) / sum(range(k + 1)))):
        smooth = certify(
            codes,
            0.7,
            labels,
            person,
            "x",
            THREE[:k],
            draws=Draws(20_000),
            compare=True,
            prior=prior,
        )
        coupled = certify(
            codes, 0.7, labels, person, "x", THREE[:k], method="transport", prior=prior
        )
        error = 0.02 if d > 2 else 2e-3
        assert smooth.transport == coupled.transport == coupled.bound
        assert sure(smooth) <= sure(coupled) + error
        assert smooth.at_prior is not None and (
            coupled.at_prior is None or smooth.at_prior <= coupled.at_prior + error
        )


def test_transport_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(_name: str) -> None:
        raise ImportError

    monkeypatch.setattr(transport, "import_module", absent)
    with pytest.raises(PrivetError, match=r"privet\[certify\]"):
        certify(*_order(normal(5, 1, 0.0), 1.0), "x", TWO, method="transport")


# What must not matter, and what must.


@pytest.mark.parametrize("d", [1, 3])
def test_order_and_names_do_not_matter_and_a_repeated_record_adds_nothing(d: int) -> None:
    codes, labels, _ = normal(60, d, 0.5)
    person = np.arange(120) // 4 * 2 + labels  # two records each
    c = certify(codes, 1.0, labels, person, "x", TWO, draws=Draws(FEW))
    moved = np.random.default_rng(3).permutation(120)
    named = np.array([f"person {999 - p}" for p in person])
    again = certify(codes[moved], 1.0, labels[moved], named[moved], "x", TWO, draws=Draws(FEW))
    twice = certify(
        np.repeat(codes, 3, 0),
        1.0,
        np.repeat(labels, 3),
        np.repeat(person, 3),
        "x",
        TWO,
        draws=Draws(FEW),
    )
    for other in (again, twice):
        assert sure(other) == pytest.approx(sure(c), abs=1e-9) and other.at_prior == pytest.approx(
            c.at_prior, abs=1e-9
        )
        assert other.people == c.people == (30, 30)


def test_records_of_the_same_person_are_one_person() -> None:
    codes, labels, _ = normal(100, 1, 0.5)
    slack = [
        certify(codes, 1.0, labels, np.arange(200) // (2 * m) * 2 + labels, "x", TWO).slack
        for m in (1, 4)
    ]
    assert slack[1] == pytest.approx(2 * slack[0], rel=1e-3)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rotations_and_shifts_do_not_matter(d: int) -> None:
    codes, labels, person = normal(100, d, 0.8)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    a, b = (
        certify(x, 0.6, labels, person, "x", TWO, draws=Draws(20_000))
        for x in (codes, codes @ turn + 1000.0)
    )
    assert sure(a) == pytest.approx(sure(b), abs=0.01 if d > 2 else 1e-3)


@pytest.mark.parametrize("d", [1, 3])
def test_more_noise_more_people_and_less_confidence_lower_the_bound(d: int) -> None:
    codes, labels, person = normal(200, d, 0.7)
    noise = [
        certify(codes, sigma, labels, person, "x", TWO, draws=Draws(5000))
        for sigma in (0.3, 0.6, 1.2, 2.4)
    ]
    assert all(a.empirical > b.empirical and sure(a) > sure(b) for a, b in pairwise(noise))
    half = certify(codes[:200], 0.6, labels[:200], person[:200], "x", TWO, draws=Draws(5000))
    assert half.slack > 1.3 * noise[1].slack
    unsure = certify(codes, 0.6, labels, person, "x", TWO, draws=Draws(5000), confidence=0.9)
    assert unsure.slack < noise[1].slack and unsure.empirical == noise[1].empirical


def test_several_releases_are_one_with_less_noise() -> None:
    codes, labels, person = normal(100, 1, 0.5)
    several, one = (
        certify(codes, 1.0, labels, person, "x", TWO, releases=9),
        certify(codes, 1 / 3, labels, person, "x", TWO),
    )
    assert several.bound == one.bound and several.sigma == 1.0 and several.releases == 9


def test_several_releases_through_a_channel_are_compared_with_counting() -> None:
    """How often the truth was told among 3 releases is all that matters: a binomial."""
    labels, people = np.arange(2000) % 2, np.arange(2000)
    told = np.array([[0.6, 0.4], [0.4, 0.6]])
    c = certify_alphabet(labels, 2, told, labels, people, "x", TWO, releases=3)
    assert c.empirical == pytest.approx(binom.sf(1, 3, 0.6))
    many = certify_alphabet(labels, 2, told, labels, people, "x", TWO, releases=40)
    assert many.empirical == pytest.approx(binom.sf(20, 40, 0.6) + binom.pmf(20, 40, 0.6) / 2)
    assert (
        certify_alphabet(labels, 2, told, labels, people, "x", TWO, releases=1 << 18).empirical
        == 1.0
    ), "granted the symbol itself"


def test_tallies_tell_as_much_as_the_releases_one_by_one() -> None:
    """Against all sequences of outputs, gone through one after the other, for rows that are not
    each other's turns."""
    random = np.random.default_rng(4)
    channel = random.dirichlet(np.ones(3), 4)
    symbols, labels, people = random.integers(0, 4, 600), random.integers(0, 2, 600), np.arange(600)
    law = (
        np.stack(
            [np.bincount(symbols[labels == a], minlength=4) / (labels == a).sum() for a in (0, 1)]
        )
        / 2
    )
    seen = np.einsum("sa,sb,sc->sabc", channel, channel, channel).reshape(4, -1)
    c = certify_alphabet(symbols, 4, channel, labels, people, "x", TWO, releases=3)
    assert c.empirical == pytest.approx((law @ seen).max(0).sum())


def test_a_channel_that_forgets_leaves_nothing() -> None:
    labels, people = np.arange(300) % 3, np.arange(300)
    c = certify_alphabet(labels, 3, np.full((3, 5), 0.2), labels, people, "x", THREE)
    assert c.empirical == pytest.approx(1 / 3) and sure(c) == pytest.approx(1 / 3 + c.slack)
    assert certify_alphabet(labels, 3, None, labels, people, "x", THREE).bound is None  # tells all


def test_three_values_on_a_line() -> None:
    """The best rule cuts halfway: the middle value is right with 2 Phi(t) - 1, the others with
    Phi(t)."""
    t = 1.0 / 2 / math.hypot(1, 0.5)
    truth = (4 * norm.cdf(t) - 1) / 3
    c = certify(*_order(normal(1000, 1, 1.0, k=3), 0.5), "x", THREE)
    assert truth < sure(c) < truth + 0.06 and c.blind == 1 / 3 and c.people == (1000,) * 3


def test_guessing_two_attributes_leaks_at_least_as_much_as_either() -> None:
    """Times k, success at equally likely values is an integral of the largest density: mixtures of
    densities lie below."""
    random = np.random.default_rng(0)
    a, b = np.arange(400) % 2, np.arange(400) // 2 % 2
    codes = random.normal(size=(400, 1)) + 0.6 * a[:, None] - 0.9 * b[:, None]
    both, names = jointly([a, b], [("f", "m"), ("young", "old")])
    assert len(names) == 4
    joint = certify(codes, 0.5, both, np.arange(400), "both", names)
    for one in (a, b):
        alone = certify(codes, 0.5, one, np.arange(400), "one", TWO)
        assert 4 * joint.empirical >= 2 * alone.empirical - 1e-3
        assert joint.bits is not None and alone.bits is not None and joint.bits > alone.bits


# Choosing sigma.


@pytest.mark.parametrize("d", [1, 3])
def test_the_smallest_sigma_meets_the_target_on_other_people(d: int) -> None:
    codes, labels, person = normal(300, d, 0.6, seed=5)
    sigma = smallest_sigma(codes, labels, person, TWO, 0.65, people=(400, 400), draws=Draws(FEW))
    assert sigma is not None
    met = [
        certify(*_order(normal(400, d, 0.6, seed), sigma), "x", TWO, draws=Draws(5000)).bound
        for seed in range(20, 28)
    ]
    assert sum(m is not None and m <= 0.65 for m in met) >= 5
    far = certify(*_order(normal(400, d, 0.6, 20), sigma / 4), "x", TWO, draws=Draws(5000))
    assert far.bound is None or far.bound > 0.65
    assert (
        smallest_sigma(codes, labels, person, TWO, 0.65, people=(10, 10), draws=Draws(FEW)) is None
    )  # their slack alone is more


def test_numbers_become_bins_with_edges_from_other_people() -> None:
    ages = np.random.default_rng(0).uniform(18, 90, 999)
    edges = quantile_edges(ages, 3)
    codes, names = binned(np.append(ages, np.nan), edges)
    assert (
        codes[-1] == -1
        and len(names) == 3
        and np.bincount(codes[:-1]) == pytest.approx([333] * 3, abs=1)
    )


# Saying nothing.


@pytest.mark.parametrize(
    ("codes", "sigma", "labels", "person", "values", "why"),
    [
        (normal(50, 16, 0.0)[0], 0.5, np.arange(100) % 2, np.arange(100), TWO, "says nothing"),
        (normal(50, 2, 0.0)[0], 1e-6, np.arange(100) % 2, np.arange(100), TWO, "says nothing"),
        (normal(50, 3, 0.0)[0], 1e-12, np.arange(100) % 2, np.arange(100), TWO, "says nothing"),
        (normal(50, 3, 0.0)[0], 1e-300, np.arange(100) % 2, np.arange(100), TWO, "says nothing"),
        (normal(50, 17, 0.0)[0], 50.0, np.arange(100) % 2, np.arange(100), TWO, "dimensions"),
        (normal(50, 1, 0.0)[0], None, np.arange(100) % 2, np.arange(100), TWO, "no noise"),
        (normal(50, 1, 0.0)[0], 0.0, np.arange(100) % 2, np.arange(100), TWO, "no noise"),
        (np.zeros((9, 1)), 1.0, np.zeros(9, int), np.arange(9), TWO, "fewer than two people"),
        (np.zeros((9, 1)), 1.0, np.zeros(9, int), np.arange(9), ("a",), "fewer than two values"),
        (np.zeros((9, 1)), 1.0, np.arange(9) % 2, np.zeros(9, int), TWO, "fewer than two people"),
        (np.zeros((0, 4)), 1.0, np.zeros(0, int), np.zeros(0, int), TWO, "fewer than two people"),
        (np.zeros((0, 4)), 1.0, np.zeros(0, int), np.zeros(0, int), (), "fewer than two values"),
        (np.zeros((4, 1)), 1.0, np.arange(4) % 2, np.arange(4), TWO, "4 test people are too few"),
    ],
)
def test_where_nothing_can_be_said_no_number_is(
    codes: Array,
    sigma: float | None,
    labels: Array,
    person: Array,
    values: tuple[str, ...],
    why: str,
) -> None:
    c = certify(codes, sigma, labels, person, "gender", values, draws=Draws(FEW))
    assert c.bound is None and c.at_prior is None and c.bits is None
    assert why in c.reason


def test_without_noise_distinct_codes_tell_all() -> None:
    for d in (1, 2, 3):
        c = certify(*_order(normal(1000, d, 0.0), 1e-7), "x", TWO, draws=Draws(FEW))
        assert c.empirical == pytest.approx(1.0, abs=1e-3) and c.bound is None


def test_wrong_input_is_refused() -> None:
    codes, labels, person = normal(5, 1, 0.0)
    wrong: list[tuple[Any, Any, Any, Any]] = [
        (codes * np.nan, 1.0, labels, person),
        (codes, -1.0, labels, person),
        (codes, math.inf, labels, person),
        (codes, 1.0, labels - 1, person),
        (codes, 1.0, labels + 1, person),
        (codes, 1.0, labels[1:], person),
    ]
    for row in wrong:
        with pytest.raises(PrivetError):
            certify(*row, "x", TWO)
    for settings in (
        {"confidence": 1.0},
        {"releases": 0},
        {"prior": (0.5, 0.6)},
        {"method": "guess"},
    ):
        with pytest.raises(PrivetError):
            certify(codes, 1.0, labels, person, "x", TWO, **settings)  # type: ignore[arg-type]
    for symbols, channel in (
        (labels + 1, None),
        (labels * 0.5, None),
        (labels, np.ones((2, 2))),
        (labels, np.eye(3)),
    ):
        with pytest.raises(PrivetError):
            certify_alphabet(symbols, 2, channel, labels, person, "x", TWO)


# In bits and in words.


TABLES = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 6)), elements=st.floats(0, 1)
)


@given(TABLES.filter(lambda table: bool((table.sum(1) > 0).all())))
def test_bits_bound_the_mutual_information_of_any_channel(table: Array) -> None:
    rows = table / table.sum(1, keepdims=True)
    k, mean = len(rows), rows.mean(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = float(np.nansum(rows / k * np.log2(rows / mean)))
    assert bits <= information(float((rows / k).max(0).sum()), k) + 1e-9
