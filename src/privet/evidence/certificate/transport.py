"""How far apart two groups' codes are once Gaussian noise is added, by optimal transport.

With z = c + sigma N(0, I) and codes c of law P in one group and Q in the other, for every coupling
of P and Q ::

    TV(P * N, Q * N)  <=  E h(|s - t|)
    h(r) = TV(N(0, sigma^2), N(r, sigma^2)) = 2 Phi(r / (2 sigma)) - 1

since total variation is convex and (P * N, Q * N) is the mixture of (N_s, N_t) over the coupling.
The best coupling is a transport plan with the cost h. *Any* coupling gives a valid bound, so
neither blocks nor a solver that stops early can make the answer too small.

Source: Villani, Optimal transport, old and new (2009), chapter 6, for couplings and total
variation.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import erf

from privet.core.errors import missing_extra
from privet.evidence import Array

# Codes of either group in one exact problem: its cost matrix is 32 MB, and it is solved in about a
# second.
MOST = 2000


@dataclass(frozen=True)
class Coupling:
    """A law on pairs (one code of each group) whose marginals are the two weighted samples.

    Parameters:
        cost: E h(|s - t|) under it: an upper bound on the total variation between the two groups'
            releases, in [0, 1].
        first: Index into the first group's codes, one entry per pair that has mass.
        mass: Sums to 1.
    """

    cost: float
    first: Array
    second: Array
    mass: Array


def noise_distance(r: npt.ArrayLike, sigma: float) -> Array:
    """h(r) = 2 Phi(r / (2 sigma)) - 1: total variation between two Gaussians of deviation sigma
    whose means are r apart.

    >>> noise_distance([0.0, 1.0, 100.0], 0.5).round(3)
    array([0.   , 0.683, 1.   ])
    """
    return np.asarray(erf(np.asarray(r, dtype=np.float64) / (2 * np.sqrt(2) * sigma)))


def couple(
    first: Array,
    second: Array,
    sigma: float,
    weights: tuple[Array, Array] | None = None,
    *,
    most: int = MOST,
    seed: int = 0,
) -> Coupling:
    """The cheapest coupling of two weighted samples (n, d) and (m, d) of codes; from `most` codes
    on, a good one.

    Beyond `most`, both samples are shuffled and cut into blocks of equal mass, and each block is
    solved on its own: the union of the blocks' plans is a coupling of the whole, its cost is the
    mean of theirs, and time is linear in the sample. A code on which a cut falls is in both blocks
    with part of its weight.
    """
    solver = _solver()
    given = weights or (np.ones(len(first)), np.ones(len(second)))
    blocks = -(-max(len(first), len(second)) // most)
    random = np.random.default_rng(seed)
    cut = [_cut(w, blocks, random) for w in given]
    cost, plans = 0.0, []
    for (i, wi), (j, wj) in zip(*cut, strict=True):
        price = noise_distance(cdist(first[i], second[j]), sigma)
        plan = solver.emd(wi, wj, price, numItermax=10_000_000)
        rest = (
            abs(plan.sum(1) - wi).sum() + abs(plan.sum(0) - wj).sum()
        )  # a stopped solver leaves mass unmoved: h <= 1 pays for it
        cost += (float((plan * price).sum()) + float(rest)) / blocks
        s, t = np.nonzero(plan)
        plans.append((i[s], j[t], plan[s, t] / blocks))
    return Coupling(min(cost, 1.0), *(np.concatenate(part) for part in zip(*plans, strict=True)))


def success(distances: Array, prior: Array) -> float:
    """The best guess among k values can be right at most this often, given bounds (k, k) on their
    total variations.

    For any reference value r, from max_a pi_a p_a <= pi_r p_r + sum over a of (pi_a p_a - pi_r
    p_r)^+ ::

        V  <=  min over r of  pi_r
               + sum over a != r of [ (pi_a - pi_r)^+ + min(pi_a, pi_r) T(a, r) ]

    With two values and pi = 1/2 that is (1 + T) / 2, and with a rarer value of prior p it is (1 -
    p) + p T.

    >>> apart = np.array([[0, 0.2], [0.2, 0]])
    >>> success(apart, np.array([0.5, 0.5])), round(success(apart, np.array([0.9, 0.1])), 6)
    (0.6, 0.92)
    """
    above = np.maximum(prior[:, None] - prior, 0)
    shared = np.minimum(prior[:, None], prior) * distances
    np.fill_diagonal(shared, 0)
    return min(1.0, float((prior + (above + shared).sum(0)).min()))


def _cut(weights: Array, blocks: int, random: np.random.Generator) -> list[tuple[Array, Array]]:
    """Indices and weights of each block; every block's weights sum to 1, and each code's parts to
    its weight times `blocks`."""
    order = random.permutation(len(weights)) if blocks > 1 else np.arange(len(weights))
    ends = np.concatenate([[0.0], np.cumsum(weights[order] / weights.sum())])
    ends[-1] = 1.0
    found = []
    for low, high in zip(
        np.arange(blocks) / blocks, np.arange(1, blocks + 1) / blocks, strict=True
    ):
        start, stop = np.searchsorted(ends, low, "right") - 1, np.searchsorted(ends, high, "left")
        part = np.minimum(ends[start + 1 : stop + 1], high) - np.maximum(ends[start:stop], low)
        found.append((order[start:stop], part / part.sum()))
    return found


def _solver() -> Any:
    try:
        return import_module("ot")
    except ImportError:
        raise missing_extra("POT", "certify", "Optimal transport") from None
