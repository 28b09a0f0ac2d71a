"""Bounds given side information: never below what knowledge and release together tell."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, norm

from privet.core.errors import PrivetError
from privet.evidence.certificate.coded_people import CodedPeople, certify_people
from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
from privet.evidence.certificate.side_information import (
    SideInformation,
    alone,
    certify_average,
    certify_given,
    certify_groups,
)
from privet.evidence.certificate.smoothing import Draws

Array = npt.NDArray[Any]
SEX = ("f", "m")


def crossed(n: int, seed: int = 0, gap: float = 1.0) -> tuple[CodedPeople, SideInformation]:
    """n people whose code tells the sex of married people by its sign, and that of others by the
    opposite sign: neither marriage nor the code alone tells anything."""
    random = np.random.default_rng(seed)
    sex, married = np.arange(n) % 2, np.arange(n) // 2 % 2
    codes = random.normal(size=(n, 1)) + gap * np.where(sex == married, 1, -1)[:, None]
    people = CodedPeople(codes, sex, np.arange(n), "sex", SEX)
    return people, SideInformation("married", ("no", "yes"), married)


def test_a_code_that_tells_nothing_may_tell_much_of_married_people() -> None:
    """'What the release adds to what is known anyway' was certified at 54 where a group read at
    70: the overall bound must not be used for what the group's bound is for."""
    people, side = crossed(8000)
    noise, truth = GaussianNoise(1.0), float(norm.cdf(1 / math.sqrt(2)))
    overall = certify_people(people, noise)
    assert overall.bound is not None and overall.bound < 0.53
    found = certify_given(people, noise, side)
    assert found.alone == pytest.approx(0.5)
    assert found.average.bound is not None and truth < found.average.bound < truth + 0.04
    for group in found.groups:
        assert group.bound is not None and truth < group.bound < truth + 0.05
        assert group.by == "married" and group.people == (2000, 2000)


@pytest.mark.parametrize("d", [1, 3])
def test_the_pair_is_integrated_per_value_of_what_is_known(d: int) -> None:
    random = np.random.default_rng(d)
    sex, job = np.arange(90) % 2, random.integers(0, 3, 90)
    codes = np.zeros((90, d))
    codes[:, 0] = random.normal(size=90) + sex * job
    people = CodedPeople(codes, sex, np.arange(90), "sex", SEX)
    found = certify_average(
        people, GaussianNoise(0.5, draws=Draws(20_000)), SideInformation("job", tuple("abc"), job)
    )
    z, slow = np.linspace(-6, 9, 20_001), 0.0
    for s in range(3):
        densities = [
            norm.pdf(z[None], codes[(sex == a) & (job == s), :1], 0.5).sum(0) / (sex == a).sum()
            for a in (0, 1)
        ]
        slow += float(np.trapezoid(np.maximum(*densities), z)) / 2
    assert found.empirical == pytest.approx(slow, abs=1e-4 if d == 1 else 0.01)
    people_slack = math.sqrt(math.log(1 / (0.8 * 0.01)) * (1 / 45 + 1 / 45) / 8)
    assert found.slack == pytest.approx(people_slack, abs=1e-4 if d == 1 else 0.02)
    assert d > 1 or found.slack >= people_slack


def test_what_is_known_tells_at_least_as_much_with_the_release() -> None:
    random = np.random.default_rng(0)
    sex = np.arange(600) % 2
    job = (random.random(600) < np.where(sex, 0.8, 0.2)).astype(int)
    people = CodedPeople(random.normal(size=600), sex, np.arange(600), "sex", SEX)
    side = SideInformation("job", ("a", "b"), job)
    read = alone(people, side)
    assert read == pytest.approx(0.8, abs=0.05)
    wide = certify_average(people, GaussianNoise(50.0), side)
    assert wide.empirical == pytest.approx(read, abs=0.01) and wide.empirical >= read - 1e-4


