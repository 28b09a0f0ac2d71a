"""Counts that tell nothing about one person: a histogram of people with discrete Laplace noise.

Every person is counted once, so that one person more or less changes one count by one, and noise
with P(k) proportional to exp(-epsilon |k|) on every count makes the whole histogram
epsilon-differentially private (Ghosh, Roughgarden and Sundararajan, SIAM J. Computing 41, 2012).
The noise is drawn exactly, with integers alone (Canonne, Kamath and Steinke, NeurIPS 2020,
algorithm 2): floating point noise can give a count away.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from fractions import Fraction

# A number below its argument, every one as likely as the others.
Below = Callable[[int], int]
# Epsilons are rounded down to multiples of this.
GRID = 1000


def private_counts(
    counts: Mapping[str, int], epsilon: float, below: Below = secrets.randbelow
) -> dict[str, int]:
    """Counts of people, each counted once, with noise that makes them epsilon-private.

    >>> import random
    >>> sorted(private_counts({"yes": 30, "no": 12}, 1.0, random.Random(0).randrange))
    ['no', 'yes']
    """
    exact = Fraction(math.floor(epsilon * GRID), GRID)
    return {value: count + discrete_laplace(exact, below) for value, count in counts.items()}


def half_width(epsilon: float, confidence: float = 0.95) -> int:
    """How far a count is off at most, with this confidence: the smallest m with P(|K| > m) below
    what is left.

    >>> half_width(1.0), half_width(0.1)
    (3, 30)
    """
    ratio = math.exp(-math.floor(epsilon * GRID) / GRID)
    # P(|K| > m) = 2 ratio^(m + 1) / (1 + ratio)
    bound = math.log((1 - confidence) * (1 + ratio) / 2) / math.log(ratio) - 1
    return max(0, math.ceil(bound - 1e-12))


def discrete_laplace(epsilon: Fraction, below: Below = secrets.randbelow) -> int:
    """An integer k with probability proportional to exp(-epsilon |k|)."""
    numerator, denominator = epsilon.numerator, epsilon.denominator
    while True:
        start = below(denominator)
        if not _happens(Fraction(start, denominator), below):
            continue
        whole = 0
        while _happens(Fraction(1), below):
            whole += 1
        size = (start + denominator * whole) // numerator
        if below(2):
            return size
        if size:  # 0 has one sign only
            return -size


def _happens(gamma: Fraction, below: Below) -> bool:
    """True with probability exp(-gamma), for gamma between 0 and 1 (von Neumann)."""
    turns = 1
    while below(gamma.denominator * turns) < gamma.numerator:
        turns += 1
    return turns % 2 == 1
