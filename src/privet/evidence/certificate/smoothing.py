"""The smoothed plug-in in numbers: the integral of the largest of several mixtures of Gaussians,
with a bound on its own error.

V = integral of max_a pi_a (P_a * N(0, sigma^2 I))(z) dz, for laws P_a that sit on given codes. In
one and two dimensions on a grid; in more, or where sigma is too small for a grid, by Monte Carlo.
gaussian.py says what V is good for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from privet.evidence import Array

# Most points of a grid.
GRID = 1 << 22
# Most densities at grid points that are held at once: 256 MB of them.
HELD = 1 << 25
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


class Grid:
    """Densities of mixtures of Gaussians around given codes, on a grid that holds them all.

    Parameters:
        codes: (n, d), d = 1 or 2.
        sigma: Deviation of the noise.
        steps: Grid points per sigma, along each axis.
    """

    def __init__(self, codes: Array, sigma: float, steps: int) -> None:
        self.d, reach = codes.shape[1], REACH * steps
        place = (codes - codes.min(0)) * (steps / sigma)
        self.corner = np.floor(place).astype(np.int64)
        self.part = place - self.corner
        self.shape = tuple(int(size) for size in self.corner.max(0) + 2 + 2 * reach)
        self.corner += reach
        bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / steps) ** 2)
        self.bell = bell / bell.sum()
        # The last for what is cut off and rounded.
        self.error = _grid_error(self.d, steps) + 1e-9

    def density(self, weights: Array) -> Array:
        """(weights * N_sigma) at the grid points, times a cell's volume, by convolution: time
        hardly depends on the number of codes."""
        # Slow to import, and methods that only learn import this module.
        from scipy.signal import oaconvolve

        density = np.zeros(math.prod(self.shape))
        for step in product((0, 1), repeat=self.d):
            cell = np.ravel_multi_index(tuple((self.corner + step).T), self.shape)
            share = np.where(step, self.part, 1 - self.part).prod(1)
            density += np.bincount(cell, weights * share, len(density))
        density = density.reshape(self.shape)
        for axis in range(self.d):
            along = [-1 if other == axis else 1 for other in range(self.d)]
            density = oaconvolve(density, self.bell.reshape(along), mode="same", axes=axis)
        return density


def on_grid(codes: Array, weights: Array, sigma: float, steps: int) -> Value:
    """Sum over a grid of max_a of (weights_a * N_sigma)."""
    grid = Grid(codes, sigma, steps)
    best = np.zeros(grid.shape)
    for column in weights.T:
        np.maximum(best, grid.density(column), out=best)
    return Value(float(best.sum()), grid.error)


def integrals_on_grid(
    codes: Array, tables: Sequence[Array], sigma: float, steps: int
) -> list[Value]:
    """The same for several tables of weights (n, any) of any mass; columns that are multiples of
    each other are convolved once."""
    grid, (units, columns) = Grid(codes, sigma, steps), _unit_columns(tables)
    fits = len(units) * math.prod(grid.shape) <= HELD
    densities = [grid.density(unit) for unit in units] if fits else []
    values = []
    for table, named in zip(tables, columns, strict=True):
        best = np.zeros(grid.shape)
        for unit, mass in named:
            density = densities[unit] if fits else grid.density(units[unit])
            np.maximum(best, mass * density, out=best)
        values.append(Value(float(best.sum()), float(table.sum()) * grid.error))
    return values


def _unit_columns(
    tables: Sequence[Array],
) -> tuple[list[Array], list[list[tuple[int, float]]]]:
    """The distinct columns of all tables, scaled to mass 1, and per table (which, mass) of each
    of its columns that has mass."""
    units: list[Array] = []
    named: list[list[tuple[int, float]]] = []
    for table in tables:
        named.append([])
        for column in table.T:
            if (mass := float(column.sum())) <= 0:
                continue
            unit = column / mass
            same = (i for i, u in enumerate(units) if np.allclose(u, unit, rtol=1e-10, atol=0))
            if (place := next(same, None)) is None:
                place = len(units)
                units.append(unit)
            named[-1].append((place, mass))
    return units, named


def by_draws(
    codes: Array, within: Array, joint: Array, sigma: float, draws: Draws, delta: float
) -> tuple[Value, Value]:
    """Monte Carlo: with q = sum_a p_a / k and draws z of q, V(P^) is the mean of max_a (p_a / k) /
    q, in [1 / k, 1].

    At another prior, with r the most frequent value, V(P^) = pi_r + mean of (max_a pi_a p_a - pi_r
    p_r) / q. A draw lies near its own code, so q never underflows and kernels need no rescaling.
    """
    k, mixture = within.shape[1], within.mean(1)
    drawn = _kernel_sums(codes, np.hstack([within / k, joint]), mixture, sigma, draws)
    if drawn is None:
        return Value(1.0, 0.0), Value(1.0, 0.0)
    sums, rounding = drawn
    own, other = np.hsplit(sums, 2)
    q, prior = own.sum(1), joint.sum(0)
    r = int(prior.argmax())
    largest = float((np.delete(joint, r, 1).max(1) / mixture).max())
    even = _mean(own.max(1) / q, 1 - 1 / k, delta)
    gain = _mean((other.max(1) - other[:, r]) / q, largest, delta)
    return Value(even.value, even.error + rounding), Value(
        float(prior[r]) + gain.value, gain.error + rounding
    )


def integrals_by_draws(
    codes: Array, tables: Sequence[Array], sigma: float, draws: Draws, delta: float
) -> list[Value]:
    """Integrals of the largest of each table's mixtures, for weights (n, any) of any mass; all
    errors hold at once with probability 1 - delta.

    With q the mean of the distinct columns scaled to mass 1 and draws z of q: for R the columns of
    largest mass M, the integral is M + mean of (max_a p_a - mean_R p_r) / q.
    """
    units, columns = _unit_columns(tables)
    table = np.stack(units, 1)
    mixture = table.mean(1)
    present = mixture > 0
    drawn = _kernel_sums(codes[present], table[present], mixture[present], sigma, draws)
    values = []
    for named in columns:
        masses = np.array([mass for _, mass in named])
        if drawn is None or len(masses) < 2:
            values.append(Value(float(masses.sum()), 0.0))
            continue
        sums, rounding = drawn
        which = [unit for unit, _ in named]
        p, ratio = sums[:, which] * masses, (table[present][:, which] * masses).max(1)
        top = masses >= masses.max() * (1 - 1e-9)
        gain = _mean(
            (p.max(1) - p[:, top].mean(1)) / sums.mean(1),
            float((ratio / mixture[present]).max()),
            delta / len(tables),
        )
        error = gain.error + float(masses.sum()) * rounding
        values.append(Value(float(masses.max()) + gain.value, error))
    return values


def _kernel_sums(
    codes: Array, table: Array, mixture: Array, sigma: float, draws: Draws
) -> tuple[Array, float] | None:
    """Densities (draws, columns of the table), up to one factor per draw, at draws of the mixture;
    and how far rounding moves a ratio of them. None where codes lie too far apart to compute."""
    (n, d), count = codes.shape, draws.number
    random = np.random.default_rng(draws.seed)
    with np.errstate(over="ignore"):
        points = (codes - mixture @ codes) / sigma
    farthest = float(abs(points).max()) + REACH
    if farthest > FARTHEST:
        return None
    z = points[random.choice(n, count, p=mixture / mixture.sum())] + random.standard_normal(
        (count, d)
    )
    # Each exponent below is off by at most (d + 2) eps 2 max |z|^2, and a ratio of sums by twice
    # that.
    rounding = 4 * (d + 2) * float(np.finfo(np.float64).eps) * d * farthest**2
    # -|z - c|^2 / 2 as one product, and the sums over the codes of each value as another.
    left = np.column_stack([z, np.ones(count), -0.5 * (z**2).sum(1)])
    right = np.vstack([points.T, -0.5 * (points**2).sum(1), np.ones(n)])
    rows = min(max(BLOCK // n, 1), count)
    kernel, sums = np.empty((rows, n)), np.empty((count, table.shape[1]))
    for start in range(0, count, rows):
        some = kernel[: min(rows, count - start)]
        np.matmul(left[start : start + rows], right, out=some)
        np.matmul(np.exp(some, out=some), table, out=sums[start : start + rows])
    return sums, rounding


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
