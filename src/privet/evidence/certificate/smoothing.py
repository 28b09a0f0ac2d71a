"""The smoothed plug-in in numbers: the integral of the largest of several mixtures of Gaussians,
with a bound on its own error.

V = integral of max_a pi_a (P_a * N(0, sigma^2 I))(z) dz, for laws P_a that sit on given codes. In
one and two dimensions on a grid; in more, or where sigma is too small for a grid, by Monte Carlo.
gaussian.py says what V is good for.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from privet.evidence import Array

# Most points of a grid.
GRID = 1 << 22
# Grid points per sigma, by dimension.
FINEST = {1: 256, 2: 32}
# Largest error bound of a grid; where it would be larger, draws are better.
COARSEST = 1e-3
# Standard deviations after which a Gaussian is cut off: 1e-15 of it lies beyond.
REACH = 8
# Largest code in multiples of sigma that draws can compute with: beyond, V(P^) is taken to be 1, as
# if all were told.
FARTHEST = 1e5
# Kernel values held at once: they stay in the processor's cache.
BLOCK = 1 << 20


class Draws(NamedTuple):
    """How the Monte Carlo integral is drawn."""

    number: int = 100_000
    seed: int = 0


class Value(NamedTuple):
    """A computed integral.

    Parameters:
        error: How much higher the truth may be, for numerical reasons.
    """

    value: float
    error: float


def grid_steps(codes: Array, sigma: float) -> int:
    """Grid points per sigma, or 0 where a grid would be too large or too coarse."""
    d = codes.shape[1]
    if d not in FINEST:
        return 0
    with np.errstate(over="ignore"):
        wide = np.ptp(codes, axis=0) / sigma + 2 * REACH + 1
        steps = min(FINEST[d], int((GRID / wide.prod()) ** (1 / d)))
    return steps if steps and _grid_error(d, steps) <= COARSEST else 0


def _grid_error(d: int, steps: int) -> float:
    """Error bound of `on_grid`: d h^2 / (4 sigma^2) * integral |phi''|, with integral |phi''| = 4
    phi(1) and h = sigma / steps.

    Half of it is the midpoint rule, whose error is at most h^2 / 8 * integral |f''| per axis. For f
    = max_a pi_a p_a the kinks only bend upward and f' vanishes at both ends, so integral |f''| is
    twice its negative part, at most sum_a pi_a * integral |p_a''| <= 4 phi(1) / sigma^2, kinks
    included. The other half is that a code is shared between neighbouring grid points with its mean
    kept: by Taylor, p_a moves by at most h^2 / 8 * integral |phi''| / sigma^2 in L1.
    """
    return d * math.exp(-0.5) / math.sqrt(2 * math.pi) / steps**2


def on_grid(codes: Array, weights: Array, sigma: float, steps: int) -> Value:
    """Sum over a grid of max_a of (weights_a * N_sigma), by convolution: time hardly depends on the
    number of codes."""
    # Slow to import, and methods that only learn import this module.
    from scipy.signal import oaconvolve

    d, reach = codes.shape[1], REACH * steps
    place = (codes - codes.min(0)) * (steps / sigma)
    corner = np.floor(place).astype(np.int64)
    part = place - corner
    shape = tuple(int(size) for size in corner.max(0) + 2 + 2 * reach)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / steps) ** 2)
    bell /= bell.sum()
    best = np.zeros(shape)
    for column in weights.T:
        density = np.zeros(math.prod(shape))
        for step in product((0, 1), repeat=d):
            cell = np.ravel_multi_index(tuple((corner + reach + step).T), shape)
            density += np.bincount(
                cell, column * np.where(step, part, 1 - part).prod(1), len(density)
            )
        density = density.reshape(shape)
        for axis in range(d):
            along = [-1 if other == axis else 1 for other in range(d)]
            density = oaconvolve(density, bell.reshape(along), mode="same", axes=axis)
        np.maximum(best, density, out=best)
    return Value(
        float(best.sum()), _grid_error(d, steps) + 1e-9
    )  # the last for what is cut off and rounded


def by_draws(
    codes: Array, within: Array, joint: Array, sigma: float, draws: Draws, delta: float
) -> tuple[Value, Value]:
    """Monte Carlo: with q = sum_a p_a / k and draws z of q, V(P^) is the mean of max_a (p_a / k) /
    q, in [1 / k, 1].

    At another prior, with r the most frequent value, V(P^) = pi_r + mean of (max_a pi_a p_a - pi_r
    p_r) / q. A draw lies near its own code, so q never underflows and kernels need no rescaling.
    """
    (n, d), k, count = codes.shape, within.shape[1], draws.number
    random = np.random.default_rng(draws.seed)
    mixture = within.mean(1)
    with np.errstate(over="ignore"):
        points = (codes - mixture @ codes) / sigma
    farthest = float(abs(points).max()) + REACH
    if farthest > FARTHEST:
        return Value(1.0, 0.0), Value(1.0, 0.0)
    z = points[random.choice(n, count, p=mixture / mixture.sum())] + random.standard_normal(
        (count, d)
    )
    # Each exponent below is off by at most (d + 2) eps 2 max |z|^2, and a ratio of sums by twice
    # that.
    rounding = 4 * (d + 2) * float(np.finfo(np.float64).eps) * d * farthest**2
    # -|z - c|^2 / 2 as one product, and the sums over the codes of each value as another.
    left = np.column_stack([z, np.ones(count), -0.5 * (z**2).sum(1)])
    right = np.vstack([points.T, -0.5 * (points**2).sum(1), np.ones(n)])
    table = np.hstack([within / k, joint])
    rows = min(max(BLOCK // n, 1), count)
    kernel, sums = np.empty((rows, n)), np.empty((count, 2 * k))
    for start in range(0, count, rows):
        some = kernel[: min(rows, count - start)]
        np.matmul(left[start : start + rows], right, out=some)
        np.matmul(np.exp(some, out=some), table, out=sums[start : start + rows])
    own, other = np.hsplit(sums, 2)
    q, prior = own.sum(1), joint.sum(0)
    r = int(prior.argmax())
    largest = float((np.delete(joint, r, 1).max(1) / mixture).max())
    even = _mean(own.max(1) / q, 1 - 1 / k, delta)
    gain = _mean((other.max(1) - other[:, r]) / q, largest, delta)
    return Value(even.value, even.error + rounding), Value(
        float(prior[r]) + gain.value, gain.error + rounding
    )


def _mean(x: Array, width: float, delta: float) -> Value:
    """The mean of independent draws from a range of this width; the truth is higher by more than
    the error with probability delta.

    Source: Maurer and Pontil, Empirical Bernstein bounds and sample variance penalization, COLT
    (2009), theorem 4.
    """
    m, log = len(x), math.log(2 / delta)
    return Value(
        float(x.mean()),
        math.sqrt(2 * float(x.var(ddof=1)) * log / m) + 7 * width * log / (3 * (m - 1)),
    )
