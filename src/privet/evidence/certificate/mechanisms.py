"""What is done to a code before it leaves: Gaussian noise, or a symbol replaced at random.

Every bound of this package needs one thing of it: integrals over what is released, ::

    integral of max_j (w_j * N)(z) dz,      w_j any measures that sit on the codes of a sample,

such as V at any prior (w_a = pi_a P_a) or the integral of (p - t q)_+ (w = p and t q, less t).
Side information, several records of a person and all priors only differ in the measures that they
ask for.

And it says how much the slack for a sample may shrink. Slack is for one fixed rule f*: person i
adds u_i g(c_i) with g(c) = P(f*(release of c) = a). Noise keeps g from varying as much as it might:
if the releases of no two codes are farther apart than tau in total variation, all values of g lie
in an interval of length tau, and so Hoeffding's inequality holds with influence tau u_i instead of
u_i. For symbols tau is 1 - flip. For Gaussian noise it takes a network that keeps every number of a
code within an interval, as tanh does; what the codes of a sample happen to be does not bound those
of others. The rule must be the same for all whom the sum is over, and so must the value guessed: in
the accuracy at the real frequencies, and on average given side information, tau is 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence import Array
from privet.evidence.certificate.data_free import gaussian_distance
from privet.evidence.certificate.gaussian import (
    FOR_DRAWS,
    MANY,
    Method,
    check_codes,
    not_certifiable,
)
from privet.evidence.certificate.smoothing import (
    Draws,
    Value,
    grid_steps,
    integrals_by_draws,
    integrals_on_grid,
)
from privet.evidence.certificate.symbols import (
    OUTPUTS,
    checked_channel,
    row_distance,
    tallies,
)

# Most outcomes of a tuple of symbols that are gone through.
OUTCOMES = 1 << 22


class Integrals(NamedTuple):
    """Integrals and what computing them has cost.

    Parameters:
        values: One per table of measures; their errors hold all at once.
        left: What is left of delta after it: draws use up a tenth of it, a grid nothing.
    """

    values: list[Value]
    left: float


class Mechanism(Protocol):
    """What is done to a code before it leaves.

    Parameters:
        sigma: Deviation of Gaussian noise; None where there is none.
        releases: How many releases of the same record, each with fresh noise, are seen.
        method: What a certificate says of how it was computed.
    """

    @property
    def sigma(self) -> float | None: ...
    @property
    def releases(self) -> int: ...
    @property
    def method(self) -> Method: ...

    def check(self, codes: Array) -> Array:
        """Codes (n, d) as numbers that can be computed with, or a sentence on what is wrong."""

    def refusal(self, codes: Array) -> str:
        """Why nothing can be certified of such codes; empty where something can."""

    def integrals(self, codes: Array, tables: Sequence[Array], delta: float) -> Integrals:
        """The integral of the largest of each table's measures (n, any), after the noise."""

    def spread(self, dimensions: int) -> float:
        """tau: total variation between the releases of any two codes of so many numbers."""


@dataclass(frozen=True)
class GaussianNoise:
    """z = c + sigma N(0, I), fresh for every release.

    Parameters:
        sigma: Deviation of the noise of one release.
        releases: How many releases of the same record, each with fresh noise, are seen: as
            informative as their mean, whose noise is sigma / sqrt(releases).
        draws: Of the Monte Carlo integral, where no grid will do.
        width: Length of the interval that the network keeps every number of a code in, whatever
            the record: 2 under tanh. None where nothing does.

    >>> codes, table = np.array([[0.0], [1.0]]), np.eye(2) / 2
    >>> values, left = GaussianNoise(0.5).integrals(codes, [table], 0.01)
    >>> round(values[0].value, 4)  # Phi(1)
    0.8413
    """

    sigma: float | None
    releases: int = 1
    draws: Draws = MANY
    width: float | None = None
    method: Literal["smoothed"] = "smoothed"

    def check(self, codes: Array) -> Array:
        codes = check_codes(codes, self.sigma).astype(np.float64)
        if self.width is not None and codes.size and np.ptp(codes) > self.width * (1 + 1e-6):
            raise PrivetError(
                f"Codes reach from {codes.min():g} to {codes.max():g}, and the network was said to "
                f"keep them within {self.width:g}."
            )
        return codes

    def refusal(self, codes: Array) -> str:
        return not_certifiable(codes.shape[1], self.sigma)

    def integrals(self, codes: Array, tables: Sequence[Array], delta: float) -> Integrals:
        assert self.sigma, "a release without noise was refused"
        sigma = self.sigma / math.sqrt(self.releases)
        if steps := grid_steps(codes, sigma):
            return Integrals(integrals_on_grid(codes, tables, sigma, steps), delta)
        spent = FOR_DRAWS * delta
        return Integrals(integrals_by_draws(codes, tables, sigma, self.draws, spent), delta - spent)

    def spread(self, dimensions: int) -> float:
        if self.width is None or not self.sigma:
            return 1.0
        diameter = self.width * math.sqrt(dimensions)
        return gaussian_distance(diameter, self.sigma, self.releases)


