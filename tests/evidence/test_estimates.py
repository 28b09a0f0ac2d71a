"""Bits of released records: near closed forms where these exist, below the truth where a lower
bound is promised."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from privet.auditing.information_estimates import (
    contrastive_information,
    gaussian_information,
    released_information,
)
from privet.core.json_values import finite
from privet.evidence.information import gaussian_bound


def two_bumps(distance: float) -> float:
    """I(u; u distance + noise) in bits, u a fair bit, by quadrature."""

    def density(x: float) -> float:
        return (norm.pdf(x) + norm.pdf(x - distance)) / 2

    entropy, _ = quad(lambda x: -density(x) * np.log2(density(x)), -8, distance + 8)
    return float(entropy - np.log2(2 * np.pi * np.e) / 2)


@pytest.mark.parametrize("wide", [1, 40])
def test_neighbours_find_what_the_main_coordinates_hold(wide: int) -> None:
    random = np.random.default_rng(0)
    u = random.integers(0, 2, 2500)
    z = random.normal(0, 0.05, (2500, wide))
    z[:, 0] = 2 * u + random.normal(size=2500)
    figure = released_information(z @ np.linalg.qr(random.normal(size=(wide, wide)))[0], u)
    true = two_bumps(2.0)
    assert figure.low < figure.value < figure.high and figure.n == 2500
    if wide == 1:
        assert figure.low <= true <= figure.high and figure.value == pytest.approx(true, abs=0.06)
    else:
        assert 0.3 * true < figure.value < 1.1 * true  # seven coordinates of noise are counted in


def test_neighbours_find_nothing_where_there_is_nothing() -> None:
    random = np.random.default_rng(1)
    found = [
        released_information(random.normal(size=(300, 3)), random.integers(0, 3, 300))
        for _ in range(20)
    ]
    assert sum(not figure.is_chance for figure in found) <= 3
    years = random.normal(size=300)
    years[:9] = np.nan
    noise = released_information(random.normal(size=(300, 3)), years)
    assert (
        noise.n == 291
        and noise.is_chance
        and not released_information(years[9:, None], years[9:]).is_chance
    )


def test_copies_of_a_person_are_no_neighbours() -> None:
    """Ten near copies of each record would be read as three neighbours that agree."""
    random = np.random.default_rng(2)
    u, z = random.integers(0, 2, 300), random.normal(size=(300, 4))
    copies, person = (
        np.repeat(z, 10, axis=0) + random.normal(0, 1e-3, (3000, 4)),
        np.repeat(np.arange(300), 10),
    )
    assert released_information(copies, np.repeat(u, 10)).value > 0.9
    careful = released_information(copies, np.repeat(u, 10), person)
    assert careful.is_chance and careful.n == 300


@pytest.mark.parametrize("n", [0, 1, 2, 5, 19])
def test_few_records_show_nothing(n: int) -> None:
    figure = released_information(np.arange(3.0 * n).reshape(n, 3), np.arange(n) % 2)
    assert figure.low == 0 <= figure.value <= figure.high <= 1 and figure.is_chance


def test_contrastive_bounds_stay_below_the_truth_and_come_near_it() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(3000, 2))
    before = torch.get_rng_state()
    found = contrastive_information(
        x, x + random.normal(size=x.shape)
    )  # 2 x 1/2 log2(1 + 1) = 1 bit
    assert (torch.get_rng_state() == before).all()
    assert found["infonce"].value > 0.75 and found["infonce"].low < 1
    assert (
        found["jensen_shannon"].low > 0.3 and found["jensen_shannon"].value < found["infonce"].value
    )
    for figure in found.values():
        assert (
            figure.low < figure.value < figure.high
            and figure.n == 1500
            and "Lower bound" in figure.note
        )


def test_unrelated_records_share_no_bits_and_equal_ones_reach_the_cap() -> None:
    random = np.random.default_rng(4)
    x = random.normal(size=(600, 3))
    nothing = contrastive_information(x, random.normal(size=(600, 5)))
    assert all(figure.low == 0 and figure.value < 0.05 for figure in nothing.values())
    everything = contrastive_information(x, x @ random.normal(size=(3, 200)))[
        "infonce"
    ]  # wider than a critic sees
    assert 3 < everything.value <= np.log2(300) and "log2 n" in everything.note


def test_people_are_not_shared_between_learning_and_judging() -> None:
    """Every person has a mark that only learning that person could connect; nobody judged was
    learned from."""
    random = np.random.default_rng(5)
    person = np.repeat(np.arange(100), 6)
    x, z = random.normal(size=(2, 100, 4))[:, person]
    found = contrastive_information(x, z, person)["infonce"]
    assert found.n == 50 and found.low == 0 and found.value < 0.5


def test_too_few_people_claim_nothing() -> None:
    for n in (0, 1, 3):
        for figure in contrastive_information(np.zeros((n, 2)), np.zeros((n, 2))).values():
            assert (
                figure.value == figure.low == figure.high == 0
                and figure.is_chance
                and "Too few" in figure.note
            )


def test_gaussian_figures_are_the_bound_and_its_reduction() -> None:
    covariance = np.diag([1.0, 4.0])
    found = gaussian_information(covariance, [2.0, 2.0], n=500, before=[0.5, 0.5])
    bits, earlier = (
        gaussian_bound(covariance, [2.0, 2.0]).value,
        gaussian_bound(covariance, [0.5, 0.5]).value,
    )
    assert found["gaussian_bound"].value == bits and found[
        "cloak_reduction"
    ].value == pytest.approx(1 - bits / earlier)
    assert found["gaussian_bound"].n == 500 and found["cloak_reduction"].better == "higher"
    assert set(gaussian_information(covariance, [2.0, 2.0], n=500)) == {"gaussian_bound"}
    assert "cloak_reduction" not in gaussian_information(
        covariance, [2.0, 2.0], n=500, before=[0.0, 1.0]
    )


def test_no_noise_is_said_to_be_without_end() -> None:
    figure = gaussian_information(np.eye(2), [1.0, 0.0], n=10)["gaussian_bound"]
    assert figure.value == np.inf and figure.note.startswith("Infinite")
    assert json.loads(json.dumps(finite({"value": figure.value}), allow_nan=False)) == {
        "value": None
    }
