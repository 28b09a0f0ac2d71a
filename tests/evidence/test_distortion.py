"""PSNR, SSIM and MS-SSIM: against another implementation, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from privet.evidence.distortion import CAP, WEIGHTS, ms_ssim, psnr, scales, ssim
from privet.nets.similarity import similarity

MEASURES = [psnr, ssim, ms_ssim]
SIZES = [(3, 64, 64), (1, 32, 32), (3, 33, 47), (2, 11, 90)]


def _pair(shape, n: int = 4, noise: float = 20.0, seed: int = 0):
    """Smooth pictures with structure, and the same after noise."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.standard_normal((n, *shape)), (0, 0, 2, 2))
    truth = np.clip(127 + 60 * smooth / smooth.std(), 0, 255)
    made = np.clip(truth + rng.normal(0, noise, truth.shape), 0, 255)
    return made.round().astype(np.uint8), truth.round().astype(np.uint8)


@pytest.mark.parametrize("shape", SIZES)
def test_agrees_with_torchmetrics(shape):
    theirs = pytest.importorskip("torchmetrics.functional.image")
    made, truth = _pair(shape)
    a, b = (torch.from_numpy(x).double() for x in (made, truth))
    expected = theirs.structural_similarity_index_measure(a, b, data_range=255.0, reduction="none")
    np.testing.assert_allclose(ssim(made, truth), expected, atol=1e-4)
    expected = theirs.peak_signal_noise_ratio(
        a, b, data_range=255.0, reduction="none", dim=(1, 2, 3)
    )
    np.testing.assert_allclose(psnr(made, truth), expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 33, 47), (3, 176, 181)])
def test_scales_agree_with_torchmetrics(shape):
    theirs = pytest.importorskip("torchmetrics.functional.image")
    made, truth = _pair(shape, n=2, noise=60.0)
    weights = WEIGHTS[: scales(*shape[1:])]
    settings = {
        "data_range": 255.0,
        "reduction": "none",
        "betas": tuple(w / sum(weights) for w in weights),
        "normalize": "relu",
    }
    a, b = (torch.from_numpy(x).double() for x in (made, truth))
    expected = theirs.multiscale_structural_similarity_index_measure(a, b, **settings)
    np.testing.assert_allclose(ms_ssim(made, truth), expected, atol=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("shape", [*SIZES, (3, 5, 7), (1, 1, 1)])
def test_equal_pictures_are_as_close_as_can_be_and_others_are_not(measure, shape):
    made, truth = _pair(shape)
    most = CAP if measure is psnr else 1.0
    np.testing.assert_allclose(measure(truth, truth), most)
    assert (measure(255 - truth, truth) < most).all()
    assert np.isfinite(measure(made, truth)).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_more_noise_is_further_away(measure):
    means = [measure(*_pair((3, 32, 32), noise=noise)).mean() for noise in (5, 15, 45)]
    assert means[0] > means[1] > means[2]


@pytest.mark.parametrize("measure", MEASURES)
def test_constant_pictures_have_a_number(measure):
    black, white = np.zeros((2, 3, 24, 24), np.uint8), np.full((2, 3, 24, 24), 255, np.uint8)
    np.testing.assert_allclose(measure(black, white), 0, atol=0.05)
    assert (measure(white, white) == measure(black, black)).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_pictures_are_judged_one_by_one(measure, monkeypatch):
    made, truth = _pair((3, 40, 32), n=6)
    alone = np.concatenate([measure(made[i : i + 1], truth[i : i + 1]) for i in range(6)])
    np.testing.assert_allclose(measure(made, truth), alone, rtol=1e-12)
    monkeypatch.setattr("privet.evidence.distortion.AT_ONCE", 2 * made[0].size)
    np.testing.assert_allclose(measure(made, truth), alone, rtol=1e-12)
    assert measure(made[:0], truth[:0]).shape == (0,)


@pytest.mark.parametrize("measure", MEASURES)
def test_arrays_and_tensors_bytes_and_floats_are_the_same(measure):
    made, truth = _pair((1, 20, 20))
    expected = measure(made, truth)
    assert expected.dtype == np.float64
    np.testing.assert_array_equal(
        measure(torch.from_numpy(made), torch.from_numpy(truth).float()), expected
    )
    np.testing.assert_allclose(measure(made / 255.0, truth / 255.0, 1.0), expected, rtol=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_neither_order_nor_flips_matter(measure):
    made, truth = _pair((3, 32, 40))
    np.testing.assert_allclose(measure(truth, made), measure(made, truth), rtol=1e-9)
    np.testing.assert_allclose(
        measure(made[..., ::-1].copy(), truth[..., ::-1].copy()), measure(made, truth), rtol=1e-9
    )


def test_similarity_can_be_climbed():
    _, truth = _pair((1, 24, 24), n=2)
    wanted = torch.from_numpy(truth).float()
    picture = torch.full_like(wanted, 127.0, requires_grad=True)
    first = similarity(picture, wanted)[0].mean()
    first.backward()
    better = similarity(picture.detach() + 1e3 * picture.grad, wanted)[0].mean()
    assert torch.isfinite(picture.grad).all() and better > first
