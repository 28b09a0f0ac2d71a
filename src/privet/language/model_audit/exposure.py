"""Exposure: how much sooner a planted sentence would be found than by chance, in bits.

For a space R of sentences and the rank of the planted one among them, ordered by how likely the
model finds each::

    exposure(s) = log2 |R| - log2 rank(s)

It is log2 |R| for a sentence that the model finds likelier than all others, and for one it has
never seen it is 1.44 bits on average (the rank is then uniform, and E[-log2 U] = 1 / ln 2). Where R
can be listed the rank is counted. Where it cannot, -log p of sentences drawn from R is fitted with
a skew-normal distribution F, and exposure is -log2 F(-log p(s)).

Source: Carlini, Liu, Erlingsson, Kos and Song, The Secret Sharer: Evaluating and testing unintended
memorization in neural networks, USENIX Security (2019), sections 4.2 and 4.3; the distribution:
Azzalini, Scandinavian Journal of Statistics 12 (1985), 171-178.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kstest, skewnorm

from privet.data.dataset import Array
from privet.language.models.canaries import Canary, Pattern
from privet.language.models.tokens import Tokenizer

# Mean exposure, in bits, of a sentence that was never planted.
BY_CHANCE = 1 / math.log(2)
# Largest space that is listed.
LARGEST_LISTED = 100_000
# Sentences drawn to fit the distribution.
SAMPLE = 4000

# Token rows (n, t) to -log p (n,).
RowNats = Callable[[Array], Array]


@dataclass(frozen=True)
class Exposure:
    """The exposure of one canary.

    Parameters:
        bits: By listing where the space is small, else by fit.
        fitted: By fit, in any case: where both are known they check each other.
        most: log2 |R|, the bits of a sentence that is remembered perfectly.
        p_value: Of the fit.
    """

    canary: Canary
    bits: float
    fitted: float
    most: float
    listed: bool
    p_value: float


def exposure_by_listing(space: Array, planted: Array) -> Array:
    """Exposure in bits from -log p of all sentences, and of those that were planted. Sentences that
    are just as likely share the mean of their ranks.

    >>> exposure_by_listing(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0]))
    array([2., 0.])
    """
    ordered = np.sort(space)
    below, upto = (np.searchsorted(ordered, planted, side) for side in ("left", "right"))
    ranks = (below + 1 + np.maximum(upto, below + 1)) / 2
    return np.asarray(math.log2(len(space)) - np.log2(ranks))


def fit(sample: Array) -> Any:
    """The skew-normal distribution of a sample of -log p, by maximum likelihood."""
    centre, spread = float(sample.mean()), float(sample.std())
    if spread < 1e-9 * max(1.0, abs(centre)):
        # All sentences are equally likely: any narrow distribution says so.
        return skewnorm(0.0, centre, 1e-6 * max(1.0, abs(centre)))
    z = (sample - centre) / spread
    # The likelihood has a stationary point at shape 0; moments give a start away from it.
    start = float(np.clip(np.mean(z**3), -0.9, 0.9))
    shape, location, scale = skewnorm.fit(z, 4 * start or 0.1)
    return skewnorm(shape, centre + spread * location, spread * scale)


def exposure_by_fit(law: Any, nats: Array) -> Array:
    """Exposure in bits of sentences with these -log p, given the distribution of the space."""
    return np.asarray(np.maximum(-law.logcdf(nats) / math.log(2), 0.0))


def exposures(
    canaries: Sequence[Canary],
    tokenizer: Tokenizer,
    row_nats: RowNats,
    seed: int = 0,
    largest_listed: int = LARGEST_LISTED,
) -> tuple[Exposure, ...]:
    """The exposure of every canary. A pattern's space is scored once for all its canaries."""
    by_canary: dict[Canary, Exposure] = {}
    for text in dict.fromkeys(canary.pattern for canary in canaries):
        pattern, planted_here = (
            Pattern(text),
            [canary for canary in canaries if canary.pattern == text],
        )
        random, listed = np.random.default_rng([seed, 5]), pattern.space <= largest_listed
        planted = np.array([canary.fill for canary in planted_here], dtype=np.int64)
        nats = row_nats(pattern.rows(tokenizer, planted))
        fills = np.arange(pattern.space) if listed else random.integers(0, pattern.space, SAMPLE)
        space = row_nats(pattern.rows(tokenizer, fills))
        never = space[~np.isin(fills, planted)]
        sample = never if len(never) <= SAMPLE else random.choice(never, SAMPLE, replace=False)
        law, most = fit(sample), math.log2(pattern.space)
        p_value = float(kstest(sample, law.cdf).pvalue)
        fitted = np.minimum(exposure_by_fit(law, nats), most)
        bits = exposure_by_listing(space, space[planted]) if listed else fitted
        for canary, one, other in zip(planted_here, bits.tolist(), fitted.tolist(), strict=True):
            by_canary[canary] = Exposure(canary, one, other, most, listed, p_value)
    return tuple(by_canary[canary] for canary in canaries)
