"""The bound that needs no people: from the noise and from how far apart two codes can be at all.

It holds for every population, everything the adversary may know beside the release, and with
certainty, because it compares two records rather than two groups of people. It is therefore far
above what a sample certifies, unless noise is large.

Gaussian noise. Codes lie within `diameter` of each other, because the network enforces it: in
[-1, 1]^d under tanh no two codes are farther apart than 2 sqrt(d). What the codes of a sample
happen to be is no such bound. With m records of a person and r releases of each, two people's
tuples of codes are at most sqrt(m) diameter apart, and r releases are as informative as their
mean ::

    TV  <=  tau  =  2 Phi(sqrt(m r) diameter / (2 sigma)) - 1

Symbols. A symbol is replaced by one drawn at random with probability flip, and where all m r of
them were, nothing is told: tau = 1 - flip^(m r).

Among k equally likely values, with any two laws within tau in total variation, the best guess is
right with probability at most (1 + (k - 1) tau) / k (transport.success); for two values and
Gaussian noise that is Phi(sqrt(m r) diameter / (2 sigma)).
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from privet.core.errors import PrivetError


def box_diameter(dimensions: int, low: float = -1.0, high: float = 1.0) -> float:
    """How far apart two codes of so many numbers between `low` and `high` can be.

    >>> box_diameter(4)
    4.0
    """
    return (high - low) * math.sqrt(dimensions)


def gaussian_distance(diameter: float, sigma: float, releases: int = 1) -> float:
    """tau: total variation between the releases of two codes that are so far apart.

    >>> round(gaussian_distance(2.0, 1.0), 4)
    0.6827
    """
    if not (sigma >= 0 and diameter >= 0):
        raise PrivetError(f"Noise of {sigma} on codes {diameter} apart: both are numbers from 0.")
    if sigma == 0:
        return float(diameter > 0)
    return 2 * float(ndtr(math.sqrt(releases) * diameter / (2 * sigma))) - 1


def gaussian_bound(
    diameter: float, sigma: float, values: int = 2, *, records: int = 1, releases: int = 1
) -> float:
    """Balanced accuracy that no adversary exceeds, whatever the people and whatever it knows.

    >>> round(gaussian_bound(2.0, 2.0), 4)  # Phi(1 / 2)
    0.6915
    >>> round(gaussian_bound(2.0, 2.0, records=4), 4)  # Phi(1)
    0.8413
    """
    return _guess(gaussian_distance(math.sqrt(records) * diameter, sigma, releases), values)


def symbols_bound(flip: float, values: int = 2, *, records: int = 1, releases: int = 1) -> float:
    """The same of symbols that are replaced by one drawn at random with probability `flip`.

    >>> round(symbols_bound(0.9), 4), round(symbols_bound(0.9, records=5), 4)
    (0.55, 0.7048)
    """
    if not 0 <= flip <= 1:
        raise PrivetError(f"A share of symbols replaced lies between 0 and 1, and {flip} does not.")
    return _guess(1 - flip ** (records * releases), values)


def _guess(tau: float, values: int) -> float:
    return (1 + (values - 1) * tau) / values
