"""Groups say what the headline would say of them alone, and risks add up."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score

from privet.data.dataset import Attribute
from privet.evidence.groups import by_group, risk
from privet.evidence.intervals import clopper_pearson

SEX = Attribute("sex", "binary", ("a", "b"))


def test_each_group_is_judged_alone() -> None:
    random = np.random.default_rng(0)
    truth, guesses, person = (
        random.integers(-1, 2, 900),
        random.integers(0, 2, 900),
        random.integers(0, 300, 900),
    )
    groups = {
        "town": (random.integers(-1, 3, 900), ("x", "y", "z")),
        "age": (random.integers(0, 2, 900), ("old", "new")),
    }
    found = by_group(truth, guesses, person, groups, SEX)
    assert [(g.by, g.value) for g in found] == [
        ("age", "old"),
        ("age", "new"),
        ("town", "x"),
        ("town", "y"),
        ("town", "z"),
    ]
    for group in found:
        codes, values = groups[group.by]
        own = (codes == values.index(group.value)) & (truth >= 0)
        assert group.score.value == pytest.approx(balanced_accuracy_score(truth[own], guesses[own]))
        assert group.score.n == own.sum() and group.score.low < group.score.value < group.score.high
        assert (
            group.score.interval == "bootstrap over people 95 %"
            and group.score.measure == "balanced accuracy"
        )


def test_numbers_have_groups_too() -> None:
    random = np.random.default_rng(1)
    truth = random.normal(40, 10, 300)
    guesses, codes = truth + random.normal(0, 4, 300), np.arange(300) % 2
    truth[:5] = np.nan
    found = by_group(
        truth, guesses, np.arange(300), {"sex": (codes, ("a", "b"))}, Attribute("age", "number")
    )
    for code, group in enumerate(found):
        own = (codes == code) & np.isfinite(truth)
        assert group.score.value == pytest.approx(r2_score(truth[own], guesses[own]))
    assert len(found) == 2 and found[0].score.measure == "share of variance explained"


def test_small_groups_and_groups_of_one_value_are_left_out() -> None:
    truth, codes = np.arange(120) % 2, np.repeat([0, 1, 2], [49, 50, 21])
    assert [
        g.value
        for g in by_group(truth, truth, np.arange(120), {"g": (codes, ("x", "y", "z"))}, SEX)
    ] == ["y"]
    assert [
        g.value
        for g in by_group(
            truth, truth, np.arange(120), {"g": (codes, ("x", "y", "z"))}, SEX, least=20
        )
    ] == ["x", "y", "z"]
    assert by_group(truth, truth, np.arange(120), {"sex": (truth, ("a", "b"))}, SEX) == ()
    assert (
        by_group(truth[:0], truth[:0], truth[:0], {"g": (truth[:0], ("x",))}, SEX)
        == ()
        == by_group(truth, truth, truth, {}, SEX)
    )


def test_risk_is_a_histogram_of_the_truths_probability() -> None:
    random = np.random.default_rng(2)
    table, truth = random.dirichlet([0.3, 0.3], 500), random.integers(-1, 2, 500)
    there = truth >= 0
    own = table[there][np.arange(there.sum()), truth[there]]
    found = risk(truth, table)
    assert found.counts == tuple(
        np.histogram(own, bins=10, range=(0, 1))[0]
    ) and found.edges == tuple(np.linspace(0, 1, 11).round(1))
    assert (
        found.sure.value == pytest.approx((own >= 0.9).mean())
        and sum(found.counts) == found.sure.n == there.sum()
    )
    assert (found.sure.low, found.sure.high) == clopper_pearson(
        int((own >= 0.9).sum()), len(own)
    ) and found.sure.chance == 0
    people = risk(truth, table, np.arange(500) // 10)
    assert people.counts == found.counts and people.sure.interval == "bootstrap over people 95 %"


def test_risk_at_the_edges() -> None:
    nobody = risk(np.zeros(0, int), np.zeros((0, 2)))
    assert (
        sum(nobody.counts) == nobody.sure.n == 0
        and (nobody.sure.low, nobody.sure.high) == (0, 1)
        and nobody.sure.is_chance
    )
    ends = risk(np.zeros(4, int), np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.3, 0.7]]))
    assert ends.counts == (1, 0, 0, 1, 0, 0, 0, 0, 0, 2) and ends.sure.value == 0.5
    prior = risk(np.repeat([0, 1], [95, 5]), np.tile([0.95, 0.05], (100, 1)))
    assert prior.sure.value == prior.sure.chance == 0.95 and prior.sure.is_chance
