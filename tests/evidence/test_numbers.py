"""Figures of numbers agree with scikit-learn and scipy, and the interval of R^2 covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import mean_absolute_error, r2_score

from privet.evidence.regression import (
    close_figure,
    error_figure,
    explained,
    explained_figure,
    likeliest,
    rank_figure,
)

Array = npt.NDArray[Any]


def clustered(random: np.random.Generator, people: int) -> tuple[Array, Array, Array, float]:
    """People, truth, guesses, and the share of variance that is explained in the whole
    population."""
    person = np.repeat(np.arange(people), random.integers(1, 9, people))
    own, miss = random.normal(size=(2, people))
    truth = own[person] + 0.5 * random.normal(size=len(person))
    guesses = 0.7 * own[person] + 0.3 * miss[person] + 0.2 * random.normal(size=len(person))
    return person, truth, guesses, 1 - (0.3**2 + 0.5**2 + 0.3**2 + 0.2**2) / 1.25


def test_values_are_those_of_other_implementations() -> None:
    person, truth, guesses, _ = clustered(np.random.default_rng(0), 60)
    figure, error = (
        explained_figure(truth, guesses, person, "lower"),
        error_figure(truth, guesses, person, "lower", 0.25),
    )
    assert figure.value == pytest.approx(r2_score(truth, guesses)) and error.value == pytest.approx(
        mean_absolute_error(truth, guesses)
    )
    assert error.chance == pytest.approx(mean_absolute_error(truth, np.full(len(truth), 0.25)))
    assert rank_figure(truth, guesses, person, "lower").value == pytest.approx(
        spearmanr(truth, guesses).statistic
    )
    for one in (figure, error, rank_figure(truth, guesses, person, "lower")):
        assert one.low < one.value < one.high and not one.is_chance and one.n == len(truth)
    assert (
        figure.better,
        error.better,
        error_figure(truth, guesses, person, "higher", 0).better,
    ) == ("lower", "higher", "lower")
    assert (figure.measure, error.measure) == ("share of variance explained", "mean absolute error")


@pytest.mark.parametrize("people", [12, 40, 120])
def test_explained_variance_is_covered(people: int) -> None:
    covered = 0
    for seed in range(200):
        person, truth, guesses, true = clustered(np.random.default_rng(seed), people)
        figure = explained_figure(truth, guesses, person, "lower")
        covered += figure.low <= true <= figure.high
    assert covered >= 0.93 * 200


@pytest.mark.parametrize("people", [40, 120])
def test_an_adversary_who_knows_nothing_is_at_chance(people: int) -> None:
    random, missed = np.random.default_rng(1), 0
    for _ in range(200):
        person, truth, _, _ = clustered(random, people)
        missed += not explained_figure(truth, np.full(len(truth), 0.0), person, "lower").is_chance
        missed += not error_figure(truth, np.full(len(truth), 0.01), person, "lower", 0.0).is_chance
    assert missed <= 0.05 * 400


@given(st.floats(0.001, 1e6), st.floats(-1e6, 1e6))
def test_the_unit_does_not_matter(scale: float, shift: float) -> None:
    person, truth, guesses, _ = clustered(np.random.default_rng(2), 20)
    one, other = (
        explained_figure(a, b, person, "lower")
        for a, b in ((truth, guesses), (truth * scale + shift, guesses * scale + shift))
    )
    assert (other.value, other.low, other.high) == pytest.approx(
        (one.value, one.low, one.high), rel=1e-3, abs=1e-3
    )


def test_order_and_names_change_nothing() -> None:
    random = np.random.default_rng(3)
    person, truth, guesses, _ = clustered(random, 30)
    order, names = random.permutation(len(truth)), random.permutation(30) + 100
    for make in (explained_figure, rank_figure):
        one, other = (
            make(truth, guesses, person, "lower"),
            make(truth[order], guesses[order], names[person][order], "lower"),
        )
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@given(st.lists(st.integers(-40, 40).map(float), min_size=1, max_size=12))
def test_no_constant_comes_close_to_more(values: list[float]) -> None:
    y = np.array(values)
    best = close_figure(y, y, range(len(y)), "lower", likeliest(y)).chance
    # Just inside the ends, where rounding does not decide.
    assert all(
        best >= (abs(y - c) <= (0.1 - 1e-9) * abs(y)).mean()
        for c in (*y, *0.9000001 * y, *1.0999999 * y)
    )


def test_nothing_known_is_said_to_be_nothing() -> None:
    for y in ([], [3.0, 3.0, 3.0]):
        figure = explained_figure(y, np.zeros(len(y)), range(len(y)), "lower")
        assert (
            (figure.value, figure.low, figure.high, figure.n) == (0, 0, 1, len(y))
            and figure.is_chance
            and figure.note
        )
        assert rank_figure(y, np.zeros(len(y)), range(len(y)), "lower").is_chance
    error = error_figure([], [], [], "lower", 5.0)
    assert (
        error.n == 0 and error.low == error.value == error.high == error.chance and error.is_chance
    )
    close = close_figure([], [], [], "lower", 5.0)
    assert (close.low, close.high, close.n) == (0, 1, 0) and close.is_chance
    assert likeliest([]) == 0 and explained([], []) == 0


def test_one_person_shows_no_spread() -> None:
    y = np.arange(20.0)
    figure = explained_figure(y, y, np.zeros(20), "lower")
    assert figure.value == 1 and (figure.low, figure.high) == (0, 1) and figure.is_chance
    assert error_figure(y, y, np.zeros(20), "lower", 9.5).is_chance
    perfect = explained_figure(y, y, np.arange(20), "lower")
    assert perfect.value == perfect.high == 1 and 0.7 < perfect.low < 0.9
