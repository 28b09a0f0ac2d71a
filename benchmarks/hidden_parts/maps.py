"""Maps from vectors to vectors of the same length that were tried for benchmarks/hidden_vectors.py.

Each learns from the vectors of *fit* and gives the released vectors of all records. What became a
method of Privet is not here. Whitening is in principal directions of *fit*, the widest first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Fold(NamedTuple):
    """Vectors, private values 0 and 1, authors, parts; `fit` says which records may be learned
    from."""

    x: Array
    u: Array
    author: Array
    part: Array
    fit: Array


class Axes(NamedTuple):
    """Principal directions of *fit*: mean, variances, axes as columns."""

    mean: Array
    variance: Array
    axes: Array

    def whiten(self, x: Array, lead: int) -> Array:
        return np.asarray((x - self.mean) @ self.axes[:, :lead] / np.sqrt(self.variance[:lead]))

    def back(self, w: Array) -> Array:
        lead = w.shape[1]
        return np.asarray(w * np.sqrt(self.variance[:lead]) @ self.axes[:, :lead].T)


def axes_of(x: Array) -> Axes:
    variance, axes = np.linalg.eigh(np.cov(x.T))
    return Axes(x.mean(0), np.maximum(variance[::-1], 1e-12), axes[:, ::-1])


def unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def gap(x: Array, u: Array) -> Array:
    """The difference of the two class means."""
    return np.asarray(x[u == 1].mean(0) - x[u == 0].mean(0))


def noise(fold: Fold, deviation: float, seed: int) -> Array:
    """Gaussian noise on every number, drawn once."""
    random = np.random.default_rng(seed)
    return unit(fold.x + deviation * random.normal(size=fold.x.shape))


def author_noise(fold: Fold, deviation: float, seed: int) -> Array:
    """The same noise on all vectors of an author, so that it does not average out."""
    _, who = np.unique(fold.author, return_inverse=True)
    random = np.random.default_rng(seed)
    each = random.normal(size=(who.max() + 1, fold.x.shape[1]))
    return unit(fold.x + deviation * each[who])


def means_told(fold: Fold) -> Array:
    """Class means moved together, by the true value of every record."""
    return unit(fold.x - np.outer(fold.u - 0.5, gap(fold.x[fold.fit], fold.u[fold.fit])))


def directions(fold: Fold, count: int, ridge: float, by_author: bool = False) -> Array:
    """Iterative nullspace projection: `count` ridge regressions, one after the other, each taken
    out (after Ravfogel and others, ACL 2020); on single vectors or on the means of authors."""
    x, u = fold.x[fold.fit], fold.u[fold.fit]
    mean = x.mean(0)
    if by_author:
        _, first, who = np.unique(fold.author[fold.fit], return_index=True, return_inverse=True)
        sums = np.zeros((len(first), x.shape[1]))
        np.add.at(sums, who, x)
        x, u = sums / np.bincount(who)[:, None], u[first]
    rows, out = x - mean, np.zeros((x.shape[1], 0))
    for _ in range(count):
        left = rows - rows @ out @ out.T
        spread = left.T @ left / len(left)
        reach = ridge * np.trace(spread) / len(spread)
        direction = np.linalg.solve(spread + reach * np.eye(len(spread)), gap(left, u))
        direction -= out @ (out.T @ direction)
        out = np.c_[out, direction / np.linalg.norm(direction)]
    return unit(fold.x - (fold.x - mean) @ out @ out.T)


def bagged(fold: Fold, bags: int, seed: int, strength: float = 1.0) -> Array:
    """The mean of LEACE maps, each of a random half of the authors; one map of all for one bag."""
    random, people = np.random.default_rng(seed), np.unique(fold.author[fold.fit])
    x = fold.x[fold.fit]
    mean, change = x.mean(0), np.zeros((x.shape[1], x.shape[1]))
    spread = np.cov(x.T) + 1e-3 * np.trace(np.cov(x.T)) / x.shape[1] * np.eye(x.shape[1])
    for _ in range(bags):
        some = random.permutation(people)[: len(people) // 2] if bags > 1 else people
        rows = fold.fit & np.isin(fold.author, some)
        apart = gap(fold.x[rows], fold.u[rows])
        reader = np.linalg.solve(spread, apart)
        change += np.outer(reader, apart) / (reader @ apart) / bags
    return unit(fold.x - strength * (fold.x - mean) @ change)


def spread_axes(fold: Fold, axes: Axes, lead: int) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the difference of the classes' whitened covariances."""
    w, u = axes.whiten(fold.x[fold.fit], lead), fold.u[fold.fit]
    values, vectors = np.linalg.eigh(np.cov(w[u == 1].T) - np.cov(w[u == 0].T))
    return values, vectors


def clipped(fold: Fold, count: int, limit: float, lead: int = 100) -> Array:
    """Directions of different spread are bent instead of taken out: t becomes limit tanh(t / limit),
    which moves only what lies far out."""
    axes = axes_of(fold.x[fold.fit])
    values, vectors = spread_axes(fold, axes, lead)
    chosen = vectors[:, np.argsort(-np.abs(values))[:count]]
    t = axes.whiten(fold.x, lead) @ chosen
    return np.asarray(fold.x - axes.back((t - limit * np.tanh(t / limit)) @ chosen.T))


def level_set(fold: Fold, threshold: float, lead: int = 100, steps: int = 6) -> Array:
    """Each vector moved to the nearest point at which a quadratic reader, of means and covariances,
    says the same of everybody."""
    axes = axes_of(fold.x[fold.fit])
    values, vectors = spread_axes(fold, axes, lead)
    soft = np.sign(values) * np.maximum(np.abs(values) - threshold, 0)
    curve = (vectors * soft) @ vectors.T
    fitted = axes.whiten(fold.x[fold.fit], lead)
    slope = gap(fitted, fold.u[fold.fit])
    common = np.median(fitted @ slope + 0.5 * ((fitted @ curve) * fitted).sum(1))
    start = axes.whiten(fold.x, lead)
    w = start.copy()
    for _ in range(steps):  # Newton's method along the gradient
        bent = w @ curve
        gradient = slope + bent
        over = w @ slope + 0.5 * (bent * w).sum(1) - common
        w -= (over / (gradient**2).sum(1))[:, None] * gradient
    return unit(fold.x + axes.back(w - start))
