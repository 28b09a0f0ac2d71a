"""How many bits the critic's estimate can show of records like these: tried where the answer is
known.

    x' ~ N(0, K),  K the covariance of the records;   z' = x' + sigma xi
    I(x'; z') = 1/2 sum_i log2(1 + lambda_i / sigma^2),   lambda_i the eigenvalues of K

sigma is set such that the answer is 1, 2, 4 and 6 bits, and the estimate is made for as many
records as there are. It can be trusted up to the largest amount of which it shows most; beyond that
it says the same of much and of very much. A lower bound is never too high on average, so what it
shows of the real records is right as a lower bound in any case: calibration says when "little" can
be told from "much".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from privet.auditing.information_estimates import SEEN_COORDINATES, contrastive_information
from privet.data.dataset import Array

# Known amounts that are tried, in bits, and how much of one has to be shown.
BITS = (1.0, 2.0, 4.0, 6.0)
SHOWN = 0.75
MOST_RECORDS = 4000


class Calibration(NamedTuple):
    """What the estimate shows of known amounts.

    Parameters:
        points: Pairs of true and shown bits.
        limit: Up to here it shows most of the truth; 0 where it does not even of one bit.
    """

    points: tuple[tuple[float, float], ...]
    limit: float

    @property
    def sentence(self) -> str:
        """For readers of a figure."""
        shown = ", ".join(f"{estimate:.1f} of {truth:g}" for truth, estimate in self.points)
        told = f"Of Gaussian records of the same covariance it shows {shown} bits."
        return f"{told} Amounts above {self.limit:g} bits cannot be told apart."


def calibrate(x: npt.ArrayLike, seed: int = 0) -> Calibration:
    """Try the estimate on Gaussian records like x (n, d), with noise for known amounts."""
    records = np.asarray(x, dtype=np.float64).reshape(len(np.asarray(x)), -1)[:MOST_RECORDS]
    spread = eigenvalues(records)
    random, points, limit = np.random.default_rng([seed, 29]), [], 0.0
    if not len(spread) or len(records) < 20:
        return Calibration((), 0.0)
    for bits in BITS:
        sigma = noise_for(spread, bits)
        plain = random.normal(size=(len(records), len(spread))) * np.sqrt(spread)
        noisy = plain + sigma * random.normal(size=plain.shape)
        points.append((bits, contrastive_information(plain, noisy, seed=seed)["infonce"].value))
    for truth, shown in points:
        if shown < SHOWN * truth:
            break
        limit = truth
    return Calibration(tuple(points), limit)


def eigenvalues(records: Array) -> Array:
    """Of the covariance of standardised records, the largest first, as many as the critic sees."""
    deviation = records.std(0)
    standard = (records - records.mean(0))[:, deviation > 0] / deviation[deviation > 0]
    values = np.linalg.svd(standard, compute_uv=False)[:SEEN_COORDINATES] ** 2 / len(records)
    return np.asarray(values[values > 1e-9])


def noise_for(spread: Array, bits: float) -> float:
    """The deviation of noise that leaves so many bits.

    >>> round(noise_for(np.ones(2), 1.0), 6)
    1.0
    """

    def left(log_sigma: float) -> float:
        return float(np.log2(1 + spread / np.exp(2 * log_sigma)).sum() / 2 - bits)

    return float(np.exp(brentq(left, -20.0, 20.0)))
