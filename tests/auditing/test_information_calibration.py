"""The share of information that is gone, where the answer is known: told where it can be, and not
where it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from privet.auditing.information_calibration import BITS, Calibration, calibrate, noise_for
from privet.auditing.record_information import estimated_information


@pytest.mark.parametrize("bits", BITS)
def test_the_noise_leaves_the_bits_that_are_asked_for(bits):
    spread = np.array([4.0, 1.0, 0.2])
    left = 0.5 * np.log2(1 + spread / noise_for(spread, bits) ** 2).sum()
    assert left == pytest.approx(bits, abs=1e-6)


def test_half_of_many_independent_numbers_kept_as_they_are_has_no_share_that_is_gone():
    """128 of 256 independent Gaussians, without noise: infinitely many bits are left of infinitely
    many, and a reader who matches records by them finds everybody. An earlier version said that
    half was gone."""
    x = np.random.default_rng(0).normal(size=(500, 256))
    found = estimated_information(x, x[:, :128], np.arange(len(x)), 0)
    assert "cloak_reduction" not in found
    assert "cannot be told apart" in found["infonce"].note


def test_of_records_with_few_values_the_share_that_is_gone_is_the_known_one():
    """Two of four equally likely values are told apart: one bit is left of two."""
    random = np.random.default_rng(1)
    value = random.integers(0, 4, 1200)
    x, z = np.eye(4)[value], np.eye(2)[value // 2]
    found = estimated_information(x, z, np.arange(len(x)), 0)
    assert found["cloak_reduction"].value == pytest.approx(0.5, abs=0.08)
    assert found["infonce"].value == pytest.approx(1.0, abs=0.1)


def test_calibration_knows_that_it_shows_little_of_few_records():
    random = np.random.default_rng(2)
    assert calibrate(random.normal(size=(10, 3))) == Calibration((), 0.0)
    some = calibrate(random.normal(size=(800, 2)))
    shown = [estimate for _, estimate in some.points]
    assert all(estimate <= truth + 0.4 for truth, estimate in some.points), "lower bounds"
    assert some.limit >= 1 and shown == sorted(shown)
