"""Randomised response over K symbols: its channel, and how much of it a wanted bound takes.

With probability `flip` a symbol is replaced by one drawn uniformly. Every value's law is then mixed with the same uniform law, which
raises all terms of V = sum_z max_a pi_a P_a(z) at z alike, so that at equally likely values V is a straight line in flip ::

    V(flip)  =  (1 - flip) V(0)  +  flip / k

and the smallest flip for a target is a division. certificate.py has the bound and its slack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.evidence.certificate import Array, certify_alphabet


def response(size: int, flip: float) -> Array:
    """The channel (size, size): row s holds the probabilities of what is released for the symbol s.

    >>> response(2, 0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return (1 - flip) * np.eye(size) + flip / size


def smallest_flip(
    symbols: Array, size: int, labels: Array, person: Array, values: Sequence[str], target: float, *, people: Sequence[int],
    confidence: float = 0.99, margin: float | None = None,
) -> float | None:  # fmt: skip
    """The smallest flip at which a certificate on `people` (so many per value) others should come out at `target` or below.

    As `certificate.smallest_sigma`: V of the people given, plus the slack that `people` will have, plus `margin`; left out, it is what
    one standard deviation of the difference between the two samples can be at most. None where not even symbols that are always
    replaced would do, or a value has fewer than two people.
    """
    found = certify_alphabet(symbols, size, None, labels, person, "", values, confidence=confidence)
    if math.isnan(found.empirical) or min(people, default=0) < 2:
        return None
    blind = 1 / len(values)
    there, here = (blind * math.sqrt(sum(1 / n for n in counts)) for counts in (people, found.people))
    room = target - (math.hypot(there, here) / 2 if margin is None else margin) - there * math.sqrt(math.log(1 / (1 - confidence)) / 2)
    if room < blind:
        return None
    return max(0.0, 1 - (room - blind) / max(found.empirical - blind, 1e-12))
