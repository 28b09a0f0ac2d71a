"""Several records of a person, and people whose records contradict each other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from privet.core.errors import PrivetError
from privet.evidence.certificate.coded_people import CodedPeople, certify_people
from privet.evidence.certificate.gaussian import Certificate
from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
from privet.evidence.certificate.several_records import (
    one_per_person,
    record_tuples,
    tuples_of_records,
)
from privet.evidence.certificate.smoothing import Draws

Array = npt.NDArray[Any]
SEX = ("f", "m")


def coupled(n: int, seed: int = 0) -> CodedPeople:
    """Two records each: of one sex they are alike, of the other opposite; each alone is a coin."""
    random = np.random.default_rng(seed)
    sex, first = np.arange(n) % 2, random.choice([-1.0, 1.0], n)
    codes = np.stack([first, np.where(sex == 1, first, -first)], 1).ravel()
    return CodedPeople(codes, sex.repeat(2), np.arange(n).repeat(2), "sex", SEX)


def sure(found: Certificate) -> float:
    assert found.bound is not None, found.reason
    return found.bound


def test_two_records_of_equal_marginals_and_opposite_coupling_tell_nearly_all() -> None:
    """Certified 53 one by one, and 99 together: no bound for one record says anything of two."""
    people, noise = coupled(3000), GaussianNoise(0.36)
    assert sure(certify_people(people, noise)) < 0.54
    pair = certify_people(tuples_of_records(people, 2), noise)
    right = float(norm.cdf(1 / 0.36))
    truth = right**2 + (1 - right) ** 2
    assert pair.d == 2 and truth > 0.985
    assert pair.empirical == pytest.approx(truth, abs=0.003)
    assert pair.bound is None or pair.bound >= truth


def test_one_release_per_person_hides_the_coupling_that_the_mean_hides() -> None:
    """The mean of opposite records is 0 and that of equal ones is not: what is certified is that
    code, one per person."""
    people, sigma = coupled(3000), 1.0
    mean = one_per_person(people)
    assert len(mean) == 3000 and set(np.unique(mean.codes)) == {-1.0, 0.0, 1.0}
    z = np.linspace(-8, 8, 8001)
    apart = (norm.pdf(z, -1, sigma) + norm.pdf(z, 1, sigma)) / 2
    truth = float(np.trapezoid(np.maximum(apart, norm.pdf(z, 0, sigma)), z)) / 2
    found = certify_people(mean, GaussianNoise(sigma))
    assert truth < sure(found) < truth + 0.04


def test_tuples_are_of_one_person_without_repetition_and_of_people_who_have_enough() -> None:
    random = np.random.default_rng(0)
    person = random.integers(0, 60, 200)
    people = CodedPeople(np.arange(200.0), person % 2, person, "sex", SEX)
    rows = record_tuples(people, 3)
    assert (person[rows] == person[rows[:, :1]]).all()
    assert all(len(set(row)) == 3 for row in rows.tolist())
    assert set(person[rows[:, 0]]) == {p for p in range(60) if (person == p).sum() >= 3}
    assert record_tuples(people, 1).shape == (200, 1)
    assert record_tuples(people, 30).shape == (0, 30)
    each = np.bincount(person[rows[:, 0]])
    assert len(set(each[each > 0].tolist())) == 1, "every person has as many tuples"


def test_every_record_is_as_likely_in_every_place() -> None:
    people = CodedPeople(np.arange(4.0), np.zeros(4, int), np.zeros(4, int), "sex", SEX)
    rows = np.concatenate([record_tuples(people, 2, seed=seed) for seed in range(250)])
    for place in rows.T:
        assert np.bincount(place) == pytest.approx([1000] * 4, abs=150)
    pairs = np.unique(np.sort(rows, 1), axis=0, return_counts=True)[1]
    assert len(pairs) == 6 and pairs == pytest.approx([4000 / 6] * 6, abs=150)


def test_order_and_names_do_not_matter() -> None:
    random = np.random.default_rng(1)
    person = random.integers(0, 100, 500)
    people = CodedPeople(random.normal(size=(500, 1)), person % 2, person, "sex", SEX)
    moved = random.permutation(500)
    names = np.array([f"person {9999 - p}" for p in person[moved]])
    other = replace(people.take(moved), person=names)
    for make in (lambda p: tuples_of_records(p, 2), lambda p: one_per_person(p, 2)):
        a, b = (certify_people(make(p), GaussianNoise(1.0)) for p in (people, other))
        assert a.bound == pytest.approx(b.bound, abs=1e-9) and a.people == b.people


def test_independent_records_wear_out_like_releases() -> None:
    """Records that are noise around the person's own value tell as the sum of them does."""
    random, n = np.random.default_rng(0), 2000
    sex = np.arange(n) % 2
    codes = (random.normal(size=(n, 4)) + 0.3 * sex[:, None]).ravel()
    people = CodedPeople(codes, sex.repeat(4), np.arange(n).repeat(4), "sex", SEX)
    noise = GaussianNoise(1.0, draws=Draws(10_000))
    for m in (1, 2, 4):
        truth = float(norm.cdf(0.15 * math.sqrt(m / 2)))
        assert sure(certify_people(tuples_of_records(people, m), noise)) > truth
    mean = float(norm.cdf(0.15 / math.hypot(0.5, 1)))
    assert mean < sure(certify_people(one_per_person(people), noise)) < mean + 0.06


