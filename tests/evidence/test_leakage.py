"""Figures agree with scikit-learn's, and say nothing untrue where there is little to count."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from privet.evidence.leakage import (
    accuracy,
    auc,
    balanced_accuracy,
    best_threshold,
    chance,
    class_weights,
    confusion,
    guess,
    measure,
)

Array = npt.NDArray[Any]
CLASSES = 4


def codes(n: int, classes: int = CLASSES) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.int64, n, elements=st.integers(0, classes - 1))


@st.composite
def labelled(draw: st.DrawFn, smallest: int = 0) -> tuple[Array, Array]:
    n = draw(st.integers(smallest, 60))
    return draw(codes(n)), draw(codes(n))


@st.composite
def scored(draw: st.DrawFn, classes: int = 2, smallest: int = 0) -> tuple[Array, Array]:
    """Labels and probabilities; few different values, so that there are many ties."""
    n = draw(st.integers(smallest, 60))
    parts = draw(
        hnp.arrays(np.float64, (n, classes), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]))
    )
    parts[parts.sum(1) == 0] = 1.0
    return draw(codes(n, classes)), parts / parts.sum(1, keepdims=True)


def balanced_at(truth: Array, score: Array, threshold: float) -> float:
    return balanced_accuracy(truth, (score > threshold).astype(int))


@given(labelled(smallest=1))
def test_counts_are_sklearns(pair: tuple[Array, Array]) -> None:
    truth, guesses = pair
    table = confusion(truth, guesses, CLASSES)
    assert (table == metrics.confusion_matrix(truth, guesses, labels=range(CLASSES))).all()
    assert accuracy(truth, guesses) == pytest.approx(metrics.accuracy_score(truth, guesses))
    recalls = metrics.recall_score(
        truth, guesses, labels=np.unique(truth), average="macro", zero_division=0
    )
    assert balanced_accuracy(truth, guesses) == pytest.approx(recalls)
    assert balanced_accuracy(table) == pytest.approx(recalls)


@given(scored(smallest=2))
def test_auc_of_two_classes_is_sklearns(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    if len(np.unique(truth)) < 2:
        assert auc(truth, table) is None
    else:
        assert auc(truth, table) == pytest.approx(metrics.roc_auc_score(truth, table[:, 1]))
        assert auc(truth, table[:, 1]) == auc(truth, table)


@given(scored(classes=CLASSES, smallest=2))
def test_auc_of_more_classes_is_the_mean_over_those_present(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    present = np.unique(truth)
    if len(present) < 2:
        assert auc(truth, table) is None
    else:
        assert auc(truth, table) == pytest.approx(
            np.mean([metrics.roc_auc_score(truth == c, table[:, c]) for c in present])
        )


@given(scored(smallest=1))
def test_auc_looks_at_the_order_alone(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    score = table[:, 1]
    assert auc(truth, np.exp(3 * score)) == auc(truth, score)
    if (area := auc(truth, score)) is not None:
        assert auc(truth, -score) == pytest.approx(1 - area)


@given(labelled(), st.permutations(range(CLASSES)), st.randoms(use_true_random=False))
def test_order_and_names_change_no_figure(
    pair: tuple[Array, Array], names: list[int], random: Any
) -> None:
    truth, guesses = pair
    order = random.sample(range(len(truth)), len(truth))
    renamed = np.array(names)[truth], np.array(names)[guesses]
    for other in ((truth[order], guesses[order]), renamed):
        assert accuracy(*other) == accuracy(truth, guesses)
        assert balanced_accuracy(*other) == pytest.approx(balanced_accuracy(truth, guesses))
        assert chance(other[0], CLASSES) == chance(truth, CLASSES)


@given(scored(smallest=1))
def test_no_threshold_beats_the_best(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    score = table[:, 1]
    best = balanced_at(truth, score, best_threshold(truth, score))
    assert np.isfinite(best_threshold(truth, score))
    assert all(
        best >= balanced_at(truth, score, other) - 1e-9 for other in [-1.0, *np.unique(score)]
    )


@given(scored(smallest=1))
def test_two_classes_are_guessed_by_the_threshold(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    threshold = best_threshold(truth, table[:, 1])
    if 0 <= threshold <= 1:
        assert (guess(table, class_weights(truth, table)) == (table[:, 1] > threshold)).all()


@given(scored(classes=CLASSES))
def test_weights_never_do_worse_than_none_on_select(pair: tuple[Array, Array]) -> None:
    truth, table = pair
    weighted = balanced_accuracy(truth, guess(table, class_weights(truth, table)))
    assert weighted >= balanced_accuracy(truth, guess(table, np.ones(CLASSES))) - 1e-9


@pytest.mark.parametrize("scale", [1e-320, 1e-12, 1.0, 1e308])
def test_a_threshold_between_close_or_far_scores_still_separates(scale: float) -> None:
    low, high = scale, np.nextafter(scale, np.inf)
    truth, score = np.array([0, 1]), np.array([low, high])
    assert balanced_at(truth, score, best_threshold(truth, score)) == 1
    assert (
        balanced_at(
            truth, np.array([-scale, scale]), best_threshold(truth, np.array([-scale, scale]))
        )
        == 1
    )


def test_of_equally_good_thresholds_the_middle_one() -> None:
    truth = np.array([0, 1, 0, 1, 0, 1])
    assert best_threshold(truth, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])) == 3.5
    assert best_threshold(np.array([0, 1]), np.array([0.2, 0.2])) == pytest.approx(0.2)


def test_rare_classes_are_guessed_once_the_prior_is_taken_out() -> None:
    """A model that knows the true p(c | x) under a lopsided prior: argmax p hardly ever says the
    rare classes."""
    random = np.random.default_rng(0)
    prior = np.array([0.9, 0.05, 0.05])
    truth = random.choice(3, 4000, p=prior)
    x = np.eye(3)[truth] + random.normal(0, 0.8, (4000, 3))
    table = prior * np.exp((x - 0.5) / 0.64)
    table /= table.sum(1, keepdims=True)
    plain = balanced_accuracy(truth[2000:], guess(table[2000:], np.ones(3)))
    weights = class_weights(truth[:2000], table[:2000])
    assert balanced_accuracy(truth[2000:], guess(table[2000:], weights)) > plain + 0.1


def test_a_class_absent_from_select_is_not_lifted() -> None:
    truth = np.array([0, 0, 0, 1])
    table = np.array([[0.6, 0.3, 0.1]] * 3 + [[0.5, 0.4, 0.1]])
    weights = class_weights(truth, table)
    assert weights[2] == 1 and (weights > 0).all() and 2 not in guess(table, weights)


def test_guesses_that_look_at_nothing_are_at_chance() -> None:
    truth = np.repeat([0, 1, 2], [50, 30, 20])
    balanced, plain, area = measure(truth, np.zeros(100, int), np.full((100, 3), 1 / 3), 3, "lower")
    assert plain.value == plain.chance == 0.5
    assert balanced.value == pytest.approx(balanced.chance) and balanced.chance == pytest.approx(
        1 / 3
    )
    assert (
        plain.is_chance
        and balanced.is_chance
        and area is not None
        and area.value == 0.5
        and area.is_chance
    )


def test_guesses_that_see_everything_are_far_from_chance() -> None:
    truth = np.repeat([0, 1], [50, 30])
    balanced, plain, area = measure(truth, truth, np.eye(2)[truth], 2, "higher", confidence=0.99)
    assert (
        area is not None
        and plain.value
        == balanced.value
        == plain.high
        == balanced.high
        == area.value
        == area.high
        == 1
    )
    assert (
        min(plain.low, balanced.low, area.low) > 0.8
        and not plain.is_chance
        and not balanced.is_chance
    )
    assert plain.n == balanced.n == 80 and plain.better == "higher"
    assert plain.interval.startswith("Clopper-Pearson") and "combined" in balanced.interval
    assert all("99 %" in figure.interval for figure in (plain, balanced, area))
    assert [figure.measure for figure in (balanced, plain, area)] == [
        "balanced accuracy",
        "accuracy",
        "AUC",
    ]


@given(labelled())
def test_a_figure_lies_in_its_interval_and_is_plain_json(pair: tuple[Array, Array]) -> None:
    truth, guesses = pair
    balanced, plain, area = measure(
        truth, guesses, np.full((len(truth), CLASSES), 1 / CLASSES), CLASSES, "lower"
    )
    for figure in (plain, balanced):
        assert (
            0 <= figure.low <= figure.value + 1e-9
            and figure.value <= figure.high + 1e-9
            and figure.high <= 1
        )
        assert 0 < figure.chance <= 1 and figure.n == len(truth)
        json.dumps(asdict(figure), allow_nan=False)
    assert area is None or (area.value == area.chance == 0.5 and area.low <= 0.5 <= area.high)


def test_no_records_claim_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    balanced, plain, area = measure(nothing, nothing, np.zeros((0, 2)), 2, "lower")
    assert (
        (plain.low, plain.high, plain.n) == (balanced.low, balanced.high, balanced.n) == (0, 1, 0)
    )
    assert plain.value == plain.chance == balanced.value == balanced.chance == 0.5 and area is None
    assert accuracy([], []) == balanced_accuracy([], []) == 0 and confusion([], [], 2).sum() == 0
    assert (
        auc([], []) is None
        and best_threshold([], []) == 0.5
        and guess(np.zeros((0, 3)), np.ones(3)).shape == (0,)
    )


def test_one_class_alone_cannot_be_told_from_chance() -> None:
    balanced, plain, area = measure([1, 1, 1], [1, 1, 1], [[0.1, 0.9]] * 3, 2, "lower")
    assert (
        plain.value == plain.chance == 1
        and balanced.value == balanced.chance == 0.5
        and area is None
    )
    assert plain.is_chance and balanced.is_chance and (balanced.low, balanced.high) == (0, 1)
    assert guess([[0.1, 0.9]], class_weights([1], [[0.1, 0.9]])).tolist() == [1]


def test_without_probabilities_there_is_no_auc() -> None:
    assert measure([0, 1], [0, 1], None, 2, "lower")[2] is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: accuracy([0, -1], [0, 0]), "missing"),
        (lambda: accuracy([0, 1], [0]), "do not go with"),
        (lambda: accuracy([0.5], [0]), "whole numbers"),
        (lambda: confusion([0, 2], [0, 0], 2), "only 2 classes"),
        (lambda: auc([0, 1], [0.1, np.nan]), "finite"),
        (lambda: auc([0, 2], [0.1, 0.2]), "only 2 classes"),
        (lambda: best_threshold([0, 2], [0.1, 0.2]), "two classes"),
        (lambda: guess([[0.2, 0.2]], [1, 1]), "sum to one"),
        (lambda: guess([[0.5, 0.5]], [1, 1, 1]), "weights do not go with"),
        (lambda: chance([3], 2), "only 2 classes"),
    ],
)
def test_wrong_input_is_named(call: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        call()
