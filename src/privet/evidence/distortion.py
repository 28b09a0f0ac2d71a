"""How close a rebuilt picture is to the original: PSNR, SSIM and MS-SSIM, one number per picture.

Pictures are arrays (n, channels, height, width) in 0..peak. `similarity` also takes tensors and can
then be differentiated, for those who learn to rebuild (`privet.nets.similarity`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privet.evidence import Array

# PSNR of equal pictures, which would be infinite, and the highest there is.
CAP = 100.0
WINDOW, SIGMA, K1, K2 = 11, 1.5, 0.01, 0.03
# Of the scales of MS-SSIM, the finest first.
WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
# Numbers of a picture set looked at in one go.
AT_ONCE = 1 << 22


def psnr(made: Array, truth: Array, peak: float = 255.0) -> Array:
    """Peak signal-to-noise ratio in dB, 10 log10(peak^2 / mean squared error), at most 100 dB.

    >>> black = np.zeros((1, 3, 8, 8))
    >>> psnr(black, black + 25.5).round(6), psnr(black, black)
    (array([20.]), array([100.]))
    """

    def of(a: Array, b: Array) -> Array:
        error = np.square(a - b).reshape(len(a), -1).mean(1)
        return np.asarray(np.minimum(10 * np.log10(peak**2 / np.maximum(error, 1e-300)), CAP))

    return _in_parts(of, made, truth)


def ssim(made: Array, truth: Array, peak: float = 255.0) -> Array:
    """Structural similarity, -1 to 1, the mean over pixels and channels of ::

        (2 m_a m_b + c1) (2 s_ab + c2) / ((m_a^2 + m_b^2 + c1) (s_a^2 + s_b^2 + c2))

    with c_i = (K_i peak)^2, and means m, variances s^2 and covariance s_ab under a Gaussian window
    of 11 pixels and deviation 1.5. Borders are reflected, as torchmetrics does. Along an axis of
    fewer than 11 pixels the window is the largest odd number that fits.

    Source: Wang, Bovik, Sheikh and Simoncelli, Image quality assessment: from error visibility to
    structural similarity, IEEE Transactions on Image Processing 13 (2004), 600-612.

    >>> grey = np.full((1, 1, 16, 16), 100.0)  # below only the means differ: 2 * 15000 / 32500
    >>> ssim(grey, grey), ssim(grey, grey + 50).round(4)
    (array([1.]), array([0.9231]))
    """
    return _in_parts(lambda a, b: similarity(a, b, *windows(a), peak)[0], made, truth)


def ms_ssim(made: Array, truth: Array, peak: float = 255.0) -> Array:
    """SSIM over several scales, 0 to 1: the product of the contrast and structure terms of each
    scale and the SSIM of the coarsest, each to the power of its weight and 0 where it is negative.
    A scale is the one before, 2 x 2 pixels averaged.

    Five scales need 176 pixels along the shorter side. Smaller pictures have as many scales as
    `scales` says, and weights that are normalised to sum to one again.

    Source: Wang, Simoncelli and Bovik, Multi-scale structural similarity for image quality
    assessment, 37th Asilomar Conference on Signals, Systems and Computers (2003), 1398-1402.

    >>> picture = np.random.default_rng(0).integers(0, 256, (2, 3, 48, 48))
    >>> ms_ssim(picture, picture).round(12), ms_ssim(picture, 255 - picture)
    (array([1., 1.]), array([0., 0.]))
    """

    def of(a: Array, b: Array) -> Array:
        count = scales(a.shape[2], a.shape[3])
        weights = np.array(WEIGHTS[:count]) / sum(WEIGHTS[:count])
        product = np.ones(len(a))
        for scale, weight in enumerate(weights):
            whole, contrast = similarity(a, b, *windows(a), peak)
            product *= np.maximum(whole if scale == count - 1 else contrast, 0) ** weight
            a, b = _halved(a), _halved(b)
        return product

    return _in_parts(of, made, truth)


def scales(height: int, width: int) -> int:
    """How many of the five scales of MS-SSIM still fit the window; at least one.

    >>> scales(176, 200), scales(64, 64), scales(8, 8)
    (5, 3, 1)
    """
    return max(1, sum(min(height, width) >> halvings >= WINDOW for halvings in range(len(WEIGHTS))))


def similarity(
    made: Any, truth: Any, down: Any, across: Any, peak: float = 255.0
) -> tuple[Any, Any]:
    """SSIM per picture, and its contrast and structure part alone (without reflected borders).

    All are arrays, or all tensors; `down` and `across` are the window's matrices, see `windows`.
    `made` may be one picture, (1, channels, height, width), that is compared with all.
    """

    def local(x: Any) -> Any:
        return down @ x @ across.T

    a, b = made / peak, truth / peak
    mean_a, mean_b = local(a), local(b)
    spread = (local(a * a) - mean_a**2).clip(min=0) + (local(b * b) - mean_b**2).clip(min=0)
    structure = (2 * (local(a * b) - mean_a * mean_b) + K2**2) / (spread + K2**2)
    luminance = (2 * mean_a * mean_b + K1**2) / (mean_a**2 + mean_b**2 + K1**2)
    height, width = truth.shape[2:]
    y, x = _reach(height), _reach(width)
    inside, whole = structure[..., y : height - y, x : width - x], luminance * structure
    n = len(whole)
    return whole.reshape(n, -1).mean(1), inside.reshape(n, -1).mean(1)


def windows(pictures: Any) -> tuple[Array, Array]:
    """The matrices of the Gaussian window down and across pictures of this size."""
    return window(pictures.shape[2]), window(pictures.shape[3])


def window(size: int) -> Array:
    """The Gaussian window along one axis as a matrix (size, size), borders reflected."""
    reach = _reach(size)
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (steps / SIGMA) ** 2)
    source = np.abs(np.arange(size)[:, None] + steps)
    source = size - 1 - np.abs(size - 1 - source)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.arange(size)[:, None], source), weights / weights.sum())
    return matrix


def _reach(size: int) -> int:
    """Pixels on each side of the window's centre."""
    return (min(WINDOW, size) - 1) // 2


def _halved(x: Array) -> Array:
    """Means of 2 x 2 pixels; an odd last row or column is left out."""
    n, channels, height, width = x.shape
    even = x[:, :, : height // 2 * 2, : width // 2 * 2]
    return np.asarray(even.reshape(n, channels, height // 2, 2, width // 2, 2).mean((3, 5)))


def _in_parts(measure: Callable[[Array, Array], Array], made: Array, truth: Array) -> Array:
    """A measure of few pictures at a time, in float64: what is small beside the window's mean must
    not be lost."""
    assert made.shape == truth.shape and len(made.shape) == 4, (
        f"Two sets of pictures, not {made.shape} and {truth.shape}."
    )
    size = max(1, AT_ONCE // max(int(np.prod(made.shape[1:])), 1))
    parts = [
        measure(*(np.asarray(some[at : at + size], dtype=np.float64) for some in (made, truth)))
        for at in range(0, len(made), size)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)
