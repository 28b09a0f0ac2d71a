"""A bound on how well *any* adversary can guess a private attribute from a release, whatever its design and computing power.

A release is z = c + sigma N(0, I_d), fresh for every record; P_a is the law of the code c among people with the value a: a
person of that value, then one of the person's records. With prior pi, the best adversary is right with probability ::

    V(P)  =  max over rules f of  sum_a pi_a P_a g_a  =  integral of max_a pi_a (P_a * N_sigma)(z) dz,   g_a(c) = P(f(c + sigma xi) = a)

P is not known, a sample of people P^ is. Let f* be the best rule for the true P. It is one fixed rule, so its g*_a are fixed
functions with values in [0, 1], and on the sample its success is a sum over independent people with mean V(P), in which person
i has influence at most u_i = (sum over a of pi_a times the weight of i among the people of a). Hoeffding (1963), theorem 2:
with probability at least 1 - delta ::

    V(P)  <=  (success of f* on the sample) + sqrt(ln(1 / delta) sum_i u_i^2 / 2)  <=  V(P^) + slack

because no rule, f* included, does better on the sample than V(P^). Nothing is trained, and no rule is looked for: V(P^) is an
integral over mixtures of Gaussians around the sample's codes. It errs on the safe side (V is convex in P, so E V(P^) >= V(P)),
the more so the higher d and the smaller sigma: there it ends near 1, and the answer is "not certified".

The people must be new to the code *and* to the choice of sigma: fit on *fit*, choose on *select*, certify on *test*. The bound
is an average over people like them; it holds for this attribute and for what the release adds to what is known anyway.

`transport.py` has the classical bound by couplings. V(P^) is never above its value for the same sample.

Where people have records of several values, what they add under one value depends on what they add under another, and which
values they have is part of the sample too. Given only who has the value a, Hoeffding still holds for P_a by itself; used for
each value with delta / k it gives slack = sum_a pi_a sqrt(ln(k / delta) / (2 n_a)). One value per person is up to a third better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from privet.errors import PrivetError, unknown
from privet.evidence import transport
from privet.evidence.smoothed import Value, by_draws, grid_steps, on_grid

Array = npt.NDArray[Any]
Method = Literal["smoothed", "transport", "histogram"]

VACUOUS = 0.995
"""From here on a bound says nothing worth saying."""
NEAR = 0.05
"""How near to guessing a bound is worth asking for, where people are told how many of them that takes."""
DIMENSIONS = 16
"""Most dimensions of a code: beyond, no sample that people have says anything."""
DRAWS = 100_000
"""Of the Monte Carlo integral, for codes of three dimensions or more."""
FOR_DRAWS = 0.1
"""Share of delta that the Monte Carlo integral may use up."""
OUTPUTS = 1 << 18
"""Most outcomes of several releases over a finite alphabet that are gone through."""


@dataclass(frozen=True)
class Certificate:
    """What no adversary can beat, or why nothing can be said."""

    attribute: str
    values: tuple[str, ...]
    bound: float | None
    """Upper bound on the balanced accuracy of every adversary: on its success where all values are equally likely.
    None: not certified."""
    empirical: float
    """V(P^) at equally likely values, without slack; nan where it was not computed."""
    slack: float
    """What is added for the sample being finite and the integral being computed: bound = empirical + slack, at most 1."""
    at_prior: float | None
    """Upper bound on plain accuracy, the values being as frequent as they are (or as the `prior` given). It and `bound` hold
    with this confidence each, not both at once."""
    prior: tuple[float, ...]
    """Frequency of the values that `at_prior` is for."""
    bits: float | None
    """Upper bound on the mutual information between value and release, the values being equally likely."""
    confidence: float
    people: tuple[int, ...]
    """How many people have each value."""
    d: int
    sigma: float | None
    """Deviation of the noise of one release; None without Gaussian noise."""
    releases: int
    """How many releases of the same record, each with fresh noise, the adversary sees."""
    method: Method
    reason: str = ""
    """Why it is not certified; empty where it is."""
    transport: float | None = None
    """The bound on balanced accuracy by optimal transport, with the same slack for people, where it was asked for."""

    @property
    def blind(self) -> float:
        """Success of guessing without the release, all values being equally likely."""
        return 1 / len(self.values)

    @property
    def odds(self) -> float | None:
        """Right guesses per wrong one, at most, the values being equally likely beforehand; 1 for two values says nothing leaks."""
        return None if self.bound is None else self.bound / (1 - self.bound)


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
    draws: int = DRAWS,
    seed: int = 0,
) -> Certificate:
    """Certify releases z = c + sigma N(0, I) of codes (n, d), taken *before* noise, of people who are new to code and sigma.

    `labels` (n,) index `values`, `person` (n,) says whose record it is; every person of a value weighs the same. Several
    releases of a record are as informative as their mean: noise of sigma / sqrt(releases). Without `prior`, plain accuracy is
    that in the population the people come from (each person weighs the same); with it, at that known prior.
    `compare` also computes the bound by transport, which needs the extra privet[certify], as does `method="transport"`.

    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(4000) % 2
    >>> c = certify(random.normal(size=(4000, 1)) + 0.2 * labels[:, None], 1.0, labels, np.arange(4000), "sex", ("f", "m"))
    >>> round(c.bound, 3), c.reason  # the exact value is 0.528
    (0.553, '')
    """
    if method not in ("smoothed", "transport"):
        raise unknown("method of certification", method, ("smoothed", "transport"))
    codes, labels, person = _checked(codes, labels, person, values)
    if codes.dtype.kind not in "fiu" or not np.isfinite(codes).all():
        raise PrivetError("Codes must be finite numbers: look for nan or infinity in what the release's network gives.")
    if sigma is not None and not (sigma >= 0 and math.isfinite(sigma)):
        raise PrivetError(f"The deviation of noise is a number from 0 on, and {sigma} is not.")
    blank = _blank(attribute, values, confidence, releases, codes.shape[1], sigma, method)
    if len(values) < 2:
        return replace(blank, reason=_too_few(values))
    sample = _sample(codes.astype(np.float64), labels, person, len(values))
    blank = replace(blank, people=sample.people, prior=_prior(sample, prior))
    why = _too_few(sample.people)
    if codes.shape[1] > DIMENSIONS:
        why = why or f"the code has {codes.shape[1]} dimensions, and more than {DIMENSIONS} cannot be certified from a sample"
    if why or not sigma:
        return replace(blank, reason=why or "the release adds no noise, and without noise some adversary may read everything")
    effective, delta = sigma / math.sqrt(releases), 1 - confidence
    coupled = _coupled(sample, effective, np.asarray(blank.prior)) if compare or method == "transport" else None
    if coupled and method == "transport":
        several = bool(((sample.held > 0).sum(1) > 1).any())  # then the laws behind plain accuracy are others than were coupled
        even, real, share = coupled[0], Value(1.0, 0.0) if several and prior is None else coupled[1], 1.0
    else:
        even, real, share = _smoothed(sample, _joint(sample, prior), effective, draws, seed, delta)
    found = _conclude(blank, sample, even, real, delta * share, known_prior=prior is not None)
    by_transport = min(1.0, coupled[0].value + _slack(sample.held / len(values), delta)) if coupled else None
    return replace(found, transport=by_transport)


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
    """Certify a release of one of `size` symbols per record, 0 .. size - 1, which `channel` (size, outputs) may randomise.

    Row s of the channel holds the probabilities of what is released for the symbol s, drawn anew for every release; None says
    that the symbols themselves are released, and a second release of a record then adds nothing. `rounding` is how far, in
    total variation, a computer's draws may be from a row.
    The same bound and slack hold with V(P^) = sum_y max_a pi_a (P^_a Q)(y). Of several releases only how often each output
    came counts; where even that has too many outcomes, the adversary is granted the symbol itself, which no number of releases
    tells more than.

    >>> people, sex = np.arange(4000), np.arange(4000) % 2
    >>> c = certify_alphabet(np.zeros(4000, int), 2, None, sex, people, "sex", ("f", "m"))
    >>> c.empirical, round(c.bound, 3)
    (0.5, 0.524)
    """
    symbols, labels, person = _checked(symbols, labels, person, values)
    if symbols.dtype.kind not in "iu" or symbols.shape[1] != 1 or (symbols.size and not (symbols.min() >= 0 and symbols.max() < size)):
        raise PrivetError(f"Symbols are one whole number per record, from 0 to {size - 1}.")
    rows = None if channel is None else np.asarray(channel, dtype=np.float64)
    if rows is not None and not (rows.ndim == 2 and len(rows) == size and (rows >= 0).all() and np.allclose(rows.sum(1), 1, atol=1e-9)):
        raise PrivetError(f"A channel has {size} rows of probabilities that sum to 1.")
    blank = _blank(attribute, values, confidence, releases, 1, None, "histogram")
    if len(values) < 2:
        return replace(blank, reason=_too_few(values))
    sample = _sample(symbols.astype(np.float64), labels, person, len(values))
    blank = replace(blank, people=sample.people, prior=_prior(sample, prior))
    if why := _too_few(sample.people):
        return replace(blank, reason=why)
    few = rows is not None and math.comb(rows.shape[1] + releases - 1, releases) <= OUTPUTS
    seen = _tallies(rows[sample.codes[:, 0].astype(np.int64)], releases) if rows is not None and few else np.eye(len(sample.codes))
    error = 1e-9 + releases * rounding
    even, real = (Value(float((w.T @ seen).max(0).sum()), error) for w in (sample.within / len(values), _joint(sample, prior)))
    return _conclude(blank, sample, even, real, 1 - confidence, known_prior=prior is not None)


def curve(
    codes: Array, sigmas: Sequence[float], labels: Array, person: Array, attribute: str, values: Sequence[str], **settings: Any
) -> list[Certificate]:
    """A certificate for each sigma, for plots. Each holds with its confidence by itself: choose sigma on *select*, not here."""
    return [certify(codes, sigma, labels, person, attribute, values, **settings) for sigma in sigmas]


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
    precision: float = 0.01,
    draws: int = 20_000,
    seed: int = 0,
) -> float | None:
    """The smallest sigma at which a certificate on `people` (so many per value) others should come out at `target` or below.

    V(P^) of the *select* people given, plus the slack that `people` will have, plus `margin`, which makes up for other people
    having another V(P^). Left out, it is what one standard deviation of that difference can be at most: the target is then met
    about five times in six; with 0, every other time. Bisection on log sigma, to a relative `precision`: V(P^) falls as sigma
    grows, since more noise can be had by adding noise to the release (data processing). None where even the largest sigma, a
    hundred times the codes' spread unless `between` says otherwise, does not do, or a value has fewer than two people.
    """
    codes, labels, person = _checked(codes, labels, person, values)
    sample = _sample(codes.astype(np.float64), labels, person, len(values))
    if _too_few(sample.people) or _too_few(people) or codes.shape[1] > DIMENSIONS:
        return None
    delta, k = 1 - confidence, len(values)
    spread = float(np.sqrt(sample.codes.var(0).sum())) or 1.0
    there, here = (math.sqrt(sum(1 / n for n in counts)) / k for counts in (people, sample.people))
    room = target - (math.hypot(there, here) / 2 if margin is None else margin)

    def meets(sigma: float) -> bool:
        even, _, share = _smoothed(sample, sample.joint, sigma / math.sqrt(releases), draws, seed, delta)
        return even.value + even.error + there * math.sqrt(math.log(1 / (delta * share)) / 2) <= room

    low, high = between or (1e-3 * spread, 1e2 * spread)
    if not meets(high):
        return None
    if meets(low):
        return low
    while high > low * (1 + precision):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def jointly(labels: Sequence[Array], values: Sequence[Sequence[str]]) -> tuple[Array, tuple[str, ...]]:
    """Several attributes as one, whose values are those combinations that occur; -1 where any of them is missing.

    The certificate then bounds guessing all of them at once. A combination that nobody in the sample has is not covered.

    >>> codes, names = jointly([np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1])], [("f", "m"), ("young", "old")])
    >>> codes, names
    (array([ 0,  1,  2, -1]), ('f, young', 'm, young', 'm, old'))
    """
    sizes = [len(v) for v in values]
    table = np.stack([np.asarray(column) for column in labels])
    known = (table >= 0).all(0)
    cells = np.ravel_multi_index(tuple(np.where(known, table, 0)), sizes)
    present = np.unique(cells[known])
    names = [", ".join(v[i] for v, i in zip(values, np.unravel_index(cell, sizes), strict=True)) for cell in present]
    return np.where(known, np.searchsorted(present, cells), -1), tuple(names)


def quantile_edges(numbers: Array, bins: int) -> Array:
    """Inner edges that put equally many of these people's numbers into each bin; take other people than those certified.

    >>> quantile_edges(np.arange(101.0), 4)
    array([25., 50., 75.])
    """
    there = np.asarray(numbers, dtype=np.float64)
    there = there[np.isfinite(there)]
    return np.unique(np.quantile(there, np.arange(1, bins) / bins)) if len(there) else np.empty(0)


def binned(numbers: Array, edges: Array) -> tuple[Array, tuple[str, ...]]:
    """A number as classes: codes, -1 where it is missing, and the bins' names.

    >>> binned(np.array([3.0, 30.0, np.nan, 70.0]), np.array([25.0, 50.0]))
    (array([ 0,  1, -1,  2]), ('below 25', '25 to 50', 'from 50'))
    """
    inner = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    names = (f"below {edges[0]:g}", *inner, f"from {edges[-1]:g}") if len(edges) else ("any",)
    return np.where(np.isfinite(numbers), np.digitize(numbers, edges), -1), names


def sentence(certificate: Certificate) -> str:
    """The certificate in plain words, for participants. Shares are rounded up.

    >>> c = Certificate("gender", ("f", "m"), 0.577, 0.55, 0.027, 0.6, (0.5, 0.5), 0.154, 0.99, (900, 900), 2, 0.4, 1, "smoothed")
    >>> sentence(c)[:107]
    'Whoever sees one release of yours, with whatever computer, guesses the gender of people like you right at m'
    """
    c = certificate
    if c.bound is None:
        return f"There is no certificate for {c.attribute}: {c.reason}."
    right, blind = math.ceil(100 * c.bound - 1e-9), round(100 * c.blind)
    seen = "one release" if c.releases == 1 else f"{c.releases} releases of a record"
    return (
        f"Whoever sees {seen} of yours, with whatever computer, guesses the {c.attribute} of people like you right at most {right} times "
        f"in 100; guessing blindly is right {blind} times. If all {len(c.values)} answers were equally likely before, the odds of a right "
        f"guess afterwards are at most {right} to {100 - right}. This was computed from {sum(c.people)} people, and such a computation "
        f"is wrong at most one time in {round(1 / (1 - c.confidence))}."
    )


def information(bound: float, values: int) -> float:
    """Most bits that a release can carry about one of k equally likely values, if no guess is right more often than `bound`.

    A posterior with the largest entry M has at least the entropy of (M, .., M, rest), which lies above the chords through
    (M, H) = (1 / i, log2 i), i = 1 .. k; these form a convex function of M, so by Jensen's inequality ::

        I  <=  log2 k - chords(V),        for two values  I <= 2 V - 1 = TV

    Sources: Feder and Merhav, Relations between entropy and error probability, IEEE Transactions on Information Theory 40
    (1994), 259-266; for two values Lin, Divergence measures based on the Shannon entropy, the same 37 (1991), 145-151.

    >>> information(0.5, 2), round(information(0.6, 2), 6), information(1.0, 4)
    (0.0, 0.2, 2.0)
    """
    i = np.arange(1, values + 1)
    return max(float(np.log2(values) - np.interp(1 - bound, 1 - 1 / i, np.log2(i))), 0.0)


@dataclass(frozen=True)
class _Sample:
    """Distinct codes in a fixed order, so that neither the order of records nor the names of people matter."""

    codes: Array
    """(n, d)"""
    within: Array
    """(n, k): weight of the code among the people of each value; columns sum to 1."""
    joint: Array
    """(n, k): weight of the code and value among all people; sums to 1."""
    held: Array
    """(people, k): weight of the person among the people of each value."""

    @property
    def people(self) -> tuple[int, ...]:
        return tuple(int(n) for n in (self.held > 0).sum(0))


def _checked(codes: Array, labels: Array, person: Array, values: Sequence[str]) -> tuple[Array, Array, Array]:
    codes, labels, person = np.asarray(codes), np.asarray(labels), np.asarray(person)
    codes = codes[:, None] if codes.ndim == 1 else codes
    if codes.ndim != 2 or labels.shape != person.shape or labels.shape != codes.shape[:1]:
        shapes = f"{codes.shape}, {labels.shape} and {person.shape}"
        raise PrivetError(f"A certificate needs one code, one label and one person per record, not {shapes}.")
    if len(labels) and (labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(values)):
        raise PrivetError(f"Labels must be whole numbers from 0 to {len(values) - 1}: leave out records whose value is missing.")
    return codes, labels.astype(np.int64), person


def _sample(codes: Array, labels: Array, person: Array, k: int) -> _Sample:
    everyone, who = np.unique(person, return_inverse=True)
    records = np.bincount(who * k + labels, minlength=len(everyone) * k).reshape(-1, k)
    held = (records > 0) / np.maximum((records > 0).sum(0), 1)
    distinct, place = np.unique(codes + 0.0, axis=0, return_inverse=True)  # + 0.0 makes -0.0 the same code as 0.0

    def gather(weights: Array) -> Array:
        return np.bincount(place.ravel() * k + labels, weights, len(distinct) * k).reshape(-1, k)

    within = gather(held[who, labels] / records[who, labels])
    return _Sample(distinct, within, gather(1 / (records.sum(1)[who] * max(len(everyone), 1))), held)


def too_few_for_any(people: int, values: int, delta: float) -> str:
    """Why so few people certify nothing, and how many would: Hoeffding's slack for equally many people of each value.

    >>> too_few_for_any(5, 2, 0.01)[-36:]
    'takes about 461 people of each value'
    """
    wanted = math.ceil(math.log(1 / delta) / (2 * values * NEAR**2))
    return (
        f"{people} test people are too few: a release that tells nothing could not be told from one that tells all. A bound within "
        f"{100 * NEAR:g} points of guessing takes about {wanted:,} people of each value"
    )


def _tallies(rows: Array, releases: int) -> Array:
    """Probabilities (symbols, tallies) of how often each output comes in so many releases: multinomial, given a row of one release."""
    outputs = rows.shape[1]
    if releases == 1:
        return rows
    drawn = np.array(list(combinations_with_replacement(range(outputs), releases)))
    each = np.bincount((drawn + outputs * np.arange(len(drawn))[:, None]).ravel(), minlength=len(drawn) * outputs).reshape(-1, outputs)
    orders = gammaln(releases + 1) - gammaln(each + 1).sum(1)
    return np.exp(orders + np.log(np.maximum(rows, 1e-300)) @ each.T)  # type: ignore[no-any-return]


def _too_few(people: Sequence[Any]) -> str:
    if len(people) < 2:
        return "an attribute with fewer than two values leaves nothing to guess"
    return "" if min(people) >= 2 else "one of its values has fewer than two people"


def _blank(
    attribute: str, values: Sequence[str], confidence: float, releases: int, d: int, sigma: float | None, method: Method
) -> Certificate:
    """A certificate that says nothing yet."""
    if not 0 < confidence < 1:
        raise PrivetError(f"A confidence lies between 0 and 1, and {confidence} does not.")
    if releases < 1:
        raise PrivetError(f"An adversary sees at least one release, not {releases}.")
    return Certificate(attribute, tuple(values), None, math.nan, math.nan, None, (), None, confidence, (), d, sigma, releases, method)


def _prior(sample: _Sample, given: Sequence[float] | None) -> tuple[float, ...]:
    if given is None:
        return tuple(float(p) for p in sample.joint.sum(0))
    if len(given) != sample.within.shape[1] or min(given) < 0 or abs(sum(given) - 1) > 1e-9:
        raise PrivetError("A prior holds one probability per value, and they sum to 1.")
    return tuple(float(p) for p in given)


def _joint(sample: _Sample, prior: Sequence[float] | None) -> Array:
    return sample.joint if prior is None else sample.within * np.asarray(prior)


def _slack(influence: Array, delta: float) -> float:
    """Hoeffding's slack for people (rows) with this influence under each value (columns); see the top of this file."""
    several = bool(((influence > 0).sum(1) > 1).any())
    spread = np.sqrt((influence**2).sum(0)).sum() if several else np.sqrt((influence**2).sum())
    return float(spread) * math.sqrt(math.log((influence.shape[1] if several else 1) / delta) / 2)


