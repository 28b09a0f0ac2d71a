"""Intervals for shares that were counted, and for the mean of several of them.

All of them take the counted records as independent draws. Several records of one person are not:
then the truth is less sure than these intervals say, and n should be read as people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from privet.evidence import Array


class Interval(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


def clopper_pearson(right: int, n: int, confidence: float = 0.95) -> Interval:
    """Exact interval for a share of which `right` of `n` were counted; it never covers less often
    than `confidence`.

    With a = 1 - confidence and B(q; ., .) the q-quantile of the beta distribution::

        low  = B(a / 2;     right,     n - right + 1)      (0 where right = 0)
        high = B(1 - a / 2; right + 1, n - right)          (1 where right = n)

    Nothing counted says nothing: n = 0 gives (0, 1).

    Source: Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934),
    404-413.

    >>> low, high = clopper_pearson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4439, 0.9748)
    >>> clopper_pearson(0, 0)
    Interval(low=0.0, high=1.0)
    """
    assert 0 <= right <= n, f"{right} right of {n} is not a count."
    low, high = _beta_limits(np.array([float(right)]), np.array([float(n)]), confidence)
    return Interval(float(low[0]), float(high[0]))


def balanced_interval(right: Sequence[int], n: Sequence[int], confidence: float = 0.95) -> Interval:
    """Interval for the mean of the per-class recalls `right[i] / n[i]`, that is, for balanced
    accuracy.

    At each end the wider of two limits, with p_i the recalls, m their mean, k classes and w = 1 /
    k:

    - MOVER over the Clopper-Pearson limits (l_i, u_i) of each class::

          low = m - sqrt(sum w^2 (p_i - l_i)^2),   high = m + sqrt(sum w^2 (u_i - p_i)^2)

    - Clopper-Pearson of m at the effective number of records ::

          n* = m (1 - m) / V,   V = sum w^2 p_i (1 - p_i) / (n_i - 1)

      (k^2 / sum 1 / n_i where all recalls are 0, or all 1). A class of one record shows no spread
      of its own and takes that of all such classes together, or m (1 - m) if it is the only one.

    MOVER alone is too narrow where all recalls are near 0 or near 1, the more so the more classes
    there are (two classes cover 92.5 %, thirty 87 %, instead of 95 %); the second limit alone is
    empty where some recalls are 0 and the others 1.

    Together they are checked, not proved (tests/evidence/test_intervals.py holds a part of it):
    where there are two classes, or every class has three records or more, exact enumeration over up
    to five classes found no coverage below 95 %, and simulation over up to thirty none below it by
    more than its own error. With three or more classes, of which some have one record or two, the
    lowest found was 90.8 % and 94.4 %.

    A class without records is left out of the mean; with no records at all the interval is (0, 1).

    Sources: Zou and Donner, Construction of confidence limits about effect measures, Statistics in
    Medicine 27 (2008), 1693-1702 (MOVER); Korn and Graubard, Confidence intervals for proportions
    with small expected number of positive counts estimated from survey data, Survey Methodology 24
    (1998), 193-201 (effective n).

    >>> low, high = balanced_interval([45, 80], [50, 100])
    >>> round(low, 3), round(high, 3)
    (0.775, 0.903)
    >>> balanced_interval([0, 0], [0, 0])
    Interval(low=0.0, high=1.0)
    """
    assert len(right) == len(n), f"{len(right)} classes were counted right, but {len(n)} counted."
    counted = [i for i, size in enumerate(n) if size > 0]
    if not counted:
        return Interval(0.0, 1.0)
    low, high = balanced_limits(
        np.array([[right[i] for i in counted]]), np.array([n[i] for i in counted]), confidence
    )
    return Interval(float(low[0]), float(high[0]))


def balanced_limits(right: Array, n: Array, confidence: float = 0.95) -> tuple[Array, Array]:
    """`balanced_interval` for many outcomes at once: `right` is (outcomes, classes), `n` (classes,)
    without zeros."""
    assert (n > 0).all() and (right >= 0).all() and (right <= n).all(), (
        "Each class needs 0 <= right <= n and n > 0."
    )
    recall, classes = right / n, len(n)
    mean = recall.mean(1)

    low, high = _beta_limits(
        right.astype(float), np.broadcast_to(n, right.shape).astype(float), confidence
    )
    mover_low = mean - np.sqrt(((recall - low) ** 2).sum(1)) / classes
    mover_high = mean + np.sqrt(((high - recall) ** 2).sum(1)) / classes

    single = n == 1
    # A class of one record shows no spread of its own: it gets that of all such classes, or of the
    # mean if it is the only one.
    alone = recall[:, single].mean(1) if single.sum() > 1 else mean
    spread = (alone * (1 - alone) * single.sum() / max(single.sum() - 1, 1))[:, None]
    variance = (
        np.where(single, spread, recall * (1 - recall) / np.maximum(n - 1, 1)).sum(1) / classes**2
    )
    same = (mean == 0) | (mean == 1)
    known = same | (
        variance > 0
    )  # elsewhere each recall is 0 or 1 but not all the same: MOVER alone decides
    effective = np.where(
        same, classes**2 / (1 / n).sum(), mean * (1 - mean) / np.where(variance > 0, variance, 1)
    )
    pooled_low, pooled_high = _beta_limits(mean * effective, effective, confidence)
    low = np.where(known, np.minimum(mover_low, pooled_low), mover_low)
    high = np.where(known, np.maximum(mover_high, pooled_high), mover_high)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _beta_limits(right: Array, n: Array, confidence: float) -> tuple[Array, Array]:
    """Clopper-Pearson limits, elementwise; counts need not be whole."""
    assert 0 < confidence < 1, f"A confidence lies between 0 and 1, {confidence} does not."
    tail, wrong = (1 - confidence) / 2, n - right
    low = np.where(right > 0, betaincinv(np.where(right > 0, right, 1), wrong + 1, tail), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.where(wrong > 0, wrong, 1), 1 - tail), 1.0)
    return low, high
