"""Bits agree with closed forms and quadrature where these exist, and bounds keep to their side of
the truth."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import entropy, norm
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import log_loss

from privet.evidence.information import (
    Information,
    gaussian_bound,
    infonce_bound,
    jensen_shannon_bound,
    knn_information,
    least_bits,
    reduction,
    usable_bits,
)

Array = npt.NDArray[Any]


def flipped_bit(q: float) -> float:
    """Bits that a fair bit's copy, wrong with probability q, has of it."""
    return 1 - float(entropy([q, 1 - q], base=2))


def two_bumps(distance: float) -> float:
    """Bits between a fair sign s and s * distance / 2 + N(0, 1), by quadrature."""

    def density(x: float) -> float:
        return float(norm.pdf(x, distance / 2) + norm.pdf(x, -distance / 2)) / 2

    whole = quad(
        lambda x: -density(x) * np.log2(density(x)), -8 - distance, 8 + distance, limit=200
    )[0]
    return float(whole) - 0.5 * np.log2(2 * np.pi * np.e)


def gaussian_pairs(rho: float, n: int, seed: int) -> tuple[float, Array]:
    """The bits of a bivariate Gaussian and the best critic's scores of n pairs: log p(x, y) / p(x)
    p(y)."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    y = rho * x + np.sqrt(1 - rho**2) * random.normal(size=n)
    return (
        -np.log2(1 - rho**2) / 2,
        norm.logpdf(y[None], rho * x[:, None], np.sqrt(1 - rho**2)) - norm.logpdf(y)[None],
    )


@pytest.mark.parametrize("q", [0.0, 0.02, 0.11, 0.3, 0.5])
def test_a_noisy_copy_of_a_bit_has_its_bits(q: float) -> None:
    random = np.random.default_rng(1)
    n = 4000
    bit = random.integers(0, 2, n)
    copy = bit ^ (random.random(n) < q)
    table = np.where(copy[:, None] == [0, 1], 1 - q, q)
    # Five deviations of the mean log-loss, and of the shares.
    bound = 5 * np.sqrt(q * (1 - q) / n) * abs(np.log2((1 - q + 1e-9) / (q + 1e-9))) + 5e-3
    assert usable_bits(bit, table).value == pytest.approx(flipped_bit(q), abs=bound)
    assert knn_information(copy[:, None], bit).value == pytest.approx(flipped_bit(q), abs=bound)
    table = table.astype(float)
    scores = np.log(np.clip(table, 1e-9, None))[:500][:, bit[:500]]
    for found in (infonce_bound(scores), jensen_shannon_bound(scores + np.log(2))):
        assert 0 <= found.value <= flipped_bit(q) + 5 / np.sqrt(500)


@given(
    st.integers(2, 30).flatmap(
        lambda n: st.tuples(hnp.arrays(np.int64, n, elements=st.integers(0, 2)), st.integers(0, 99))
    )
)
def test_usable_bits_are_entropy_minus_sklearns_log_loss(case: tuple[Array, int]) -> None:
    truth, seed = case
    table = np.random.default_rng(seed).dirichlet([1, 1, 1], len(truth))
    prior = entropy(np.bincount(truth), base=2)
    found = usable_bits(truth, table, smoothing=0)
    assert found.raw == pytest.approx(
        prior - log_loss(truth, table, labels=[0, 1, 2]) / np.log(2), abs=1e-9
    )
    assert found.value == pytest.approx(max(found.raw, 0)) and found.cap == pytest.approx(prior)


def test_saying_the_prior_is_of_no_use_and_a_sure_mistake_is_not_the_end() -> None:
    truth = np.repeat([0, 1], [70, 30])
    assert usable_bits(truth, [[0.7, 0.3]] * 100).raw == pytest.approx(0, abs=1e-5)
    sure = np.eye(2)[truth]
    sure[0] = sure[0, ::-1]
    assert (
        usable_bits(truth, sure, smoothing=0).raw == -np.inf
        and usable_bits(truth, sure, smoothing=0).value == 0
    )
    assert 0.5 < usable_bits(truth, sure).value < 0.8
    assert usable_bits(truth, 1 - sure).value == 0 > usable_bits(truth, 1 - sure).raw


def brute_force_ross(x: Array, label: Array, k: int) -> float:
    total = []
    apart = abs(x[:, None] - x[None]).max(-1)
    for i in range(len(x)):
        own = np.sort(np.delete(apart[i], i)[np.delete(label, i) == label[i]])
        near = min(k, len(own))
        m = (np.delete(apart[i], i) <= own[near - 1]).sum()
        total.append(digamma(len(x)) - digamma(len(own) + 1) + digamma(near) - digamma(m))
    return float(np.mean(total) / np.log(2))


@pytest.mark.parametrize(("d", "k"), [(1, 1), (1, 3), (3, 3), (8, 5), (2, 50)])
def test_neighbours_are_counted_as_ross_does(d: int, k: int) -> None:
    random = np.random.default_rng(d + k)
    label = np.repeat([0, 1, 2], [100, 60, 20])
    x = random.normal(size=(180, d)) + label[:, None]
    scaled = x / x.std(0)
    assert knn_information(x, label, k).raw == pytest.approx(
        brute_force_ross(scaled, label, k), abs=1e-9
    )
    assert knn_information(x * 7 - 3, label, k).raw == pytest.approx(
        knn_information(x, label, k).raw, abs=1e-9
    )
    if d == 1:
        expected = mutual_info_classif(
            x, label, discrete_features=False, n_neighbors=k, random_state=0
        )[0] / np.log(2)
        assert knn_information(x, label, k).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("idle", [0, 2])
def test_neighbours_find_the_bits_of_two_bumps(distance: float, idle: int) -> None:
    random = np.random.default_rng(3)
    n = 4000
    label = random.integers(0, 2, n)
    x = random.normal(size=(n, 1 + idle))
    x[:, 0] += (label - 0.5) * distance
    # The deviation of one record's term is about one bit with k = 3; idle coordinates smear the
    # estimate down.
    assert knn_information(x, label).raw == pytest.approx(
        two_bumps(distance), abs=5 / np.sqrt(n) + 0.03 * idle
    )


def test_repeated_vectors_are_measured() -> None:
    random = np.random.default_rng(0)
    label = random.integers(0, 3, 900)
    assert knn_information(label[:, None], label).value == pytest.approx(
        entropy(np.bincount(label), base=2), abs=1e-9
    )
    assert knn_information(np.full((900, 4), 0.1), label).raw == 0
    assert knn_information(random.integers(0, 2, (900, 1)), label).value < 0.02


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_lower_bounds_stay_below_a_gaussians_bits_and_near_them(rho: float) -> None:
    # Averaged over samples, since the bounds hold on average; five deviations of the twenty.
    truth = gaussian_pairs(rho, 2, 0)[0]
    for bound, near in ((infonce_bound, 0.95), (jensen_shannon_bound, 0.6)):
        found = [bound(gaussian_pairs(rho, 300, seed)[1]).value for seed in range(20)]
        slack = 5 * np.std(found) / np.sqrt(20) + 1e-9
        assert near * truth - slack <= np.mean(found) <= truth + slack


def test_much_information_meets_the_cap() -> None:
    truth, scores = gaussian_pairs(1 - 1e-9, 64, 0)
    assert truth > 12
    for found in (infonce_bound(scores), jensen_shannon_bound(np.clip(scores, -1e6, 1e6))):
        assert found.cap == 6 and 5 < found.value <= 6
    assert "6.00 bits" in infonce_bound(scores).limit


def test_infonce_forgets_what_a_row_has_in_common() -> None:
    _, scores = gaussian_pairs(0.8, 50, 1)
    assert infonce_bound(scores + 1000 * np.arange(50)[:, None]).raw == pytest.approx(
        infonce_bound(scores).raw, abs=1e-9
    )


@given(
    st.integers(2, 5).flatmap(
        lambda k: hnp.arrays(np.float64, (2, k), elements=st.floats(1e-3, 1) | st.just(0.0))
    )
)
def test_no_distributions_have_fewer_bits_than_their_divergence_shows(table: Array) -> None:
    if (table.sum(1) > 0).all():
        p, q = table / table.sum(1, keepdims=True)
        divergence = (entropy(p, (p + q) / 2, base=2) + entropy(q, (p + q) / 2, base=2)) / 2
        assert least_bits(float(divergence), 50.0) <= entropy(p, q, base=2) + 1e-6


@given(st.floats(0.001, 1))
def test_and_a_part_of_a_distribution_has_exactly_those(t: float) -> None:
    p, q = np.array([1, 0]), np.array([t, 1 - t])
    divergence = (entropy(p, (p + q) / 2, base=2) + entropy(q, (p + q) / 2, base=2)) / 2
    assert least_bits(float(divergence), 50.0) == pytest.approx(-np.log2(t), abs=1e-6)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_the_gaussian_bound_is_exact_for_gaussians(sigma: float) -> None:
    rho = 1 / np.sqrt(1 + sigma**2)
    assert gaussian_bound([[1.0]], [sigma]).value == pytest.approx(-np.log2(1 - rho**2) / 2)
    random = np.random.default_rng(2)
    k = np.cov(random.normal(size=(5, 50)))
    scales = sigma * random.uniform(0.5, 2, 5)
    both = np.block(
        [[k, k], [k, k + np.diag(scales**2)]]
    )  # of x and x + r: I = (log |K| + |K + D| - |both|) / 2
    exact = (
        (np.linalg.slogdet(k)[1] + np.linalg.slogdet(both[5:, 5:])[1] - np.linalg.slogdet(both)[1])
        / 2
        / np.log(2)
    )
    assert gaussian_bound(k, scales).value == pytest.approx(exact)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_the_gaussian_bound_is_above_a_sign_in_noise(sigma: float) -> None:
    assert two_bumps(2 / sigma) <= gaussian_bound([[1.0]], [sigma]).value


def test_eigenvalues_paired_with_unequal_noise_would_lie() -> None:
    """Why the bound is not sum log2(1 + lambda_i / sigma_i^2): here that is below what a Gaussian x
    really tells."""
    k, scales = np.array([[1, 0.9], [0.9, 1]]), np.array([1.0, 0.1])
    largest_first = np.linalg.eigvalsh(k)[::-1]
    paired = np.log2(1 + largest_first / scales**2).sum() / 2
    exact = np.linalg.slogdet(np.eye(2) + k / scales[:, None] ** 2)[1] / 2 / np.log(2)
    assert paired < exact - 0.5 and gaussian_bound(k, scales).value == pytest.approx(exact)


def test_more_noise_tells_less_and_no_noise_everything() -> None:
    k = np.diag([4.0, 1.0, 0.0])
    bits = [gaussian_bound(k, np.array([s, s, s])).value for s in (0.0, 0.1, 1.0, 10.0)]
    assert bits[0] == np.inf and bits == sorted(bits, reverse=True)
    assert gaussian_bound(k, [1, 1, 0]).value == gaussian_bound(k[:2, :2], [1, 1]).value
    assert gaussian_bound(np.zeros((0, 0)), []).value == 0
    few, many = gaussian_bound(k, [1, 1, 1]), gaussian_bound(k, [2, 2, 2])
    assert reduction(few, few) == 0 and 0 < (reduction(few, many) or 0) < 1
    assert (
        reduction(gaussian_bound(k, [0, 0, 0]), few) is None
        and reduction(gaussian_bound(k * 0, [1, 1, 1]), few) is None
    )


def edge_cases() -> list[Information]:
    none = np.zeros(0, np.int64)
    return [
        usable_bits(none, np.zeros((0, 2))),
        usable_bits([1, 1], [[0.1, 0.9]] * 2),
        knn_information(np.zeros((0, 3)), none),
        knn_information(np.zeros((3, 0)), [0, 1, 1]),
        knn_information([[0.0], [1.0], [2.0]], [0, 1, 2]),
        knn_information([[0.0], [1.0], [2.0]], [1, 1, 1]),
        infonce_bound(np.zeros((0, 0))),
        infonce_bound([[5.0]]),
        jensen_shannon_bound(np.zeros((0, 0))),
        jensen_shannon_bound([[5.0]]),
    ]


def test_nothing_to_tell_is_no_bits() -> None:
    for found in edge_cases():
        assert found.value == 0 and found.unit == "bits" and found.limit.endswith(".")
        json.dumps(asdict(found), allow_nan=False)
    assert [found.n for found in edge_cases()] == [0, 2, 0, 2, 0, 3, 0, 1, 0, 0]


def test_a_number_of_bits_stays_what_it_was() -> None:
    with pytest.raises(FrozenInstanceError):
        edge_cases()[0].value = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: usable_bits([0, 2], [[0.5, 0.5]] * 2), "only 2 classes"),
        (lambda: usable_bits([0, -1], [[0.5, 0.5]] * 2), "missing"),
        (lambda: usable_bits([0], [[0.5, 0.6]]), "sum to one"),
        (lambda: usable_bits([0], [[0.5, 0.5]] * 2), "do not go with"),
        (lambda: knn_information([[1.0]], [0, 1]), "do not go with"),
        (lambda: knn_information([[np.nan]], [0]), "finite"),
        (lambda: knn_information([[1.0]], [0], k=0), "neighbour"),
        (lambda: infonce_bound(np.zeros((2, 3))), "square"),
        (lambda: jensen_shannon_bound([[np.inf]]), "finite"),
        (lambda: gaussian_bound(np.eye(2), [1]), "does not go with"),
        (lambda: gaussian_bound(np.eye(1), [-1]), "negative"),
        (lambda: gaussian_bound([[1, 2], [2, 1]], [1, 1]), "no negative eigenvalues"),
        (lambda: gaussian_bound([[1, 2], [0, 1]], [1, 1]), "symmetric"),
    ],
)
def test_wrong_input_is_named(call: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        call()
