"""Noise is of the law that the card names, whoever draws it, and nobody else can draw the same."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from scipy import stats

from privet.core.errors import PrivetError
from privet.release.noise import UNIT, Noise

LAWS = {"gaussian": stats.norm(), "laplace": stats.laplace(), "uniform": stats.uniform()}
"""Each law as another library knows it."""
WAYS = ["seeded", "system", "torch"]
N = 40_000


def _draws(law: str, way: str) -> np.ndarray:
    noise = Noise(law, (20,), 1.0)
    if way == "torch":
        torch.manual_seed(0)
        return noise.sample(N // 20, 0, torch.device("cpu")).numpy().ravel()
    return noise.draw(N // 20, seed=0 if way == "seeded" else None).ravel()


def test_every_law_is_tested_here():
    assert set(LAWS) == set(UNIT)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS)
def test_draws_follow_the_law(law, way):
    """Dvoretzky-Kiefer-Wolfowitz: the largest distance exceeds sqrt(log(2 / a) / 2n) with
    probability a at most; a is 1e-9."""
    draws = _draws(law, way)
    assert draws.dtype == np.float32 and np.isfinite(draws).all()
    assert stats.kstest(draws, LAWS[law].cdf).statistic < np.sqrt(np.log(2 / 1e-9) / (2 * N))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS)
def test_mean_and_variance_are_the_law_s(law, way):
    """Within six standard errors."""
    draws = _draws(law, way).astype(np.float64)
    mean, variance, excess = (float(m) for m in LAWS[law].stats(moments="mvk"))
    assert abs(draws.mean() - mean) < 6 * np.sqrt(variance / N)
    assert abs(((draws - mean) ** 2).mean() - variance) < 6 * variance * np.sqrt((excess + 2) / N)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS)
def test_both_tails_are_as_long_as_the_law_s(law, way):
    """Of draws beyond a far quantile there are as many as there should be, within six standard
    errors."""
    draws, share = _draws(law, way), 1e-3
    for beyond in (draws < LAWS[law].ppf(share), draws > LAWS[law].ppf(1 - share)):
        assert abs(beyond.mean() - share) < 6 * np.sqrt(share / N)


@pytest.mark.parametrize("law", LAWS)
def test_numbers_of_a_record_and_of_its_neighbour_are_not_related(law):
    draws = Noise(law, (2,), 1.0).draw(N // 2, seed=1).astype(np.float64)
    pairs = [(draws[:, 0], draws[:, 1]), (draws[:-1, 0], draws[1:, 0])]
    assert all(abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(len(a)) for a, b in pairs)


def _in_common(a, b) -> float:
    """Share of the numbers of a that are among those of b; of 200 in float32, a few may be by
    chance."""
    return float(np.isin(a, b).mean())


@pytest.mark.parametrize("law", LAWS)
def test_fresh_without_a_seed_and_the_same_with_one(law):
    noise = Noise(law, (5,), 1.0)
    assert _in_common(noise.draw(40), noise.draw(40)) < 0.05
    np.testing.assert_array_equal(noise.draw(40, seed=7), noise.draw(40, seed=7))
    assert _in_common(noise.draw(40, seed=7), noise.draw(40, seed=8)) < 0.05


def test_without_a_seed_no_generator_of_the_process_is_asked():
    """Whoever can set or guess numpy's or torch's state could subtract the noise."""
    noise, drawn = Noise("gaussian", (5,), 1.0), []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - the global generator is what must not matter
        torch.manual_seed(0)
        drawn.append(noise.draw(40))
    assert _in_common(*drawn) < 0.05


@pytest.mark.parametrize("way", ["draw", "sample"])
def test_a_free_axis_takes_the_record_s_length(way):
    noise = Noise("laplace", (None, 3), 1.0)
    made = noise.draw(4, 9, 0) if way == "draw" else noise.sample(4, 9, torch.device("cpu"))
    assert tuple(made.shape) == (4, 9, 3)
    assert Noise("laplace", (2, 3), 1.0).draw(4, 9, 0).shape == (4, 2, 3)
    assert noise.draw(0, 9).shape == (0, 9, 3)


def test_goes_into_the_card_and_out_again():
    noise = Noise("uniform", (None, 3), 0.25)
    assert Noise.from_json(noise.to_json()) == noise


def test_an_unknown_law_is_refused():
    with pytest.raises(PrivetError, match="did you mean 'gaussian'"):
        Noise("gausian", (3,), 1.0)


@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
@pytest.mark.parametrize("law", UNIT)
def test_the_rarest_draw_is_finite(law, byte, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: byte * n)
    assert np.isfinite(Noise(law, (2,), 1.0).draw(3)).all()