@dataclass(frozen=True)
class RandomisedSymbols:
    """One of `size` symbols, 0 .. size - 1, which a channel may replace; or a tuple of them, each
    replaced by itself.

    The law of a tuple is an array with an axis for each record, and the channel acts on one axis
    after the other. Of several releases of a symbol only how often each output came counts.

    Parameters:
        size: Symbols of the alphabet.
        channel: (size, outputs): the probabilities of what is released for each symbol; None:
            symbols are released as they are.
        releases: How many releases of the same record are seen. Where they have too many outcomes,
            the adversary is granted the symbol itself.
        rounding: How far, in total variation, a computer's draws may be from a row.

    With tau between two rows of the channel, m r symbols of two people are within 1 - (1 - tau)^(m
    r): draw each pair of them to be equal as often as can be.

    >>> codes, table = np.array([[0], [1]]), np.eye(2) / 2
    >>> half = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> RandomisedSymbols(2, half).integrals(codes, [table], 0.01).values[0].value
    0.75
    >>> pairs = np.array([[0, 0], [1, 1]])
    >>> RandomisedSymbols(2, half).integrals(pairs, [table], 0.01).values[0].value
    0.75
    """

    size: int
    channel: Array | None = None
    releases: int = 1
    rounding: float = 0.0
    sigma: None = None
    method: Literal["histogram"] = "histogram"

    def check(self, codes: Array) -> Array:
        whole = codes.dtype.kind in "iu"
        if not whole or (codes.size and not (codes.min() >= 0 and codes.max() < self.size)):
            raise PrivetError(f"Symbols are whole numbers from 0 to {self.size - 1}.")
        checked_channel(self.size, self.channel)
        return codes.astype(np.int64)

    def refusal(self, codes: Array) -> str:
        records = codes.shape[1]
        if max(self.size, self._outputs) ** records <= OUTCOMES:
            return ""
        return (
            f"{records} records of one of {self.size} symbols each have too many outcomes to be "
            "gone through"
        )

    def integrals(self, codes: Array, tables: Sequence[Array], delta: float) -> Integrals:
        shape = (self.size,) * codes.shape[1]
        place = np.ravel_multi_index(tuple(codes.astype(np.int64).T), shape)
        rows, values = self._rows(), []
        for table in tables:
            best: Array | None = None
            for column in table.T:
                law = np.bincount(place, column, math.prod(shape)).reshape(shape)
                if rows is not None:
                    for axis in range(law.ndim):
                        law = np.moveaxis(np.tensordot(law, rows, axes=(axis, 0)), -1, axis)
                best = law if best is None else np.maximum(best, law)
            mass = float(table.sum())
            error = mass * (1e-9 + codes.shape[1] * self.releases * self.rounding)
            values.append(Value(0.0 if best is None else float(best.sum()), error))
        return Integrals(values, delta)

    def spread(self, dimensions: int) -> float:
        if self.channel is None:
            return 1.0
        apart = row_distance(self.channel) + 2 * self.rounding
        return 1 - max(1 - apart, 0.0) ** (dimensions * self.releases)

    @property
    def _outputs(self) -> int:
        """Outcomes of all releases of one symbol; that of the symbol itself where it is granted."""
        if self.channel is None:
            return self.size
        outcomes = math.comb(self.channel.shape[1] + self.releases - 1, self.releases)
        return outcomes if outcomes <= OUTPUTS else self.size

    def _rows(self) -> Array | None:
        if self.channel is None:
            return None
        outcomes = math.comb(self.channel.shape[1] + self.releases - 1, self.releases)
        return tallies(self.channel, self.releases) if outcomes <= OUTPUTS else None
