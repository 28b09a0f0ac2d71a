"""A bound on how well *any* adversary can guess a private attribute from a release, whatever its
design and computing power.

A release is z = c + sigma N(0, I_d), fresh for every record; P_a is the law of the code c among
people with the value a: a person of that value, then one of the person's records. With prior pi,
the best adversary is right with probability ::

    V(P)  =  max over rules f of  sum_a pi_a P_a g_a,   g_a(c) = P(f(c + sigma xi) = a)
          =  integral of max_a pi_a (P_a * N_sigma)(z) dz

P is not known, a sample of people P^ is. Let f* be the best rule for the true P. It is one fixed
rule, so its g*_a are fixed functions with values in [0, 1], and on the sample its success is a sum
over independent people with mean V(P), in which person i has influence at most u_i = (sum over a of
pi_a times the weight of i among the people of a). Hoeffding (1963), theorem 2: with probability at
least 1 - delta ::

    V(P)  <=  (success of f* on the sample) + sqrt(ln(1 / delta) sum_i u_i^2 / 2)  <=  V(P^) + slack

because no rule, f* included, does better on the sample than V(P^). Nothing is trained, and no rule
is looked for: V(P^) is an integral over mixtures of Gaussians around the sample's codes. It errs on
the safe side (V is convex in P, so E V(P^) >= V(P)), the more so the higher d and the smaller
sigma: there it ends near 1, and the answer is "not certified".

The people must be new to the code *and* to the choice of sigma: fit on *fit*, choose on *select*,
certify on *test*. The bound is an average over people like them, for this attribute, one record of
a person, and an adversary who knows nothing else about the person. With something else known, with
several records of a person or at another prior more can be told: `side_information.py`,
`several_records.py` and `all_priors.py` have those bounds.

`transport.py` has the classical bound by couplings. V(P^) is never above its value for the same
sample.

Where people have records of several values, what they add under one value depends on what they add
under another, and which values they have is part of the sample too. Given only who has the value a,
Hoeffding still holds for P_a by itself; used for each value with delta / k it gives slack = sum_a
pi_a sqrt(ln(k / delta) / (2 n_a)). One value per person is up to a third better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from privet.core.errors import PrivetError, unknown
from privet.evidence import Array
from privet.evidence.certificate.data_free import gaussian_distance
from privet.evidence.certificate.sampling import (
    Sample,
    balanced_slack,
    checked,
    hoeffding,
    sampling_margin,
)
from privet.evidence.certificate.smoothing import Draws, Value, by_draws, grid_steps, on_grid

Method = Literal["smoothed", "transport", "histogram"]

# From here on a bound says nothing worth saying.
VACUOUS = 0.995
# How near to guessing a bound is worth asking for, where people are told how many of them that
# takes.
NEAR = 0.05
# Most dimensions of a code: beyond, no sample that people have says anything.
DIMENSIONS = 16
# Draws of a certificate, and of the search for a noise level.
MANY, FEWER = Draws(), Draws(20_000)
# How exactly the smallest noise is found.
PRECISION = 1.01
# Share of delta that the Monte Carlo integral may use up.
FOR_DRAWS = 0.1


@dataclass(frozen=True)
class Certificate:
    """What no adversary can beat, or why nothing can be said.

    Parameters:
        bound: Upper bound on the balanced accuracy of every adversary: on its success where all
            values are equally likely. None: not certified.
        empirical: V(P^) at equally likely values, without slack; nan where it was not computed.
        slack: What is added for the sample being finite and the integral being computed: bound =
            empirical + slack, at most 1.
        at_prior: Upper bound on plain accuracy, the values being as frequent as they are (or as the
            `prior` given). It and `bound` hold with this confidence each, not both at once.
        prior: Frequency of the values that `at_prior` is for.
        bits: Upper bound on the mutual information between value and release, the values being
            equally likely.
        people: How many people have each value.
        sigma: Deviation of the noise of one release; None without Gaussian noise.
        releases: How many releases of the same record, each with fresh noise, the adversary sees.
        reason: Why it is not certified; empty where it is.
        transport: The bound on balanced accuracy by optimal transport, with the same slack for
            people, where it was asked for.
    """

    attribute: str
    values: tuple[str, ...]
    bound: float | None
    empirical: float
    slack: float
    at_prior: float | None
    prior: tuple[float, ...]
    bits: float | None
    confidence: float
    people: tuple[int, ...]
    d: int
    sigma: float | None
    releases: int
    method: Method
    reason: str = ""
    transport: float | None = None

    @staticmethod
    def blank(
        attribute: str,
        values: Sequence[str],
        confidence: float,
        releases: int,
        d: int,
        sigma: float | None,
        method: Method,
    ) -> Certificate:
        """A certificate that says nothing yet."""
        if not 0 < confidence < 1:
            raise PrivetError(f"A confidence lies between 0 and 1, and {confidence} does not.")
        if releases < 1:
            raise PrivetError(f"An adversary sees at least one release, not {releases}.")
        return Certificate(
            attribute,
            tuple(values),
            None,
            math.nan,
            math.nan,
            None,
            (),
            None,
            confidence,
            (),
            d,
            sigma,
            releases,
            method,
        )

    @property
    def blind(self) -> float:
        """Success of guessing without the release, all values being equally likely."""
        return 1 / len(self.values)


def certify(
    codes: Array,
    sigma: float | None,
    labels: Array,
    person: Array,
    attribute: str,
    values: Sequence[str],
    *,
    confidence: float = 0.99,
    releases: int = 1,
    prior: Sequence[float] | None = None,
    method: Literal["smoothed", "transport"] = "smoothed",
    compare: bool = False,
    draws: Draws = MANY,
) -> Certificate:
    """Certify releases z = c + sigma N(0, I) of codes (n, d), taken *before* noise, of people who
    are new to code and sigma.

    `labels` (n,) index `values`, `person` (n,) says whose record it is; every person of a value
    weighs the same. Several releases of a record are as informative as their mean: noise of sigma /
    sqrt(releases). Without `prior`, plain accuracy is that in the population the people come from
    (each person weighs the same); with it, at that known prior. `compare` also computes the bound
    by transport, which needs the extra privet[certify], as does `method="transport"`.

    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(4000) % 2
    >>> codes = random.normal(size=(4000, 1)) + 0.2 * labels[:, None]
    >>> c = certify(codes, 1.0, labels, np.arange(4000), "sex", ("f", "m"))
    >>> round(c.bound, 3), c.reason  # the exact value is 0.528
    (0.553, '')
    """
    if method not in ("smoothed", "transport"):
        raise unknown("method of certification", method, ("smoothed", "transport"))
    codes, labels, person = checked(codes, labels, person, values)
    check_codes(codes, sigma)
    blank = Certificate.blank(
        attribute, values, confidence, releases, codes.shape[1], sigma, method
    )
    if len(values) < 2:
        return replace(blank, reason=too_few(values))
    sample = Sample.of(codes.astype(np.float64), labels, person, len(values))
    blank = replace(blank, people=sample.people, prior=sample.prior(prior))
    reason = too_few(sample.people) or not_certifiable(codes.shape[1], sigma)
    if reason or not sigma:
        return replace(blank, reason=reason)
    effective, delta = sigma / math.sqrt(releases), 1 - confidence
    coupled = None
    if compare or method == "transport":
        coupled = _coupled(sample, effective, np.asarray(blank.prior))
    if coupled and method == "transport":
        # Where people have several values, the laws behind plain accuracy are others than were
        # coupled.
        several = bool(((sample.held > 0).sum(1) > 1).any())
        even, share = coupled[0], 1.0
        real = Value(1.0, 0.0) if several and prior is None else coupled[1]
    else:
        even, real, share = _smoothed(sample, sample.at(prior), effective, draws, delta)
    found = conclude(blank, sample, even, real, delta * share, known_prior=prior is not None)
    if coupled is None:
        return found
    by_transport = coupled[0].value + hoeffding(sample.held / len(values), delta)
    return replace(found, transport=min(1.0, by_transport))


def check_codes(codes: Array, sigma: float | None) -> Array:
    """Finite codes and a deviation of noise, or a sentence on what is wrong."""
    if codes.dtype.kind not in "fiu" or not np.isfinite(codes).all():
        raise PrivetError(
            "Codes must be finite numbers: look for nan or infinity in what the release's network "
            "gives."
        )
    if sigma is not None and not (sigma >= 0 and math.isfinite(sigma)):
        raise PrivetError(f"The deviation of noise is a number from 0 on, and {sigma} is not.")
    return codes


def not_certifiable(dimensions: int, sigma: float | None) -> str:
    """Why no sample certifies such a release; empty where one may."""
    if dimensions > DIMENSIONS:
        return (
            f"the code has {dimensions} dimensions, and more than {DIMENSIONS} cannot be "
            "certified from a sample"
        )
    if not sigma:
        return "the release adds no noise, and without noise some adversary may read everything"
    return ""


def smallest_sigma(
    codes: Array,
    labels: Array,
    person: Array,
    values: Sequence[str],
    target: float,
    *,
    people: Sequence[int],
    confidence: float = 0.99,
    releases: int = 1,
    margin: float | None = None,
    between: tuple[float, float] | None = None,
    width: float | None = None,
    draws: Draws = FEWER,
) -> float | None:
    """The smallest sigma at which a certificate on `people` (so many per value) others should come
    out at `target` or below.

    V(P^) of the *select* people given, plus the slack that `people` will have, plus `margin`, which
    makes up for other people having another V(P^). Left out, it is what one standard deviation of
    that difference can be at most: the target is then met about five times in six; with 0, every
    other time. `width` is that of `mechanisms.GaussianNoise`, where the certificate will be
    computed with it. Bisection on log sigma, to one in a hundred: V(P^) falls as sigma grows, since
    more noise can be had by adding noise to the release (data processing). None where even the
    largest sigma, a hundred times the codes' spread unless `between` says otherwise, does not do,
    or a value has fewer than two people.
    """
    codes, labels, person = checked(codes, labels, person, values)
    sample = Sample.of(codes.astype(np.float64), labels, person, len(values))
    if too_few(sample.people) or too_few(people) or codes.shape[1] > DIMENSIONS:
        return None
    delta = 1 - confidence
    spread = float(np.sqrt(sample.codes.var(0).sum())) or 1.0
    room = target - (sampling_margin(people, sample.people) if margin is None else margin)
    root = math.sqrt(codes.shape[1])

    def meets(sigma: float) -> bool:
        effective = sigma / math.sqrt(releases)
        even, _, share = _smoothed(sample, sample.joint, effective, draws, delta)
        tau = 1.0 if width is None else gaussian_distance(width * root, effective)
        slack = tau * balanced_slack(people, delta * share)
        return even.value + even.error + slack <= room

    low, high = between or (1e-3 * spread, 1e2 * spread)
    if not meets(high):
        return None
    if meets(low):
        return low
    while high > low * PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def information(bound: float, values: int) -> float:
    """Most bits that a release can carry about one of k equally likely values, if no guess is right
    more often than `bound`.

    A posterior with the largest entry M has at least the entropy of (M, .., M, rest), which lies
    above the chords through (M, H) = (1 / i, log2 i), i = 1 .. k; these form a convex function of
    M, so by Jensen's inequality ::

        I  <=  log2 k - chords(V),        for two values  I <= 2 V - 1 = TV

    Sources: Feder and Merhav, Relations between entropy and error probability, IEEE Transactions on
    Information Theory 40 (1994), 259-266; for two values Lin, Divergence measures based on the
    Shannon entropy, the same 37 (1991), 145-151.

    >>> information(0.5, 2), round(information(0.6, 2), 6), information(1.0, 4)
    (0.0, 0.2, 2.0)
    """
    i = np.arange(1, values + 1)
    return max(float(np.log2(values) - np.interp(1 - bound, 1 - 1 / i, np.log2(i))), 0.0)


def too_few_for_any(people: int, values: int, delta: float) -> str:
    """Why so few people certify nothing, and how many would: Hoeffding's slack for equally many
    people of each value.

    >>> too_few_for_any(5, 2, 0.01)[-36:]
    'takes about 461 people of each value'
    """
    wanted = math.ceil(math.log(1 / delta) / (2 * values * NEAR**2))
    return (
        f"{people} test people are too few: a release that tells nothing could not be told from "
        f"one that tells all. A bound within {100 * NEAR:g} points of guessing takes about "
        f"{wanted:,} people of each value"
    )


def too_few(people: Sequence[Any]) -> str:
    """Why so few values, or people of one, leave nothing to bound; empty where there is
    something."""
    if len(people) < 2:
        return "an attribute with fewer than two values leaves nothing to guess"
    return "" if min(people) >= 2 else "one of its values has fewer than two people"


def conclude(
    blank: Certificate,
    sample: Sample,
    even: Value,
    real: Value,
    delta: float,
    *,
    known_prior: bool,
    plain_delta: float | None = None,
    spread: float = 1.0,
) -> Certificate:
    """From V(P^), at equally likely values and at the prior, to the certificate.

    `plain_delta` is for plain accuracy, and the same as `delta` where it is not given; `spread` is
    how far a fixed rule's success can vary between codes (mechanisms.py).
    """
    k, everyone, fewest = len(blank.values), len(sample.held), min(blank.people)
    value = min(max(even.value, 1 / k), 1.0)
    slack = even.error + spread * hoeffding(sample.held / k, delta)
    bound = min(value + slack, 1.0)
    # At the population's own prior the success of a fixed rule is a mean over all people.
    influence = sample.held * np.asarray(blank.prior) if known_prior else sample.shares[:, None]
    plain = max(real.value, *blank.prior) + real.error + hoeffding(influence, plain_delta or delta)
    found = replace(blank, empirical=value, slack=slack)
    if 1 / k + slack >= VACUOUS:
        return replace(found, reason=too_few_for_any(everyone, k, 1 - blank.confidence))
    if bound >= VACUOUS:
        noise = (
            ""
            if blank.sigma is None
            else f", a code of d = {blank.d} and noise of {blank.sigma:.3g}"
        )
        return replace(
            found,
            reason=(
                f"with {fewest} people of one value{noise} the bound would be "
                f"{100 * bound:.1f} %, which says nothing"
            ),
        )
    return replace(
        found, bound=bound, at_prior=plain if plain < VACUOUS else None, bits=information(bound, k)
    )


def _smoothed(
    sample: Sample, joint: Array, sigma: float, draws: Draws, delta: float
) -> tuple[Value, Value, float]:
    """V(P^) at equally likely values, the same for `joint`, and the share of delta that is left for
    people."""
    steps = grid_steps(sample.codes, sigma)
    if steps:
        even, real = (
            on_grid(sample.codes, w, sigma, steps)
            for w in (sample.within / sample.within.shape[1], joint)
        )
        return even, real, 1.0
    even, real = by_draws(sample.codes, sample.within, joint, sigma, draws, delta * FOR_DRAWS)
    return even, real, 1 - FOR_DRAWS


def _coupled(sample: Sample, sigma: float, prior: Array) -> tuple[Value, Value]:
    """The sample's bound on success by transport, at equally likely values and at the prior."""
    from privet.evidence.certificate import transport  # a second opinion, seldom asked for

    k = sample.within.shape[1]
    distances = np.zeros((k, k))
    for a, b in combinations(range(k), 2):
        i, j = (np.flatnonzero(sample.within[:, v]) for v in (a, b))
        plan = transport.couple(
            sample.codes[i], sample.codes[j], sigma, (sample.within[i, a], sample.within[j, b])
        )
        distances[a, b] = distances[b, a] = plan.cost
    return Value(transport.success(distances, np.full(k, 1 / k)), 0.0), Value(
        transport.success(distances, prior), 0.0
    )
