"""Both differences are fairlearn's for two classes, and a fair model is found fair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from privet.evidence.fairness import fairness

VALUES = ("x", "y", "z")


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_two_classes_are_fairlearns(seed: int, groups: int) -> None:
    metrics = pytest.importorskip("fairlearn.metrics")
    random = np.random.default_rng(seed)
    group, truth = random.integers(0, groups, 600), random.integers(0, 2, 600)
    guesses = (random.random(600) < 0.2 + 0.3 * truth + 0.1 * group).astype(int)
    found = fairness(
        "t", "g", truth, guesses, None, group, VALUES[:groups], np.arange(600)
    ).released
    for name, figure in found.items():
        other = getattr(metrics, name)(truth, guesses, sensitive_features=group)
        assert figure.value == pytest.approx(other) and figure.low <= figure.value <= figure.high


def test_more_classes_take_the_largest_difference() -> None:
    random = np.random.default_rng(1)
    truth, guesses, group = (
        random.integers(0, 3, 900),
        random.integers(0, 3, 900),
        random.integers(0, 3, 900),
    )
    found = fairness("t", "g", truth, guesses, guesses, group, VALUES, np.arange(900))
    said = np.array([[(guesses[group == g] == c).mean() for g in range(3)] for c in range(3)])
    given_truth = np.array(
        [
            [
                [(guesses[(group == g) & (truth == y)] == c).mean() for g in range(3)]
                for c in range(3)
            ]
            for y in range(3)
        ]
    )
    assert found.released["demographic_parity_difference"].value == pytest.approx(
        np.ptp(said, axis=1).max()
    )
    assert found.released["equalized_odds_difference"].value == pytest.approx(
        np.ptp(given_truth, axis=2).max()
    )
    assert found.raw == found.released
    assert [rate.score.value for rate in found.rates] == pytest.approx(
        [accuracy_score(truth[group == g], guesses[group == g]) for g in range(3)]
    )


@pytest.mark.parametrize("groups", [2, 3])
def test_a_fair_model_is_found_fair_and_the_truth_is_covered(groups: int) -> None:
    fair = covered = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        person = np.repeat(np.arange(120), 4)
        group, truth, mood = (
            random.integers(0, groups, 120)[person],
            random.integers(0, 2, 480),
            random.normal(0, 1, 120)[person],
        )
        even = (mood + random.normal(size=480) > 0).astype(int)
        uneven = np.where(group == 0, 1, even)  # half of the others
        found = fairness("t", "g", truth, even, uneven, group, VALUES[:groups], person)
        fair += found.released["demographic_parity_difference"].low <= 0
        covered += (
            found.raw["demographic_parity_difference"].low
            <= 0.5
            <= found.raw["demographic_parity_difference"].high
        )
    assert fair >= 54 and covered >= 54  # 95 % of 60 is 57; fewer than 54 come less than once in 30


def test_small_groups_are_left_out_and_few_groups_say_nothing() -> None:
    truth, group = np.arange(219) % 2, np.repeat([0, 1, 2], [100, 100, 19])
    guesses = np.where(group == 2, 1, truth)
    found = fairness("t", "g", truth, guesses, None, group, VALUES, np.arange(219))
    assert found.released["demographic_parity_difference"].value == 0 and [
        r.value for r in found.rates
    ] == ["x", "y"]
    assert (
        found.raw == {} and "fewer than 20" in found.released["demographic_parity_difference"].note
    )
    for part in (group == 0, group == 2, group == 5):
        alone = fairness(
            "t", "g", truth[part], guesses[part], None, group[part], VALUES, np.arange(part.sum())
        )
        for figure in alone.released.values():
            assert (figure.value, figure.low, figure.high, figure.n) == (
                0,
                0,
                1,
                part.sum(),
            ) and figure.is_chance


def test_missing_labels_order_and_names_change_nothing() -> None:
    random = np.random.default_rng(2)
    truth, guesses, group = (
        random.integers(0, 2, 400),
        random.integers(0, 2, 400),
        random.integers(0, 2, 400),
    )
    person = random.integers(0, 90, 400)
    first = fairness("t", "g", truth, guesses, None, group, VALUES[:2], person)
    order = random.permutation(500)
    holed = [
        np.append(column, fill)[order]
        for column, fill in (
            (truth, [-1] * 50 + [1] * 50),
            (guesses, [1] * 100),
            (group, [1] * 50 + [-1] * 50),
        )
    ]
    names = np.append(random.permutation(90)[person], [95] * 100)[order]
    second = fairness("t", "g", holed[0], holed[1], None, holed[2], VALUES[:2], names)
    for name, figure in first.released.items():
        other = second.released[name]
        assert (figure.value, figure.low, figure.high, figure.n) == pytest.approx(
            (other.value, other.low, other.high, other.n)
        )