def _conclude(blank: Certificate, sample: _Sample, even: Value, real: Value, delta: float, *, known_prior: bool) -> Certificate:
    """From V(P^), at equally likely values and at the prior, to the certificate."""
    k, everyone, fewest = len(blank.values), len(sample.held), min(blank.people)
    value, slack = min(max(even.value, 1 / k), 1.0), even.error + _slack(sample.held / k, delta)
    bound = min(value + slack, 1.0)
    # At the population's own prior the success of a fixed rule is a mean over all people, each with influence 1 / n.
    influence = sample.held * np.asarray(blank.prior) if known_prior else np.full((everyone, 1), 1 / everyone)
    plain = max(real.value, *blank.prior) + real.error + _slack(influence, delta)
    found = replace(blank, empirical=value, slack=slack)
    if 1 / k + slack >= VACUOUS:
        return replace(found, reason=too_few_for_any(everyone, k, 1 - blank.confidence))
    if bound >= VACUOUS:
        noise = "" if blank.sigma is None else f", a code of d = {blank.d} and noise of {blank.sigma:.3g}"
        return replace(found, reason=f"with {fewest} people of one value{noise} the bound would be {100 * bound:.1f} %, which says nothing")
    return replace(found, bound=bound, at_prior=plain if plain < VACUOUS else None, bits=information(bound, k))


