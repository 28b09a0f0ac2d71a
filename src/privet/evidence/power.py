"""The smallest leak that an audit could have seen: what "as by guessing" leaves open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from privet.evidence import Array
from privet.evidence.figures import Figure
from privet.evidence.intervals import balanced_interval, balanced_limits

# Samples of which it is seen how often the interval lies above guessing.
SAMPLES = 500
# Halvings of the range in which the smallest leak is looked for: to a ten-thousandth.
HALVINGS = 13


def smallest_visible(
    sizes: Sequence[float], power: float = 0.8, confidence: float = 0.95, seed: int = 0
) -> float:
    """The smallest true balanced accuracy whose interval lies above guessing in `power` of all
    samples with so many people of each class, all classes being read equally well.

    By simulation: the recalls are binomial, the interval is `balanced_interval`'s. Samples of
    different accuracies share their random numbers, so that more accuracy is never seen less.

    >>> round(smallest_visible([2000, 1000]), 2), smallest_visible([3, 3])
    (0.53, 1.0)
    """
    n = np.array([max(1, round(size)) for size in sizes if size > 0])
    if len(n) < 2:
        return 1.0
    uniform = np.random.default_rng(seed).random((SAMPLES, len(n)))
    chance = 1 / len(n)
    if not _seen(1.0, n, uniform, confidence) >= power:
        return 1.0
    low, high = chance, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _seen(middle, n, uniform, confidence) >= power:
            high = middle
        else:
            low = middle
    return high


def _seen(accuracy: float, n: Array, uniform: Array, confidence: float) -> float:
    right = binom.ppf(uniform, n, accuracy)
    return float((balanced_limits(right, n, confidence)[0] > 1 / len(n)).mean())


def visible_figure(truth: Array, guesses: Array, score: Figure) -> Figure:
    """The same for the people that `score` was counted on.

    Where people have several records, these tell less than as many people would: each class counts
    for as many as make the interval of independent records as wide as that of `score`.

    >>> truth = np.arange(3000) % 2
    >>> from privet.evidence.leakage import balanced_figure
    >>> score = balanced_figure(truth, np.zeros(3000, int), 2, "lower", np.arange(3000))
    >>> 0.52 < visible_figure(truth, np.zeros(3000, int), score).value < 0.53
    True
    """
    codes = np.unique(truth)
    sizes = np.array([np.count_nonzero(truth == code) for code in codes])
    if score.interval.startswith("bootstrap"):
        right = [int(((truth == code) & (guesses == code)).sum()) for code in codes]
        low, high = balanced_interval(right, sizes.tolist())
        sizes = sizes * min(1.0, ((high - low) / max(score.high - score.low, 1e-9)) ** 2)
    value = smallest_visible(sizes.tolist())
    return Figure(
        value,
        value,
        value,
        score.n,
        score.chance,
        better=score.better,
        interval="",
        measure="smallest balanced accuracy that this audit sees 8 times in 10",
        note="With so many test people, a smaller leak would often not be told from guessing.",
    )