def test_every_group_holds_at_once() -> None:
    """At 80 % confidence, four groups: all of them hold in four of five runs or more, though each
    one's own misses would add up otherwise."""
    runs, misses, truth = 150, 0, 0.7
    for seed in range(runs):
        random = np.random.default_rng(seed)
        sex, group = np.arange(480) % 2, np.arange(480) // 2 % 4
        symbols = (random.random(480) < np.where(sex, truth, 1 - truth)).astype(int)
        people = CodedPeople(symbols, sex, np.arange(480), "sex", SEX)
        side = SideInformation("group", tuple("abcd"), group)
        found = certify_groups(people, RandomisedSymbols(2), [side], delta=0.2)
        assert len(found) == 4 and all(g.bound is not None for g in found)
        misses += any(g.bound is not None and g.bound < truth for g in found)
    assert binom.sf(misses - 1, runs, 0.2) > 1e-3


def test_small_groups_are_named_and_cost_the_others_nothing() -> None:
    people, side = crossed(4000)
    labels = side.labels.copy()
    labels[:9] = 2
    small = SideInformation("married", ("no", "yes", "widowed", "never asked"), labels)
    found = certify_groups(people, GaussianNoise(1.0), [small])
    assert [g.value for g in found[2:]] == ["widowed", "never asked"]
    assert "too few people: 4 of them m" in found[2].reason and found[3].people == (0, 0)
    two = people.take(np.arange(9, 4000)), side.take(np.arange(9, 4000))
    alike = certify_groups(two[0], GaussianNoise(1.0), [two[1]])
    assert [g.bound for g in found[:2]] == pytest.approx([g.bound for g in alike])
    assert found[0].bound is not None and found[1].bound is not None
    assert found[0].bound >= found[1].bound


def test_missing_knowledge_is_knowledge_too() -> None:
    people, side = crossed(2000)
    hidden = SideInformation("married", ("no", "yes"), np.where(side.labels == 1, -1, 0))
    assert hidden.values == ("no", "yes", "missing")
    found = certify_given(people, GaussianNoise(1.0), hidden)
    full = certify_given(people, GaussianNoise(1.0), side)
    assert found.average.bound == pytest.approx(full.average.bound)
    assert [g.value for g in found.groups if g.bound is None] == ["yes"]


def test_records_of_a_person_in_two_groups_count_in_both() -> None:
    """Smiling changes from record to record: a person is in either group with those records."""
    sex = np.repeat(np.arange(200) % 2, 2)
    smiling = np.tile([0, 1], 200)
    people = CodedPeople(
        np.random.default_rng(0).normal(size=400), sex, np.repeat(np.arange(200), 2), "sex", SEX
    )
    side = SideInformation("smiling", ("no", "yes"), smiling)
    found = certify_given(people, GaussianNoise(1.0), side)
    assert [g.people for g in found.groups] == [(100, 100)] * 2
    assert found.average.people == (100, 100)


def test_neither_order_nor_names_matter_and_several_are_joined() -> None:
    people, side = crossed(1000)
    moved = np.random.default_rng(3).permutation(1000)
    other = replace(people.take(moved), person=np.array([f"p{9999 - i}" for i in moved]))
    noise = GaussianNoise(1.0)
    a, b = certify_given(people, noise, side), certify_given(other, noise, side.take(moved))
    assert a.average.bound == pytest.approx(b.average.bound, abs=1e-9)
    assert [g.bound for g in a.groups] == pytest.approx([g.bound for g in b.groups], abs=1e-9)
    coin = SideInformation("coin", ("h", "t"), np.random.default_rng(0).integers(0, 2, 1000))
    both = certify_average(people, noise, SideInformation.jointly([side, coin]))
    assert both.empirical >= a.average.empirical - 1e-4


def test_what_does_not_fit_is_said() -> None:
    people, side = crossed(100)
    with pytest.raises(PrivetError, match="is of 99 records"):
        certify_average(people, GaussianNoise(1.0), side.take(np.arange(99)))
    with pytest.raises(PrivetError, match="from 0 to 1"):
        SideInformation("married", ("no", "yes"), np.array([0, 2]))
    none = certify_given(people, GaussianNoise(None), side)
    assert "no noise" in none.average.reason
    assert all("no noise" in group.reason for group in none.groups)
