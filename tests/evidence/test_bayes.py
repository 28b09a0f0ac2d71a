"""Leakage is what trying every strategy finds, never grows by processing, and says nothing where
nothing was counted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from privet.evidence.bayes import (
    additive_leakage,
    advantage,
    bayes_security,
    f1,
    min_entropy_leakage,
    multiplicative_leakage,
    posterior_vulnerability,
    prior_vulnerability,
    tpr_at,
    uniform_bayes_security,
)
from privet.evidence.leakage import accuracy, confusion

Array = npt.NDArray[Any]
LEAKAGES = (additive_leakage, multiplicative_leakage, min_entropy_leakage)
SECURITIES = (bayes_security, uniform_bayes_security)
ROUNDING = 1e-9


def tables(secrets: int = 4, outputs: int = 4) -> st.SearchStrategy[Array]:
    """Joint counts, with many zeros, of which at least one is not."""
    shape = st.tuples(st.integers(1, secrets), st.integers(1, outputs))
    return shape.flatmap(lambda s: hnp.arrays(np.int64, s, elements=st.integers(0, 6))).filter(
        lambda t: t.sum() > 0
    )


def channels(secrets: int = 4, outputs: int = 4) -> st.SearchStrategy[Array]:
    """Tables in which at least two secrets occur."""
    return tables(secrets, outputs).filter(lambda t: (t.sum(1) > 0).sum() > 1)


def best_strategy(joint: Array) -> float:
    """The highest success of any map from outputs to guesses, by trying them all."""
    secrets, outputs = joint.shape
    return (
        max(
            sum(joint[g[y], y] for y in range(outputs))
            for g in itertools.product(range(secrets), repeat=outputs)
        )
        / joint.sum()
    )


def risk_ratio(joint: Array, prior: Array) -> float:
    rows = joint[joint.sum(1) > 0]
    rows = rows / rows.sum(1, keepdims=True)
    return float((1 - best_strategy(prior[:, None] * rows)) / (1 - prior.max()))


@given(tables())
def test_vulnerability_is_that_of_the_best_strategy(joint: Array) -> None:
    after, before = best_strategy(joint), max(joint.sum(1)) / joint.sum()
    assert prior_vulnerability(joint) == pytest.approx(before)
    assert posterior_vulnerability(joint) == pytest.approx(after)
    assert additive_leakage(joint) == pytest.approx(after - before)
    assert multiplicative_leakage(joint) == pytest.approx(after / before)
    assert min_entropy_leakage(joint) == pytest.approx(np.log2(after / before))


@given(tables())
def test_leakage_keeps_within_its_limits(joint: Array) -> None:
    secrets, outputs = joint.shape
    assert 0 <= (additive_leakage(joint) or 0) < 1
    assert 1 <= (multiplicative_leakage(joint) or 0) <= min(secrets, outputs) + ROUNDING
    assert 0 <= (min_entropy_leakage(joint) or 0) <= np.log2(min(secrets, outputs)) + ROUNDING
    assert all(
        security is None or 0 <= security <= 1
        for security in (measure(joint) for measure in SECURITIES)
    )


@given(channels(3, 3), st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_no_prior_is_below_bayes_security_and_one_pair_reaches_it(
    joint: Array, shares: list[int]
) -> None:
    present = int((joint.sum(1) > 0).sum())
    prior = np.array(shares[:present]) / sum(shares[:present])
    security = bayes_security(joint)
    assert security is not None and security <= risk_ratio(joint, prior) + ROUNDING
    pairs = [
        np.isin(range(present), pair) / 2 for pair in itertools.combinations(range(present), 2)
    ]
    assert security == pytest.approx(min(risk_ratio(joint, pair) for pair in pairs), abs=ROUNDING)
    assert uniform_bayes_security(joint) == pytest.approx(
        risk_ratio(joint, np.full(present, 1 / present)), abs=ROUNDING
    )


@given(channels())
def test_uniform_security_is_never_the_lower_and_the_same_for_two_secrets(joint: Array) -> None:
    worst, uniform = bayes_security(joint), uniform_bayes_security(joint)
    assert worst is not None and uniform is not None and worst <= uniform + ROUNDING
    if (joint.sum(1) > 0).sum() == 2:
        assert worst == pytest.approx(uniform, abs=ROUNDING)


@given(tables(), st.data())
def test_processing_the_output_leaks_no_more(joint: Array, data: st.DataObject) -> None:
    outputs = joint.shape[1]
    merge = np.eye(outputs)[
        data.draw(st.lists(st.integers(0, outputs - 1), min_size=outputs, max_size=outputs))
    ]
    noise = data.draw(hnp.arrays(np.int64, (outputs, 3), elements=st.integers(1, 5)))
    for after in (joint @ merge, joint @ (noise / noise.sum(1, keepdims=True))):
        for leakage in LEAKAGES:
            assert (leakage(after) or 0) <= (leakage(joint) or 0) + ROUNDING
        for security in SECURITIES:
            before = security(joint)
            assert before is None or (security(after) or 0) >= before - ROUNDING


@given(
    hnp.arrays(np.int64, st.integers(1, 5), elements=st.integers(0, 9)),
    hnp.arrays(np.int64, st.integers(1, 5), elements=st.integers(0, 9)),
)
def test_independent_outputs_leak_nothing(secret: Array, output: Array) -> None:
    joint = np.outer(secret, output)
    if joint.sum():
        assert [leakage(joint) for leakage in LEAKAGES] == pytest.approx([0, 1, 0], abs=ROUNDING)
        assert all(measure(joint) in (None, pytest.approx(1)) for measure in SECURITIES)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_identity_leaks_all(k: int) -> None:
    joint = np.eye(k)
    assert [leakage(joint) for leakage in LEAKAGES] == pytest.approx([1 - 1 / k, k, np.log2(k)])
    assert bayes_security(joint) == 0 and uniform_bayes_security(joint) == pytest.approx(
        0, abs=ROUNDING
    )


@pytest.mark.parametrize("k", [2, 5])
def test_randomised_response_has_its_closed_form(k: int) -> None:
    """The truth with probability q + (1 - q) / k, otherwise any value: rows differ by q in total
    variation."""
    for q in (0.0, 0.3, 0.9):
        joint = q * np.eye(k) + (1 - q) / k
        assert bayes_security(joint) == pytest.approx(1 - q) and uniform_bayes_security(
            joint
        ) == pytest.approx(1 - q)
        assert multiplicative_leakage(joint) == pytest.approx(1 + (k - 1) * q)


def test_one_bad_pair_shows_in_the_worst_and_not_in_the_average() -> None:
    rows = np.full((10, 12), 1 / 12)
    rows[:2] = np.eye(12)[:2]
    assert bayes_security(rows) == 0 and (uniform_bayes_security(rows) or 0) > 0.7


def codes(n: int, classes: int = 4) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.int64, n, elements=st.integers(0, classes - 1))


@st.composite
def guessed(draw: st.DrawFn) -> tuple[Array, Array]:
    n = draw(st.integers(1, 60))
    return draw(codes(n)), draw(codes(n))


@given(guessed())
def test_f1_is_sklearns(pair: tuple[Array, Array]) -> None:
    truth, guesses = pair
    assert f1(truth, guesses) == pytest.approx(
        metrics.f1_score(truth, guesses, average="macro", zero_division=0)
    )
    assert f1(confusion(truth, guesses, 6)) == f1(truth, guesses)


@given(guessed())
def test_advantage_is_at_most_what_the_guesses_leak(pair: tuple[Array, Array]) -> None:
    truth, guesses = pair
    gained = advantage(truth, guesses)
    assert gained == pytest.approx(accuracy(truth, guesses) - max(np.bincount(truth)) / len(truth))
    assert (
        gained is not None
        and gained <= (additive_leakage(confusion(truth, guesses, 4)) or 0) + ROUNDING
    )


@given(
    st.integers(2, 80).flatmap(
        lambda n: st.tuples(
            codes(n, 2),
            hnp.arrays(
                np.float64,
                n,
                elements=st.sampled_from([-1.0, 0.0, 0.1, 0.5, 2.0]) | st.floats(-3, 3),
            ),
        )
    ),
    st.sampled_from([0.0, 0.01, 0.07, 0.29, 0.5, 1.0]),
)
def test_tpr_is_sklearns(pair: tuple[Array, Array], fpr: float) -> None:
    truth, score = pair
    found = tpr_at(truth, score, fpr)
    if len(np.unique(truth)) < 2:
        assert found is None
    else:
        false, true, _ = metrics.roc_curve(truth, score, drop_intermediate=False)
        assert found == pytest.approx(true[false <= fpr + ROUNDING].max())


def test_tpr_of_scores_that_know_nothing_is_the_fpr() -> None:
    random = np.random.default_rng(0)
    truth, score = random.integers(0, 2, 200_000), random.random(200_000)
    # The threshold and the count above it each err by sqrt(0.01 * 0.99 / 100,000); five deviations
    # of both.
    assert tpr_at(truth, score) == pytest.approx(0.01, abs=5 * np.sqrt(2 * 0.01 * 0.99 / 100_000))
    assert tpr_at(truth, np.zeros(200_000)) == 0 and tpr_at(truth, truth) == 1


def test_nothing_counted_is_not_nothing_leaked() -> None:
    for empty in (np.zeros((2, 3)), np.zeros((0, 0)), np.zeros((2, 0))):
        assert all(
            measure(empty) is None
            for measure in (*LEAKAGES, *SECURITIES, prior_vulnerability, posterior_vulnerability)
        )
    assert (
        advantage([], []) is None
        and f1([], []) is None
        and tpr_at([], []) is None
        and f1(np.zeros((2, 2))) is None
    )


def test_one_class_has_nothing_left_to_leak_and_no_security() -> None:
    alone = [[0, 0], [3, 4]]
    assert [leakage(alone) for leakage in LEAKAGES] == [0, 1, 0]
    assert bayes_security(alone) is None and uniform_bayes_security(alone) is None
    assert (
        advantage([1, 1], [1, 1]) == 0
        and advantage([1, 1], [0, 1]) == -0.5
        and f1([1, 1], [1, 1]) == 1
    )
    assert tpr_at([1, 1], [0.1, 0.2]) is None and tpr_at([0], [0.1]) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: additive_leakage([1, 2]), "rows"),
        (lambda: bayes_security([[1, -2]]), "not negative"),
        (lambda: posterior_vulnerability([[1, np.nan]]), "finite"),
        (lambda: tpr_at([0, 2], [0.1, 0.2]), "two classes"),
        (lambda: tpr_at([0, -1], [0.1, 0.2]), "missing"),
        (lambda: tpr_at([0, 1], [0.1, np.inf]), "finite"),
        (lambda: tpr_at([0, 1], [0.1, 0.2], 1.5), "between 0 and 1"),
        (lambda: f1([[1, 2]]), "square"),
        (lambda: advantage([0, -1], [0, 0]), "missing"),
    ],
)
def test_wrong_input_is_named(call: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        call()
