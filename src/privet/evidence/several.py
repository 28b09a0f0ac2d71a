"""Several statements with one confidence: what is picked among many is high, or low, by luck too.

A bound that holds with probability 1 - delta fails for the lowest of K cells with up to K delta.
Bonferroni: with delta / K each, all K hold at once with probability 1 - delta, and so does the one
that was picked. Nothing has to be computed again for that. Hoeffding's slack grows with the root of
ln(1 / delta), and what grows faster in a certificate's slack is small and bounded, so a slack that
was computed for one statement gives one for K. The ends of an interval are moved away from the
value as far as normal quantiles do, on the scale of log odds where the figure is a share.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from privet.evidence import Array
from privet.evidence.figures import Certified, Figure

# Confidence of the intervals of an audit.
INTERVALS = 0.95
# More than the second term of Bernstein's bound is: 7 ln(2 / delta) / (3 (m - 1)) of m draws.
DRAWN = 1e-3


def shared_bound(one: Certified, statements: int) -> float | None:
    """The bound of a certificate where so many like it hold at once with its confidence.

    All of the slack grows with the root of ln(1 / delta) or not at all, but for the second term of
    the empirical Bernstein bound on drawn integrals, which grows with ln(1 / delta).
    """
    if one.bound is None or statements <= 1:
        return one.bound
    delta = 1 - one.confidence
    growth = math.sqrt(math.log(statements / delta) / math.log(1 / delta))
    slack = growth * one.slack + (growth**2 - growth) * DRAWN
    return min(one.bound - one.slack + slack, 1.0)


def shared_figure(figure: Figure, statements: int) -> Figure:
    """A figure whose interval holds at once with those of all others, so many in all.

    >>> shared_figure(Figure(0.6, 0.57, 0.63, 1000, 0.5), 49).interval
    'Clopper-Pearson 95 %, for 49 figures at once'
    """
    if statements <= 1 or not figure.interval:
        return figure
    share = figure.unit == "share" and figure.low >= 0 and figure.high <= 1
    value, low, high = (np.array([end]) for end in (figure.value, figure.low, figure.high))
    low, high = shared_ends(value, low, high, statements, is_share=share)
    how = f"{figure.interval}, for {statements:,} figures at once"
    return replace(figure, low=float(low[0]), high=float(high[0]), interval=how)


def shared_ends(
    value: Array, low: Array, high: Array, statements: int, *, is_share: bool = True
) -> tuple[Array, Array]:
    """Ends of intervals at 95 %, moved so that so many intervals hold at once at 95 %.

    Source of the scale: Agresti, Categorical data analysis (2013), section 1.4; it keeps the ends
    of a share between 0 and 1 and widens them where the share is near either.

    >>> ends = shared_ends(np.array([0.5]), np.array([0.4]), np.array([0.6]), 10)
    >>> [round(float(end[0]), 3) for end in ends]
    [0.359, 0.641]
    """
    each = (1 - INTERVALS) / 2
    growth = norm.isf(each / statements) / norm.isf(each)
    if not is_share:
        return value - growth * (value - low), value + growth * (high - value)
    # A share of 0 or 1 has no log odds: those of half a hundredth from it stand for it.
    middle = logit(np.clip(value, 0.005, 0.995))
    ends = [
        expit(middle + growth * (logit(np.clip(end, 1e-12, 1 - 1e-12)) - middle))
        for end in (low, high)
    ]
    return np.minimum(ends[0], low), np.maximum(ends[1], high)