def test_a_tuple_of_more_than_sixteen_numbers_is_not_certified() -> None:
    people = CodedPeople(np.zeros((60, 4)), np.arange(60) // 5 % 2, np.arange(60) // 5, "sex", SEX)
    found = certify_people(tuples_of_records(people, 5), GaussianNoise(1.0))
    assert found.bound is None and "20 dimensions" in found.reason
    nobody = certify_people(tuples_of_records(people, 6), GaussianNoise(1.0))
    assert nobody.bound is None and nobody.people == (0, 0)
    with pytest.raises(PrivetError, match="at least one record"):
        record_tuples(people, 0)


def ill(n: int, seed: int = 0) -> CodedPeople:
    """2 % of people have an illness in all three records, 4.5 % in one of three, and the code says
    so of the latter: most people of the rare value contradict themselves."""
    random = np.random.default_rng(seed)
    kind = random.choice(3, n, p=[0.935, 0.02, 0.045])
    labels = np.zeros((n, 3), dtype=np.int64)
    labels[kind == 1] = 1
    labels[kind == 2, 0] = 1
    codes = np.where((labels == 1) & (kind == 2)[:, None], 2.0, 0.0)
    return CodedPeople(codes.ravel(), labels.ravel(), np.arange(n).repeat(3), "ill", ("no", "yes"))


def test_people_who_contradict_themselves_are_not_left_out() -> None:
    """With the contradicting records left out the bound was 56 where a threshold reads 84."""
    sigma, people = 0.5, ill(12_000)
    random = np.random.default_rng(1)
    new = ill(200_000, seed=2)
    z = new.codes[:, 0] + sigma * random.normal(size=len(new))
    share = np.bincount(new.person * 2 + new.labels, minlength=400_000).reshape(-1, 2)
    weights = 1 / share[new.person, new.labels]
    right = (z > 1) == new.labels
    read = np.mean(
        [np.average(right[new.labels == a], weights=weights[new.labels == a]) for a in (0, 1)]
    )
    assert read > 0.82
    found = certify_people(people, GaussianNoise(sigma))
    assert sure(found) > read
    several = [math.sqrt(math.log(2 / 0.008) / (2 * n)) / 2 for n in found.people]
    assert found.slack == pytest.approx(sum(several), abs=1e-4)


def test_contradicting_values_stay_in_tuples_and_in_one_release_per_person() -> None:
    people = ill(4000)
    for made in (tuples_of_records(people, 2), one_per_person(people)):
        found = certify_people(made, GaussianNoise(0.5))
        assert found.people == certify_people(people, GaussianNoise(0.5)).people
    symbols = replace(people, codes=(people.codes > 0).astype(int))
    pair = certify_people(tuples_of_records(symbols, 2), RandomisedSymbols(2))
    one = certify_people(symbols, RandomisedSymbols(2))
    assert pair.empirical >= one.empirical - 0.02
