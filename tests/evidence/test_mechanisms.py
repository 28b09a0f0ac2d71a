"""The integrals that every bound is made of, against slow and obvious ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from privet.core.errors import PrivetError
from privet.evidence.certificate.coded_people import CodedPeople, certify_people
from privet.evidence.certificate.gaussian import certify, smallest_sigma
from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
from privet.evidence.certificate.smoothing import Draws, integrals_by_draws, integrals_on_grid
from privet.evidence.certificate.symbols import certify_alphabet, response

Array = npt.NDArray[Any]


def slow_integral(codes: Array, table: Array, sigma: float) -> float:
    z = np.linspace(codes.min() - 9 * sigma, codes.max() + 9 * sigma, 20_001)
    return float(np.trapezoid((table.T @ norm.pdf(z[None], codes, sigma)).max(0), z))


def some_tables(n: int) -> list[Array]:
    random = np.random.default_rng(n)
    first = random.dirichlet(np.ones(n), 2).T
    return [first * [1.0, 3.0], first * [0.2, 0.1], random.dirichlet(np.ones(n), 3).T, first[:, :1]]


def test_integrals_of_any_mass_are_as_exact_as_they_say() -> None:
    codes, tables = np.random.default_rng(1).normal(size=(30, 1)), some_tables(30)
    by_grid = integrals_on_grid(codes, tables, 0.4, 64)
    drawn = integrals_by_draws(codes, tables, 0.4, Draws(20_000), 0.01)
    for table, grid, draws in zip(tables, by_grid, drawn, strict=True):
        slow = slow_integral(codes, table, 0.4)
        assert abs(grid.value - slow) <= grid.error + 1e-5
        assert abs(draws.value - slow) <= draws.error + 1e-5
        assert draws.error < 0.05 * table.sum()


def test_a_measure_alone_has_its_mass_and_an_empty_one_nothing() -> None:
    codes = np.zeros((4, 5)) + np.arange(4.0)[:, None]
    alone = np.array([[0.5, 0.0]] * 4)
    (value,), left = GaussianNoise(1.0).integrals(codes, [alone], 0.01)
    assert value.value == pytest.approx(2.0) and left == pytest.approx(0.009)


def test_codes_too_far_apart_to_compute_with_tell_all() -> None:
    codes = np.array([[0.0] * 3, [1e9] * 3])
    (value,), _ = GaussianNoise(1e-3).integrals(codes, [np.eye(2) / 2], 0.01)
    assert value.value == 1.0


@pytest.mark.parametrize("records", [1, 2, 3])
def test_tuples_of_symbols_against_all_outcomes(records: int) -> None:
    random = np.random.default_rng(records)
    channel, codes = random.dirichlet(np.ones(3), 4), random.integers(0, 4, (20, records))
    table = random.dirichlet(np.ones(20), 2).T * 0.5
    expected = sum(
        max(
            sum(
                w * np.prod(channel[code, list(seen)])
                for w, code in zip(column, codes, strict=True)
            )
            for column in table.T
        )
        for seen in product(range(3), repeat=records)
    )
    (value,), _ = RandomisedSymbols(4, channel).integrals(codes, [table], 0.01)
    assert value.value == pytest.approx(expected)


def test_too_many_outcomes_are_refused_and_several_releases_grant_the_symbol() -> None:
    coin = RandomisedSymbols(16, response(16, 0.5))
    assert coin.refusal(np.zeros((1, 5), int)) == ""
    assert "6 records" in coin.refusal(np.zeros((1, 6), int))
    often = RandomisedSymbols(16, response(16, 0.5), releases=16)
    (value,), _ = often.integrals(np.array([[0], [1]]), [np.eye(2) / 2], 0.01)
    assert value.value == 1.0
    with pytest.raises(PrivetError, match="whole numbers"):
        coin.check(np.array([[16]]))


@pytest.mark.parametrize("d", [1, 3])
def test_the_certificate_is_that_of_one_record_but_for_sharing_delta(d: int) -> None:
    labels, people = np.arange(400) % 2, np.arange(400) // 2
    codes = np.random.default_rng(0).normal(size=(400, d)) + labels[:, None]
    coded = CodedPeople(codes, labels, people, "x", ("a", "b"))
    new = certify_people(coded, GaussianNoise(1.0, draws=Draws(5000)), delta=0.05)
    old = certify(codes, 1.0, labels, people, "x", ("a", "b"), confidence=0.96, draws=Draws(5000))
    assert new.empirical == pytest.approx(old.empirical, abs=1e-9 if d == 1 else 0.02)
    assert new.slack == pytest.approx(old.slack, abs=1e-9 if d == 1 else 0.02)
    assert new.people == old.people and new.prior == old.prior and new.d == d


def test_the_certificate_of_symbols_is_that_of_one_record() -> None:
    labels, people = np.arange(400) % 2, np.arange(400)
    symbols = np.random.default_rng(0).integers(0, 3, 400)
    new = certify_people(
        CodedPeople(symbols, labels, people, "x", ("a", "b")),
        RandomisedSymbols(3, response(3, 0.3), releases=2),
        delta=0.05,
    )
    old = certify_alphabet(
        symbols, 3, response(3, 0.3), labels, people, "x", ("a", "b"), confidence=0.96, releases=2
    )
    assert new.bound == pytest.approx(old.bound) and new.method == "histogram"


def test_weighing_records_counts_a_person_by_the_share_of_records() -> None:
    """One person has half of the records of a value, and they are read; all others' are not."""
    labels = np.array([0] * 200 + [1] * 200)
    person = np.concatenate([[0] * 100, np.arange(1, 101), np.arange(101, 301)])
    codes = np.where(np.arange(400) < 100, 2, np.arange(400) % 2)
    by_people, by_records = (
        certify_people(
            CodedPeople(codes, labels, person, "x", ("a", "b"), weighing), RandomisedSymbols(3)
        )
        for weighing in ("people", "records")
    )
    assert by_people.empirical == pytest.approx(0.5 + 1 / 202, abs=1e-3)
    assert by_records.empirical == pytest.approx(0.75)
    assert by_people.people == by_records.people == (101, 200)
    influence = np.sqrt(0.25**2 + 100 * (0.5 / 200) ** 2 + 200 * (0.5 / 200) ** 2)
    assert by_records.slack == pytest.approx(influence * np.sqrt(np.log(1 / 0.008) / 2), abs=1e-6)


