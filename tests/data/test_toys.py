"""The toys' optima against brute force, and against the best adversary on sampled records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from privet.core.errors import PrivetError
from privet.data.toys import AGREE, M, S, bernoulli_optimum, channel_optimum, gaussian_optimum, toy

SLACK = 4.0
"""Standard errors: a false alarm once in 16,000."""

budgets = st.floats(0, 2)


def adversary(released: np.ndarray, u: np.ndarray) -> float:
    """Accuracy of asking for the sign, on balanced classes."""
    return float(((released > 0) == u).mean())


def error(n: int) -> float:
    return SLACK * math.sqrt(0.25 / n)


@given(budgets, st.floats(0.2, 5), st.floats(0.2, 2))
def test_no_shift_and_noise_on_a_grid_beat_the_gaussian_optimum(
    distortion: float, m: float, s: float
) -> None:
    best = gaussian_optimum(distortion, m, s)
    b = np.linspace(0, min(math.sqrt(distortion), m), 2001)
    grid = ndtr((m - b) / np.sqrt(s * s + distortion - b * b)).min()
    assert best.b**2 + best.g**2 <= distortion + 1e-9
    assert best.accuracy <= grid + 1e-9
    slope = (
        m * m + s * s + distortion
    ) / s**3  # of the quotient in b, at most; the normal density is below 0.4
    assert best.accuracy >= grid - 0.4 * slope * b[-1] / 2000 - 1e-9
    assert best.accuracy == pytest.approx(ndtr((m - best.b) / math.hypot(s, best.g)))


def test_noise_helps_only_where_the_classes_are_far_apart() -> None:
    assert gaussian_optimum(0.5).g == 0
    assert gaussian_optimum(2.0, m=4, s=1).g > 0.5


@given(budgets, budgets)
def test_more_distortion_never_helps_the_adversary(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert gaussian_optimum(high).accuracy <= gaussian_optimum(low).accuracy + 1e-12


@settings(deadline=None, max_examples=40)
@given(budgets, budgets, st.floats(0.5, 1), st.floats(0.05, 0.95), st.booleans())
def test_the_same_for_flips(
    one: float, other: float, agree: float, prior: float, aware: bool
) -> None:
    low, high = sorted((one, other))
    assert (
        bernoulli_optimum(high, agree, prior, aware).accuracy
        <= bernoulli_optimum(low, agree, prior, aware).accuracy + 1e-7
    )


def test_without_distortion_the_adversary_gets_what_the_raw_data_gives() -> None:
    assert gaussian_optimum(0).accuracy == pytest.approx(ndtr(M / S))
    assert bernoulli_optimum(0).accuracy == pytest.approx(AGREE)
    assert bernoulli_optimum(0, agree=0.8, prior=0.95).accuracy == pytest.approx(0.95)


def test_with_enough_distortion_only_guessing_is_left() -> None:
    assert gaussian_optimum(M * M).accuracy == 0.5
    assert bernoulli_optimum(AGREE - 0.5).accuracy == pytest.approx(0.5)
    assert bernoulli_optimum(1, prior=0.7).accuracy == pytest.approx(0.7)


def best_on_a_grid(distortion: float, agree: float, prior: float, steps: int) -> float:
    """Every combination of four flip probabilities, the slow and obvious way."""
    f = np.linspace(0, 1, steps + 1)
    f00, f01, f10, f11 = np.meshgrid(f, f, f, f, indexing="ij")  # flip probability of (x, u)
    p00, p10 = (1 - prior) * agree, (1 - prior) * (1 - agree)
    p01, p11 = prior * (1 - agree), prior * agree
    one_0, one_1 = p00 * f00 + p10 * (1 - f10), p01 * f01 + p11 * (1 - f11)  # P(u, released 1)
    accuracy = np.maximum(one_0, one_1) + np.maximum(1 - prior - one_0, prior - one_1)
    allowed = p00 * f00 + p01 * f01 + p10 * f10 + p11 * f11 <= distortion + 1e-12
    return float(accuracy[allowed].min())


@settings(deadline=None, max_examples=25)
@given(st.floats(0, 0.6), st.floats(0.5, 1), st.floats(0.1, 0.9))
def test_the_linear_program_is_as_good_as_any_grid_and_not_too_good(
    distortion: float, agree: float, prior: float
) -> None:
    steps = 20
    best, grid = (
        bernoulli_optimum(distortion, agree, prior),
        best_on_a_grid(distortion, agree, prior, steps),
    )
    assert best.accuracy <= grid + 1e-7
    # Rounding every flip down to the grid stays in budget, and moves no P(u, released) by more than
    # P(u) / steps, twice.
    assert best.accuracy >= grid - 2 * max(prior, 1 - prior) / steps - 1e-7


@settings(deadline=None, max_examples=25)
@given(st.floats(0, 1), st.floats(0.5, 1), st.floats(0.1, 0.9), st.booleans())
def test_the_channel_is_one_keeps_its_budget_and_gives_its_accuracy(
    distortion: float, agree: float, prior: float, aware: bool
) -> None:
    best = bernoulli_optimum(distortion, agree, prior, aware)
    joint = np.array([[agree, 1 - agree], [1 - agree, agree]]) * np.array([[1 - prior], [prior]])
    released = (joint[:, :, None] * best.channel).sum(axis=1)
    assert best.channel.min() >= -1e-9
    np.testing.assert_allclose(best.channel.sum(axis=2), 1, atol=1e-7)
    assert (joint[:, :, None] * best.channel * (1 - np.eye(2))).sum() <= distortion + 1e-7
    assert released.max(axis=0).sum() == pytest.approx(best.accuracy, abs=1e-7)


def test_a_channel_that_does_not_see_u_is_never_better() -> None:
    for distortion in (0.05, 0.1, 0.2, 0.4):
        blind, aware = bernoulli_optimum(distortion, aware=False), bernoulli_optimum(distortion)
        assert blind.accuracy >= aware.accuracy - 1e-9
        np.testing.assert_array_equal(blind.channel[0], blind.channel[1])


def test_a_general_channel_on_a_fine_grid_is_no_worse_than_shift_and_noise() -> None:
    x = np.linspace(-4, 4, 41)
    half = np.exp(-0.5 * (x - M) ** 2 / S**2)
    joint = np.stack([half[::-1], half]) / (2 * half.sum())
    general = channel_optimum(joint, (x[:, None] - x) ** 2, 0.5)
    assert 0.5 <= general.accuracy <= gaussian_optimum(0.5).accuracy + 0.01


@pytest.mark.parametrize("distortion", [0.0, 0.1, 0.4, 1.0])
def test_the_best_adversary_on_sampled_gaussians_reaches_the_formula(distortion: float) -> None:
    data, best = toy("gaussian", 40_000), gaussian_optimum(distortion)
    x, u = data.records["x"].to_numpy(), data.labels["u"]
    released = x - best.b * (2 * u - 1) + best.g * np.random.default_rng(1).standard_normal(len(x))
    assert ((released - x) ** 2).mean() <= distortion + 1e-9 + SLACK * best.g**2 * math.sqrt(
        2 / len(x)
    )
    assert abs(adversary(released, u) - best.accuracy) < error(len(x))


@pytest.mark.parametrize("distortion", [0.0, 0.1, 0.3])
def test_the_best_adversary_on_sampled_bits_reaches_the_program(distortion: float) -> None:
    data, best = toy("bernoulli", 40_000), bernoulli_optimum(distortion)
    x, u = data.records["x"].to_numpy(), data.labels["u"]
    released = (np.random.default_rng(1).random(len(x)) < best.channel[u, x, 1]).astype(int)
    counts = np.zeros((2, 2))
    np.add.at(counts, (u, released), 1)
    assert abs((released != x).mean() - distortion) < error(len(x))
    assert abs(counts.max(axis=0).sum() / len(x) - best.accuracy) < error(len(x)) + 1e-9


@pytest.mark.parametrize("name", ["gaussian", "bernoulli"])
def test_a_toy_is_a_table_that_does_not_hold_its_secret(name: str) -> None:
    data = toy(name, 1000, seed=3)
    assert list(data.records.columns) == ["x"]
    assert list(data.attributes) == ["u"]
    assert data.labels["u"].sum() == 500
    assert all(len(part) for part in data.splits())
    assert (
        toy(name, 1000, seed=3).fingerprint
        == data.fingerprint
        != toy(name, 1000, seed=4).fingerprint
    )


def test_wrong_words_get_a_sentence() -> None:
    with pytest.raises(PrivetError, match="did you mean 'gaussian'"):
        toy("gausian")
    with pytest.raises(PrivetError, match="at least 4"):
        toy("gaussian", 3)
    with pytest.raises(PrivetError, match="distortion"):
        gaussian_optimum(-1)
    with pytest.raises(PrivetError, match="distortion"):
        bernoulli_optimum(0.1, agree=1.2)
