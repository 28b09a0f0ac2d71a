"""A certificate errs with probability 1 - confidence, by its people and its draws together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from privet.evidence.certificate.gaussian import certify, smallest_sigma
from privet.evidence.certificate.smoothing import Draws

Array = npt.NDArray[Any]
VALUES = ("f", "m", "x", "y")
PEOPLE = 400
"""Of each value."""


def constant(k: int, d: int) -> tuple[Array, Array, Array]:
    """Codes that say nothing: the integral is 1 / k exactly, and its draws do not vary."""
    labels = np.arange(k * PEOPLE) % k
    return np.zeros((len(labels), d)), labels, np.arange(len(labels))


def slacks(k: int, d: int, draws: int, delta: float) -> Array:
    """What a certificate adds, at equally likely values and at the prior."""
    codes, labels, person = constant(k, d)
    c = certify(
        codes, 1.0, labels, person, "sex", VALUES[:k], confidence=1 - delta, draws=Draws(draws)
    )
    assert c.bound is not None and c.at_prior is not None
    return np.array([c.bound - 1 / k, c.at_prior - 1 / k])


@pytest.mark.parametrize("delta", [0.01, 0.2])
@pytest.mark.parametrize("d", [3, 5])
@pytest.mark.parametrize("k", [2, 4])
def test_people_and_draws_share_what_may_go_wrong(k: int, d: int, delta: float) -> None:
    """Without variance m draws cost B / (m - 1), and people cost A: two certificates give both.

    B = 7 width ln(2 / delta_draws) / 3 (Maurer and Pontil) and, with n people of each of k values,
    A = sqrt(ln(1 / delta_people) / (2 k n)) (Hoeffding) say with which probability each may fail.
    A union bound asks that the two probabilities add up to no more than delta.
    """
    few, many = 1001, 4001
    at_few, at_many = slacks(k, d, few, delta), slacks(k, d, many, delta)
    b = (at_few - at_many) / (1 / (few - 1) - 1 / (many - 1))
    a = at_many - b / (many - 1)
    width = np.array(
        [1 - 1 / k, 1 / k]
    )  # of max_a p_a / (k q), and of its excess over one value's share
    draws_err = 2 * np.exp(-3 * b / (7 * width))
    people_err = np.exp(-2 * k * PEOPLE * a**2)
    assert (draws_err > 0).all() and (people_err + draws_err <= delta * (1 + 1e-6)).all()
    assert (people_err > 0.5 * delta).all(), (
        "most of delta is left for people, or the bound is wider than it need be"
    )


def test_on_a_grid_people_have_all_of_delta() -> None:
    codes, labels, person = constant(2, 1)
    c = certify(codes, 1.0, labels, person, "sex", VALUES[:2], confidence=0.99)
    people_err = math.exp(-4 * PEOPLE * c.slack**2)
    assert 0.9 * 0.01 < people_err <= 0.01


@pytest.mark.parametrize("d", [1, 3])
def test_noise_is_chosen_for_the_delta_that_the_certificate_has(d: int) -> None:
    """Codes that say nothing meet every target that their certificate reaches, and no lower one."""
    codes, labels, person = constant(2, d)
    c = certify(codes, 1.0, labels, person, "sex", VALUES[:2], draws=Draws(2000))
    assert c.bound is not None

    def chosen(target: float) -> float | None:
        people = (PEOPLE, PEOPLE)
        return smallest_sigma(
            codes,
            labels,
            person,
            VALUES[:2],
            target,
            people=people,
            margin=0.0,
            between=(1.0, 1.0),
            draws=Draws(2000),
        )

    assert chosen(c.bound + 1e-6) == 1.0 and chosen(c.bound - 1e-6) is None
