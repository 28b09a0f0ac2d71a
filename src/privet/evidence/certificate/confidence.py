"""One confidence for a whole page: delta, the probability that anything on it is wrong, is shared
over its statements.

If statement i is wrong with probability at most delta_i, any of them is with probability at most
sum_i delta_i (Bonferroni), however they depend on each other. How delta is shared must not depend
on what the statements say. A statement's slack grows only with sqrt(ln(1 / delta_i)): half of delta
instead of all of it costs 7 % of the slack at 99 %, a hundredth of it 41 %. So the statement that
people read first gets a large share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from privet.core.errors import PrivetError

Name = TypeVar("Name")


def share_delta(delta: float, weights: Mapping[Name, float]) -> dict[Name, float]:
    """Each statement's part of delta, in proportion to its weight.

    >>> share_delta(0.01, {"overall": 2, "married": 1, "single": 1})
    {'overall': 0.005, 'married': 0.0025, 'single': 0.0025}
    """
    total = sum(weights.values())
    if not 0 < delta < 1:
        raise PrivetError(f"A confidence lies between 0 and 1, and {1 - delta:g} does not.")
    if weights and min(weights.values()) <= 0:
        raise PrivetError("Every statement needs some of the confidence: weights above 0.")
    return {name: delta * weight / total for name, weight in weights.items()}


def headline_first(
    delta: float, headlines: Sequence[Name], others: Sequence[Name], headline: float = 0.5
) -> dict[Name, float]:
    """The share `headline` of delta goes to the headlines in equal parts, the rest to all others
    in equal parts; all of it to one of the two where the other is empty.

    >>> headline_first(0.01, ["sex"], ["sex, seen 4 times", "sex, five records"])
    {'sex': 0.005, 'sex, seen 4 times': 0.0025, 'sex, five records': 0.0025}
    """
    share = 1.0 if not others else headline
    weights = dict.fromkeys(headlines, share / max(len(headlines), 1))
    rest = 1 - share if headlines else 1.0
    return share_delta(delta, weights | dict.fromkeys(others, rest / max(len(others), 1)))