def _smoothed(sample: _Sample, joint: Array, sigma: float, draws: int, seed: int, delta: float) -> tuple[Value, Value, float]:
    """V(P^) at equally likely values, the same for `joint`, and the share of delta that is left for people."""
    steps = grid_steps(sample.codes, sigma)
    if steps:
        even, real = (on_grid(sample.codes, w, sigma, steps) for w in (sample.within / sample.within.shape[1], joint))
        return even, real, 1.0
    even, real = by_draws(sample.codes, sample.within, joint, sigma, draws, seed, delta * FOR_DRAWS)
    return even, real, 1 - FOR_DRAWS


def _coupled(sample: _Sample, sigma: float, prior: Array) -> tuple[Value, Value]:
    """The sample's bound on success by transport, at equally likely values and at the prior."""
    k = sample.within.shape[1]
    distances = np.zeros((k, k))
    for a, b in combinations(range(k), 2):
        i, j = (np.flatnonzero(sample.within[:, v]) for v in (a, b))
        plan = transport.couple(sample.codes[i], sample.codes[j], sigma, (sample.within[i, a], sample.within[j, b]))
        distances[a, b] = distances[b, a] = plan.cost
    return Value(transport.success(distances, np.full(k, 1 / k)), 0.0), Value(transport.success(distances, prior), 0.0)
