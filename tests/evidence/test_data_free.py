"""The bound without people, and one confidence for several statements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from privet.core.errors import PrivetError
from privet.evidence.certificate.coded_people import CodedPeople, certify_people
from privet.evidence.certificate.confidence import headline_first, share_delta
from privet.evidence.certificate.data_free import box_diameter, gaussian_bound, symbols_bound
from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
from privet.evidence.certificate.several_records import tuples_of_records
from privet.evidence.certificate.symbols import response


@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("d", [1, 2])
def test_it_is_reached_by_two_people_in_opposite_corners_and_never_exceeded(
    d: int, records: int
) -> None:
    labels = np.arange(80).repeat(records) % 2
    corners = np.tile(2.0 * labels[:, None] - 1, (1, d))
    people = CodedPeople(corners, labels, np.arange(80).repeat(records), "x", ("a", "b"))
    found = certify_people(tuples_of_records(people, records), GaussianNoise(2.0, 3))
    bound = gaussian_bound(box_diameter(d), 2.0, records=records, releases=3)
    assert bound == pytest.approx(norm.cdf(math.sqrt(records * 3 * d) / 2))
    assert found.empirical == pytest.approx(bound, abs=2e-3 if d * records <= 2 else 0.01)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_several_values_are_guessed_no_better_than_their_distances_say(k: int) -> None:
    random = np.random.default_rng(k)
    labels = np.arange(60 * k) % k
    names = tuple(map(str, range(k)))
    people = CodedPeople(random.uniform(-1, 1, 60 * k), labels, np.arange(60 * k), "x", names)
    found = certify_people(people, GaussianNoise(1.0))
    assert found.empirical <= gaussian_bound(2.0, 1.0, k) + 1e-6
    assert gaussian_bound(2.0, 0.0, k) == 1.0 and gaussian_bound(0.0, 0.0, k) == 1 / k


@pytest.mark.parametrize("records", [1, 2, 4])
def test_symbols_that_were_all_replaced_tell_nothing(records: int) -> None:
    labels = np.arange(40).repeat(records) % 2
    people = CodedPeople(labels, labels, np.arange(40).repeat(records), "x", ("a", "b"))
    flip = 0.8
    many = RandomisedSymbols(2, response(2, flip))
    found = certify_people(tuples_of_records(people, records), many)
    assert found.empirical <= symbols_bound(flip, records=records) + 1e-9
    assert symbols_bound(flip, records=records) == (2 - flip**records) / 2


def test_what_is_no_noise_is_said() -> None:
    with pytest.raises(PrivetError, match="numbers from 0"):
        gaussian_bound(2.0, -1.0)
    with pytest.raises(PrivetError, match="between 0 and 1"):
        symbols_bound(1.5)


def test_shares_of_delta_sum_to_it() -> None:
    for shares in (
        share_delta(0.01, {"a": 3, "b": 1}),
        headline_first(0.01, ["a", "b"], list("cdefg")),
        headline_first(0.01, ["a"], []),
        headline_first(0.01, [], ["a", "c"]),
    ):
        assert sum(shares.values()) == pytest.approx(0.01) and min(shares.values()) > 0
    with pytest.raises(PrivetError, match="between 0 and 1"):
        share_delta(1.0, {"a": 1})
    with pytest.raises(PrivetError, match="above 0"):
        share_delta(0.1, {"a": 0.0})
