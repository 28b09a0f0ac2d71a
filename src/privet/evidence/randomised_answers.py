"""Answers that a participant changes before they leave, and what can be estimated from many.

Of k possible answers the true one is told with probability p = e^eps / (e^eps + k - 1), any other
with q = 1 / (e^eps + k - 1) (randomised response: Warner, JASA 60, 1965; for k answers Kairouz,
Bonawitz and Ramage, ICML 2016). Whoever sees the answer can tell two true answers apart by a factor
of e^eps at most, whatever else they know. The share of an answer among n people follows:

    share = (told / n - q) / (p - q)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.evidence.intervals import clopper_pearson


@dataclass(frozen=True)
class Share:
    """The estimated share of people whose true answer is this one.

    Parameters:
        value: The answer.
        share: Its estimated share; below 0 or above 1 only by chance.
        low, high: 95 % interval.
        told: How many told it.
    """

    value: str
    share: float
    low: float
    high: float
    told: int


def truth_probability(epsilon: float, answers: int) -> float:
    """How often the true answer is told.

    >>> round(truth_probability(math.log(3), 2), 3)
    0.75
    """
    return math.exp(epsilon) / (math.exp(epsilon) + answers - 1)


def told_answer(true: int, answers: int, epsilon: float, uniform: float) -> int:
    """The answer that is told, from a number between 0 and 1.

    >>> [told_answer(1, 3, 1.0, u) for u in (0.1, 0.6, 0.9)]
    [1, 0, 2]
    """
    keep = truth_probability(epsilon, answers)
    if uniform < keep:
        return true
    other = min(int((uniform - keep) / (1 - keep) * (answers - 1)), answers - 2)
    return other if other < true else other + 1


def shares(told: Sequence[int], values: Sequence[str], epsilon: float) -> list[Share]:
    """Shares of the true answers, from how many people told each.

    >>> [round(one.share, 2) for one in shares([75, 25], ["yes", "no"], math.log(3))]
    [1.0, 0.0]
    """
    people = sum(told)
    p = truth_probability(epsilon, len(values))
    q = (1 - p) / (len(values) - 1)

    def true(share: float) -> float:
        return (share - q) / (p - q)

    found = []
    for value, count in zip(values, told, strict=True):
        interval = clopper_pearson(count, people)
        found.append(
            Share(value, true(count / people), true(interval[0]), true(interval[1]), count)
        )
    return found