# How much the slack may shrink.


@pytest.mark.parametrize("d", [1, 2, 4])
def test_no_rule_varies_more_between_bounded_codes_than_the_spread_says(d: int) -> None:
    """Rules at random, half-spaces and their complements, at random codes in a box."""
    random = np.random.default_rng(d)
    noise = GaussianNoise(0.9, 2, width=2.0)
    for _ in range(200):
        direction = random.normal(size=d)
        direction /= np.linalg.norm(direction)
        codes = random.choice([-1.0, 1.0, 0.3], (50, d))
        said = norm.cdf((codes @ direction - random.normal()) / (0.9 / np.sqrt(2)))
        assert np.ptp(said) <= noise.spread(d) + 1e-12
    assert GaussianNoise(0.9).spread(d) == 1.0


@pytest.mark.parametrize("records", [1, 2])
def test_no_rule_varies_more_between_symbols_than_the_spread_says(records: int) -> None:
    random = np.random.default_rng(records)
    channel = 0.3 * random.dirichlet(np.ones(3), 4) + 0.7 / 3
    coin, highest = RandomisedSymbols(4, channel), 0.0
    seen = channel
    for _ in range(records - 1):
        seen = np.einsum("ab,cd->acbd", seen, channel).reshape(len(seen) * 4, -1)
    for _ in range(300):
        said = seen @ (random.random(seen.shape[1]) < 0.5)
        highest = max(highest, float(np.ptp(said)))
    assert 0.5 * coin.spread(records) < highest <= coin.spread(records) + 1e-12
    assert RandomisedSymbols(4, response(4, 0.3)).spread(2) == pytest.approx(1 - 0.3**2)
    assert RandomisedSymbols(4).spread(1) == 1.0


def test_slack_shrinks_by_the_spread_but_not_at_the_real_frequencies() -> None:
    labels, people = np.arange(400) % 2, np.arange(400)
    codes = np.random.default_rng(0).uniform(-1, 1, 400)
    coded = CodedPeople(codes, labels, people, "x", ("a", "b"))
    free, kept = (certify_people(coded, GaussianNoise(2.0, width=w)) for w in (None, 2.0))
    assert kept.slack == pytest.approx((2 * norm.cdf(0.5) - 1) * free.slack, rel=1e-3)
    assert kept.at_prior == free.at_prior and kept.empirical == free.empirical
    with pytest.raises(PrivetError, match="keep them within 1"):
        certify_people(coded, GaussianNoise(2.0, width=1.0))


def test_the_noise_for_a_target_is_less_where_codes_are_kept_within_an_interval() -> None:
    labels, people = np.arange(400) % 2, np.arange(400)
    codes = np.random.default_rng(0).uniform(-1, 1, 400)
    asked = (codes, labels, people, ("a", "b"), 0.58)
    free, kept = (
        smallest_sigma(*asked, people=(200, 200), margin=0.0, confidence=0.992, width=width)
        for width in (None, 2.0)
    )
    assert free is not None and kept is not None and kept < free / 2
    coded = CodedPeople(codes, labels, people, "x", ("a", "b"))
    bound = certify_people(coded, GaussianNoise(kept, width=2.0), delta=0.01).bound
    assert bound == pytest.approx(0.58, abs=2e-3)
