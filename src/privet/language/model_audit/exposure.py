"""Exposure: how much sooner a planted sentence would be found than by chance, in bits.

For a space R of sentences and the rank of the planted one among them, ordered by how likely the
model finds each::

    exposure(s) = log2 |R| - log2 rank(s)

It is log2 |R| for a sentence that the model finds likelier than all others, and for one it has
never seen it is 1.44 bits on average (the rank is then uniform, and E[-log2 U] = 1 / ln 2). Where R
can be listed the rank is counted. Where it cannot, -log p of sentences drawn from R is fitted with
a skew-normal law F, and exposure is -log2 F(-log p(s)).

Source: Carlini, Liu, Erlingsson, Kos and Song, The Secret Sharer: Evaluating and testing unintended
memorization in neural networks, USENIX Security (2019), sections 4.2 and 4.3; the law: Azzalini,
Scandinavian Journal of Statistics 12 (1985), 171-178.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import kstest, skewnorm

from privet.data.dataset import Array
from privet.language.models.canaries import Canary, Pattern
from privet.language.models.tokens import Tokenizer

BY_CHANCE = 1 / math.log(2)
"""Mean exposure, in bits, of a sentence that was never planted."""
LISTED = 100_000
"""Largest space that is listed."""
DRAWN = 4000
"""Sentences drawn to fit the law."""

Nats = Callable[[Array], Array]
"""Token rows (n, t) to -log p (n,)."""


class Law(NamedTuple):
    """A skew-normal law of -log p over a space."""

    shape: float
    mean: float
    scale: float
    p_value: float
    """Of a Kolmogorov-Smirnov test that the sentences it was fitted to follow it; small where the
    fit is poor."""

    def exposure(self, nats: Array) -> Array:
        """-log2 F, exact far into the tail, where F itself is too small for a float."""
        z = (np.asarray(nats, dtype=float) - self.mean) / self.scale
        # F(z) is the integral of the density over (-inf, z], here from 40 scales below on, in
        # logarithms.
        steps = np.concatenate([[0.0], np.geomspace(1e-6, 40.0, 4000)])
        heights = skewnorm.logpdf(z[:, None] - steps, self.shape)
        top = heights.max(1, keepdims=True)
        area = np.trapezoid(np.exp(heights - top), steps, axis=1)
        return np.asarray(np.maximum(-(np.log(area) + top[:, 0]) / math.log(2), 0.0))


class Exposure(NamedTuple):
    canary: Canary
    bits: float
    """By listing where the space is small, else by fit."""
    fitted: float
    """By fit, in any case: where both are known they check each other."""
    most: float
    """log2 |R|."""
    listed: bool
    p_value: float
    """Of the fit."""


def ranks(space: Array, found: Array) -> Array:
    """Rank, from 1, of each of `found` in a space that holds it too; sentences that are just as
    likely share the mean of their ranks."""
    ordered = np.sort(space)
    below, upto = np.searchsorted(ordered, found, "left"), np.searchsorted(ordered, found, "right")
    return np.asarray((below + 1 + np.maximum(upto, below + 1)) / 2)


def listed(space: Array, found: Array) -> Array:
    """Exposure in bits from -log p of all sentences, and of those that were planted.

    >>> listed(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0]))
    array([2., 0.])
    """
    return np.asarray(math.log2(len(space)) - np.log2(ranks(space, found)))


def fit(sample: Array) -> Law:
    """The law of a sample of -log p, by maximum likelihood."""
    centre, spread = float(sample.mean()), float(sample.std())
    if spread < 1e-9 * max(1.0, abs(centre)):
        # All sentences are as likely as each other: any narrow law says so.
        return Law(0.0, centre, 1e-6 * max(1.0, abs(centre)), 0.0)
    z = (sample - centre) / spread
    # The likelihood has a stationary point at shape 0; moments give a start away from it.
    start = float(np.clip(np.mean(z**3), -0.9, 0.9))
    shape, mean, scale = skewnorm.fit(z, 4 * start or 0.1)
    p_value = float(kstest(z, skewnorm(shape, mean, scale).cdf).pvalue)
    return Law(float(shape), centre + spread * float(mean), spread * float(scale), p_value)


def exposures(
    canaries: Sequence[Canary],
    tokenizer: Tokenizer,
    nats: Nats,
    seed: int = 0,
    most_listed: int = LISTED,
) -> list[Exposure]:
    """Exposure of every canary. A pattern's space is scored once for all its canaries."""
    by_pattern: Mapping[str, list[int]] = {one.pattern: [] for one in canaries}
    for place, one in enumerate(canaries):
        by_pattern[one.pattern].append(place)
    found: dict[int, Exposure] = {}
    for text, places in by_pattern.items():
        pattern = Pattern(text)
        random, exact = np.random.default_rng([seed, 5]), pattern.space <= most_listed
        planted = np.array([canaries[place].fill for place in places], dtype=np.int64)
        own = nats(pattern.rows(tokenizer, planted))
        fills = np.arange(pattern.space) if exact else random.integers(0, pattern.space, DRAWN)
        space = nats(pattern.rows(tokenizer, fills))
        others = space[~np.isin(fills, planted)]  # the law is of sentences that were not planted
        law = fit(others if len(others) <= DRAWN else random.choice(others, DRAWN, replace=False))
        most = math.log2(pattern.space)
        guessed = np.minimum(law.exposure(own), most)
        counted = listed(space, space[planted]) if exact else guessed
        for place, bits, fitted in zip(places, counted, guessed, strict=True):
            found[place] = Exposure(
                canaries[place], float(bits), float(fitted), most, exact, law.p_value
            )
    return [found[place] for place in range(len(canaries))]
