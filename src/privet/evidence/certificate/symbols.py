"""Releases of one of K symbols: what no adversary can beat, and how much randomised response a
wanted bound takes.

With probability `flip` a symbol is replaced by one drawn uniformly. Every value's law is then mixed
with the same uniform law, which raises all terms of V = sum_z max_a pi_a P_a(z) at z alike, so that
at equally likely values V is a straight line in flip ::

    V(flip)  =  (1 - flip) V(0)  +  flip / k

and the smallest flip for a target is a division. gaussian.py has the proof of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammaln

from privet.core.errors import PrivetError
from privet.evidence import Array
from privet.evidence.certificate.gaussian import Certificate, conclude, too_few
from privet.evidence.certificate.sampling import Sample, balanced_slack, checked, sampling_margin
from privet.evidence.certificate.smoothing import Value

# Most outcomes of several releases over a finite alphabet that are gone through.
OUTPUTS = 1 << 18


def certify_alphabet(
    symbols: Array,
    size: int,
    channel: Array | None,
    labels: Array,
    person: Array,
    attribute: str,
    values: Sequence[str],
    *,
    confidence: float = 0.99,
    releases: int = 1,
    prior: Sequence[float] | None = None,
    rounding: float = 0.0,
) -> Certificate:
    """Certify a release of one of `size` symbols per record, 0 .. size - 1, which `channel` (size,
    outputs) may randomise.

    Row s of the channel holds the probabilities of what is released for the symbol s, drawn anew
    for every release; None says that the symbols themselves are released, and a second release of a
    record then adds nothing. `rounding` is how far, in total variation, a computer's draws may be
    from a row. The same bound and slack hold with V(P^) = sum_y max_a pi_a (P^_a Q)(y). Of several
    releases only how often each output came counts; where even that has too many outcomes, the
    adversary is granted the symbol itself, which no number of releases tells more than.

    >>> people, sex = np.arange(4000), np.arange(4000) % 2
    >>> c = certify_alphabet(np.zeros(4000, int), 2, None, sex, people, "sex", ("f", "m"))
    >>> c.empirical, round(c.bound, 3)
    (0.5, 0.524)
    """
    symbols, labels, person = checked(symbols, labels, person, values)
    rows = _checked_symbols(symbols, size, channel)
    blank = Certificate.blank(attribute, values, confidence, releases, 1, None, "histogram")
    if len(values) < 2:
        return replace(blank, reason=too_few(values))
    sample = Sample.of(symbols.astype(np.float64), labels, person, len(values))
    blank = replace(blank, people=sample.people, prior=sample.prior(prior))
    if why := too_few(sample.people):
        return replace(blank, reason=why)
    seen = np.eye(len(sample.codes))
    if rows is not None and math.comb(rows.shape[1] + releases - 1, releases) <= OUTPUTS:
        seen = tallies(rows[sample.codes[:, 0].astype(np.int64)], releases)
    error = 1e-9 + releases * rounding
    even, real = (
        Value(float((w.T @ seen).max(0).sum()), error)
        for w in (sample.within / len(values), sample.at(prior))
    )
    apart = 1.0 if rows is None else row_distance(rows) + 2 * rounding
    return conclude(
        blank,
        sample,
        even,
        real,
        1 - confidence,
        known_prior=prior is not None,
        spread=1 - max(1 - apart, 0.0) ** releases,
    )


def row_distance(channel: Array) -> float:
    """Largest total variation between two rows of a channel.

    >>> round(row_distance(response(4, 0.3)), 6)
    0.7
    """
    return max(float(np.abs(channel - row).sum(1).max()) / 2 for row in channel)


def _checked_symbols(symbols: Array, size: int, channel: Array | None) -> Array | None:
    whole = symbols.dtype.kind in "iu" and symbols.shape[1] == 1
    if not whole or (symbols.size and not (symbols.min() >= 0 and symbols.max() < size)):
        raise PrivetError(f"Symbols are one whole number per record, from 0 to {size - 1}.")
    return checked_channel(size, channel)


def checked_channel(size: int, channel: Array | None) -> Array | None:
    """Rows of probabilities, one per symbol, or a sentence on what is wrong."""
    if channel is None:
        return None
    rows = np.asarray(channel, dtype=np.float64)
    shaped = rows.ndim == 2 and len(rows) == size
    if not (shaped and (rows >= 0).all() and np.allclose(rows.sum(1), 1, atol=1e-9)):
        raise PrivetError(f"A channel has {size} rows of probabilities that sum to 1.")
    return rows


def response(size: int, flip: float) -> Array:
    """The channel (size, size): row s holds the probabilities of what is released for the symbol s.

    >>> response(2, 0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return (1 - flip) * np.eye(size) + flip / size


def smallest_flip(
    symbols: Array,
    size: int,
    labels: Array,
    person: Array,
    values: Sequence[str],
    target: float,
    *,
    people: Sequence[int],
    confidence: float = 0.99,
    margin: float | None = None,
) -> float | None:
    """The smallest flip at which a certificate on `people` (so many per value) others should come
    out at `target` or below.

    As `gaussian.smallest_sigma`: V of the people given, plus the slack that `people` will have,
    plus `margin`; left out, it is what one standard deviation of the difference between the two
    samples can be at most, which shrinks with 1 - flip as V and slack do. None where not even
    symbols that are always replaced would do, or a value has fewer than two people.
    """
    found = certify_alphabet(symbols, size, None, labels, person, "", values, confidence=confidence)
    if math.isnan(found.empirical) or min(people, default=0) < 2:
        return None
    blind = 1 / len(values)
    room = target - blind - (margin or 0.0)
    if room < 0:
        return None
    above = found.empirical - blind + balanced_slack(people, 1 - confidence)
    above += sampling_margin(people, found.people) if margin is None else 0.0
    return max(0.0, 1 - room / above)


def tallies(rows: Array, releases: int) -> Array:
    """Probabilities (symbols, tallies) of how often each output comes in so many releases:
    multinomial, given a row of one release."""
    outputs = rows.shape[1]
    if releases == 1:
        return rows
    drawn = np.array(list(combinations_with_replacement(range(outputs), releases)))
    each = np.bincount(
        (drawn + outputs * np.arange(len(drawn))[:, None]).ravel(), minlength=len(drawn) * outputs
    ).reshape(-1, outputs)
    orders = gammaln(releases + 1) - gammaln(each + 1).sum(1)
    return np.exp(orders + np.log(np.maximum(rows, 1e-300)) @ each.T)  # type: ignore[no-any-return]
