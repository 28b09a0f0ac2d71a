"""What holds whatever the adversary believed before: ROC curve, posterior, maximal leakage, Bayes
security and (epsilon, delta), of the private attribute.

A balanced accuracy is an average. That it is at most 54 % does not say that no release makes a
value likely, nor what a test reads at a small false positive rate, nor anything about a prior of
1 %. All of these follow from one curve per ordered pair of values (a, b), with p_a the density of
the release among people of value a ::

    E_t  =  integral of (p_a - t p_b)_+  =  max over sets A of  P_a(A) - t P_b(A),     t >= 0

Bound on it. For fixed t the maximising set is one fixed rule f*. Its P_a(A) - t P_b(A) on the
sample is a sum over independent people, in which those of value a have influence 1 / n_a and those
of value b t / n_b, so that by Hoeffding, as in gaussian.py, with probability 1 - delta ::

    E_t  <=  E^_t + sqrt(ln(1 / delta) (1 / n_a + t^2 / n_b) / 2)

(people with records of both values: as there, in two parts). The t >= 1 are fixed beforehand, and
share delta with each other and over the ordered pairs. E_t is convex, falls, and is 1 at t = 0, so
what is known at some t holds in between too; and E_{1/t}(b, a) = (E_t(a, b) - 1 + t) / t.

For large t that slack is far too large, because the set A of f* is then rare: by the second of the
consequences below, P_a(A) is at most r = E_s / (1 - s / t) for every s < t, and P_b(A) <= P_a(A) /
t. The success of f* among people of a has a variance of at most r max_i u_i, and Bernstein's
inequality holds with that: slack <= sqrt(2 v ln(1 / delta)) + max_i u_i ln(1 / delta) / 3. The
smaller of the two slacks is a fixed number, so it may be used; that E_s is only known to be below
its own bound is one more of the statements that hold together.

What follows, all at once:

- ROC: a test of a against b that is wrong about a share FPR of people of b is right about at most
  TPR <= min over t of E_t + t FPR of those of a.
- Posterior: among people of a, the share of releases with p_a >= t' p_b is at most E_t / (1 - t /
  t') for every t < t', because each of them adds at least p_a (1 - t / t') to E_t. With equally
  likely values the posterior of a can reach x only where p_a >= x / (1 - x) p_b for every b.
- (epsilon, delta)-indistinguishability of any two values: delta = E_{exp(epsilon)}. It is about
  this attribute among these people, and no differential privacy of the record.
- Bayes security (Chatzikokolakis, Cherubin, Palamidessi and Troncoso, Bayes security: a not so
  average metric, CSF 2023): the smallest over pairs of 2 (1 - V_ab) = 1 - E_1. 1 says that nothing
  is told at any prior.
- Maximal leakage (Issa, Wagner and Kamath, An operational approach to information leakage, IEEE
  Transactions on Information Theory 66, 2020): log2(k V), the bits by which a release multiplies
  the chance to guess anything that depends on the attribute; it is largest at the uniform prior.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from privet.evidence import Array
from privet.evidence.certificate.coded_people import CodedPeople
from privet.evidence.certificate.gaussian import too_few
from privet.evidence.certificate.mechanisms import Mechanism
from privet.evidence.certificate.sampling import Sample, bernstein, hoeffding
from privet.evidence.figures import AllPriors, PriorPoint

# False positive rates, posterior probabilities and epsilons that are answered.
RATES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
POSTERIORS = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
# The t at which E_t is computed: exp of these, for either order of a pair.
EXPONENTS = np.array([0.0, 0.1, 0.25, 0.5, 1.0, 2.0])
# Where the curve that these give is read to bound something else, 0 among it.
T = np.append(0.0, np.exp(np.unique([*-EXPONENTS, *EXPONENTS, *np.linspace(-2, 2, 17)])))
# Share of delta that the guess among all values gets, where there are more than two.
AMONG_ALL = 0.2

Curves = dict[tuple[int, int], Array]


def certify_all_priors(
    people: CodedPeople, mechanism: Mechanism, *, delta: float = 0.01
) -> AllPriors | None:
    """Bounds at every prior, all at once with probability 1 - delta; None where a value has fewer
    than two people, or the release cannot be certified.

    >>> from privet.evidence.certificate.mechanisms import GaussianNoise
    >>> sex = np.arange(20_000) % 2
    >>> people = CodedPeople(0.4 * sex, sex, np.arange(20_000), "sex", ("f", "m"))
    >>> found = certify_all_priors(people, GaussianNoise(1.0))
    >>> [(p.at, round(p.bound, 2)) for p in found.roc if p.at in (0.01, 0.1)]  # 0.03 and 0.19
    [(0.01, 0.06), (0.1, 0.23)]
    >>> round(found.bayes_security, 2)  # 0.84
    0.81
    """
    k, codes = len(people.values), mechanism.check(people.codes)
    if k < 2 or mechanism.refusal(codes):
        return None
    sample = people.sample(codes)
    if too_few(sample.people):
        return None
    among_all = AMONG_ALL * delta if k > 2 else 0.0
    each = (delta - among_all) / math.comb(k, 2)
    curves: Curves = {}
    for a, b in combinations(range(k), 2):
        pair = _pair(sample, mechanism, a, b, each)
        curves[a, b], curves[b, a] = _curve(*pair), _curve(*pair[::-1])
    highest = np.max(list(curves.values()), axis=0)
    told = float(np.interp(1.0, T, highest))
    guess = (1 + told) / 2 if k == 2 else _guess(sample, mechanism, among_all)
    return AllPriors(
        roc=tuple(PriorPoint(x, float((highest + x * T).min())) for x in RATES),
        posterior=tuple(PriorPoint(x, _share(curves, k, x)) for x in POSTERIORS),
        leakage_bits=math.log2(k * guess),
        bayes_security=1 - told,
        epsilon_delta=tuple(
            PriorPoint(x, float(np.interp(math.exp(x), T, highest))) for x in EPSILONS
        ),
    )


def _pair(
    sample: Sample, mechanism: Mechanism, a: int, b: int, delta: float
) -> tuple[Array, Array]:
    """Bounds on E_t, t = exp(EXPONENTS), of (a, b) and of (b, a), all at once with probability
    1 - delta."""
    t = np.exp(EXPONENTS)
    rows = sample.within[:, [a, b]].any(1)
    tables = [
        sample.within[rows][:, order] * [1, factor] for order in ([a, b], [b, a]) for factor in t
    ]
    values, left = mechanism.integrals(sample.codes[rows], tables, delta)
    sticks = np.reshape([v.value + v.error for v in values], (2, -1)) - t
    spread, each = mechanism.spread(sample.codes.shape[1]), left / len(values)
    found = [
        _bounds(t, stick, sample.held[:, order], spread, each)
        for stick, order in zip(sticks, ([a, b], [b, a]), strict=True)
    ]
    return found[0], found[1]


def _bounds(t: Array, sticks: Array, held: Array, spread: float, delta: float) -> Array:
    """E^_t with the smaller of two slacks, from the smallest t on: each says how rare the next set
    is."""
    bounds = np.ones(0)
    for factor, stick in zip(t, sticks, strict=True):
        before, known = np.append(0.0, t[: len(bounds)]), np.append(1.0, bounds)
        rare = min(1.0, float((known / (1 - before / factor)).min()))
        influence = held * [1, factor]
        slack = min(
            spread * hoeffding(influence, delta),
            bernstein(influence, (rare, rare / factor), delta),
        )
        # No rule does worse than never saying a.
        bounds = np.append(bounds, min(max(stick, 0.0) + slack, 1.0))
    return bounds


def _curve(bounds: Array, reverse: Array) -> Array:
    """Bounds on E at all of T from those at some t, for t < 1 from the other order of the pair: a
    chord between two known points lies above E, and E is no higher later than before."""
    later = np.exp(EXPONENTS)
    sooner = 1 / later[:0:-1]
    x = np.concatenate([[0.0], sooner, later])
    y = np.concatenate([[1.0], 1 - sooner + sooner * reverse[:0:-1], bounds])
    left, right = (side.ravel() for side in np.triu_indices(len(x), 1))
    weight = (T[:, None] - x[left]) / (x[right] - x[left])
    chords = (1 - weight) * y[left] + weight * y[right]
    chords[(weight < 0) | (weight > 1)] = 1.0
    return np.minimum.accumulate(chords.min(1))


def _share(curves: Curves, k: int, posterior: float) -> float:
    """Largest over values a of the share of its people whose releases give a that posterior: it
    takes the ratio to every other value."""
    ratio = posterior / (1 - posterior)
    below = ratio > T
    tails = {
        pair: min(1.0, float((curve[below] / (1 - T[below] / ratio)).min()))
        for pair, curve in curves.items()
    }
    return max(min(tails[a, b] for b in range(k) if b != a) for a in range(k))


def _guess(sample: Sample, mechanism: Mechanism, delta: float) -> float:
    """Bound on balanced accuracy among all values."""
    k = sample.within.shape[1]
    (even,), left = mechanism.integrals(sample.codes, [sample.within / k], delta)
    slack = mechanism.spread(sample.codes.shape[1]) * hoeffding(sample.held / k, left)
    bound: float = max(even.value, 1 / k) + even.error + slack
    return min(bound, 1.0)
